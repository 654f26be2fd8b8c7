"""What people are told about budgets."""

from allocations.models import Budget
from allocations.words import hours, usd
from notices.message import Message


def close_message(budget: Budget) -> Message:
    """That a month's budget, read with its team, has reached its soft stage, and what that means."""
    facts = [
        ("Set aside", f"{usd(budget.held_usd)} of {usd(budget.limit_usd)}"),
        ("Left", usd(budget.left_usd)),
    ]
    if budget.gpu_hours_limit is not None and budget.left_gpu_hours is not None:
        facts += [
            ("GPU-hours", f"{hours(budget.held_gpu_hours)} of {hours(budget.gpu_hours_limit)}"),
            ("GPU-hours left", hours(budget.left_gpu_hours)),
        ]
    return Message(
        title=f"{budget.team.name}: {budget.percent_held} % of the budget of {budget.month:%B %Y} is set aside",
        sentence=f"From {budget.soft_percent} % on, people decide what goes on top. What is given back is free again.",
        facts=tuple(facts),
        action="Open the budget",
    )

"""The policy in force as a page says it, with example asks judged by the same function as real ones."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from allocations import money
from allocations.words import gpus, usd
from approvals.policy import Ask, Outcome, Standing, Thresholds, duration, evaluate
from approvals.standing import policy_in_force

Part = dict[str, Any]
EXAMPLES = [
    (1, 1, "dev"),
    (2, 7, "dev"),
    (2, 21, "dev"),
    (1, 3, "production"),
    (4, 3, "test"),
    (8, 1, "dev"),
    (4, 120, "dev"),
]
PRICE = Decimal("3.67")


def context(now: datetime) -> Part:
    """Version, rules, who decides what, and examples."""
    version, thresholds = policy_in_force(now)
    return {
        "version": version,
        "rules": rules(thresholds),
        "deciders": deciders(thresholds),
        "columns": ["Ask", "Environment", "Answer", {"label": "In all", "kind": "number"}, "Because"],
        "rows": [example(*each, thresholds=thresholds, now=now) for each in EXAMPLES],
        "price": usd(PRICE),
    }


def rules(thresholds: Thresholds) -> list[Part]:
    """What must hold for an ask to be automatic, each with its number."""
    return [
        {"label": "GPUs in one ask", "text": f"up to {thresholds.automatic_gpus}"},
        {"label": "Time", "text": f"up to {thresholds.automatic_days} days"},
        {"label": "Money", "text": f"up to {usd(thresholds.automatic_usd)} in all"},
        {"label": f"Within {thresholds.window_days} days",
         "text": f"up to {gpus(thresholds.automatic_gpus_in_window)} of a team were automatic"},
        {"label": "Environment", "text": " or ".join(thresholds.automatic_environments)},
        {"label": "Budget", "text": "enough is left in every month it touches"},
        {"label": "Free", "text": "enough of that kind are free now"},
    ]  # fmt: skip


def deciders(thresholds: Thresholds) -> list[Part]:
    """Who decides what, from the policy alone up to nobody."""
    large = thresholds.leadership_gpus
    return [
        {"label": "Every rule holds", "text": "the policy, at once"},
        {"label": "One does not", "text": "platform leads"},
        {"label": f"{gpus(large)} and more", "text": "platform leads, then engineering leadership"},
        {"label": f"Over {thresholds.longest_days} days", "text": "nobody"},
        {"label": "More than there are", "text": "nobody"},
    ]


def example(count: int, days: int, environment: str, *, thresholds: Thresholds, now: datetime) -> Part:
    """One ask for A100 by a team with an untouched budget, judged."""
    until = now + timedelta(days=days)
    months = money.by_month(gpus=1, price=PRICE, start=now, end=until)
    standing = Standing(
        now=now, held_gpus=0, recent_automatic_gpus=0, free_gpus=24, total_gpus=24, price_per_gpu_hour=PRICE,
        budget_left={month: (Decimal(12_000), Decimal(12_000)) for month in months},
    )  # fmt: skip
    ask = Ask(gpus=count, until=until, environment=environment, flavor="a100")
    answer = evaluate(ask, standing, thresholds)
    tone = {Outcome.AUTOMATIC: "good", Outcome.PEOPLE: "waiting", Outcome.IMPOSSIBLE: "bad"}[answer.outcome]
    words = {
        Outcome.AUTOMATIC: "Automatic",
        Outcome.IMPOSSIBLE: "Not possible",
        Outcome.PEOPLE: ", then ".join(seat.words for seat in answer.route).capitalize(),
    }
    failed = [f"{rule.text}, {rule.limit}" for rule in answer.rules if not rule.holds]
    name = f"{gpus(count, 'A100')}, {duration(until - now)}"
    return {
        "cells": [
            name, environment, {"tone": tone, "word": words[answer.outcome]}, {"text": usd(answer.usd)},
            failed[0] if failed else "every rule holds",
        ]
    }  # fmt: skip

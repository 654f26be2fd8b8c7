"""The parts of a policy as people read them: each with its label, unit and what it means. Pure."""

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, NamedTuple

from policy.document import Route, StepPlan, Where, seat_words
from ui.amounts import usd


class Label(NamedTuple):
    """What a number is called, its unit, and what else there is to know."""

    words: str
    unit: str = ""
    help: str = ""


THRESHOLDS: Mapping[str, Label] = {
    "automatic_gpus": Label("GPUs in one request", "GPUs"),
    "automatic_gpu_hours": Label(
        "GPU-hours in one request", "GPU-hours", "Empty for any number."
    ),
    "automatic_usd": Label("Money for the whole time", "USD"),
    "unconfirmed_usd": Label(
        "Money in the window while a cost centre is not confirmed",
        "USD",
        "0: people decide all that costs.",
    ),
    "automatic_days": Label("Time until the end", "days"),
    "longest_days": Label("Longest time at all", "days", "Over it nobody can approve."),
    "window_days": Label(
        "Window that looks back",
        "days",
        "So that ten small requests are one large one.",
    ),
    "window_gpus_team": Label("A team’s limit within the window, GPUs", "GPUs"),
    "window_gpus_person": Label(
        "A person’s limit within the window, GPUs", "GPUs", "Empty for any number."
    ),
    "window_usd_team": Label(
        "A team’s limit within the window, money", "USD", "Empty for any amount."
    ),
    "window_usd_person": Label(
        "A person’s limit within the window, money", "USD", "Empty for any amount."
    ),
    "automatic_environments": Label("Environments"),
    "automatic_beyond_soft_budget": Label(
        "Automatic beyond the soft stage of a budget"
    ),
    "least_use_percent": Label(
        "Use of what is held, at least", "%", "0 asks for none."
    ),
    "automatic_when_unmeasured": Label("Counts as used where nothing is measured"),
    "use_after_hours": Label(
        "Use is measured after",
        "hours",
        "GPUs that a team has only just been given are not called unused.",
    ),
    "use_after_samples": Label(
        "and after", "readings", "A cluster is read at most once a minute."
    ),
    "keep_free_gpus": Label("GPUs that stay free", "GPUs"),
    "reversible_minutes": Label("Undoing it takes, at most", "minutes"),
    "carried_out_hours": Label(
        "Carried out within, where a person does it",
        "hours",
        "Then they are reminded, after twice as long leadership is told.",
    ),
}
STEP: Mapping[str, Label] = {
    "by": Label("who decides"),
    "name": Label("called"),
    "level": Label("level of manager"),
    "quorum": Label("how many of them"),
    "target_hours": Label("target", "hours"),
    "remind_hours": Label("reminder after", "hours"),
    "escalate_hours": Label("passed on after", "hours"),
    "escalate_to": Label("passed on to"),
}
LAPSE = Label("Nobody decides: lapses after", "days")


def said(value: Any, unit: str = "") -> str:
    """A value with its unit: "16 GPUs", "$1,500", "no limit", "dev or test", "yes"."""
    if value is None:
        return "no limit"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " or ".join(map(str, value)) or "none"
    if isinstance(value, Decimal):
        return (
            usd(value)
            if value == value.to_integral_value()
            else f"${value.normalize():,f}"
        )
    if isinstance(value, str):
        return seat_words(value) if value else "nothing"
    return f"{value:,} {unit if value != 1 else unit.removesuffix('s')}".strip()


def threshold(name: str, value: Any) -> str:
    """A threshold's value in words."""
    return said(value, THRESHOLDS[name].unit)


def where(kinds: Where) -> str:
    """Which asks are meant: "dataset, production"; "every ask" when nothing is said."""
    parts = [kinds.offerings, kinds.environments, kinds.flavors, kinds.tiers]
    return ", ".join(" or ".join(part) for part in parts if part) or "every ask"


def where_by_kind(kinds: Where) -> str:
    """The same with what each name is of: "environments “dev” or “test”; flavors “a100”"."""
    named = {
        each.name: [f"“{name}”" for name in getattr(kinds, each.name)]
        for each in fields(Where)
    }
    return "; ".join(
        f"{kind} {' or '.join(part)}" for kind, part in named.items() if part
    )


def sizes(route: Route) -> str:
    """From which size a route takes an ask."""
    found = [] if route.gpus_from is None else [said(route.gpus_from, "GPUs")]
    found += [] if route.usd_from is None else [said(route.usd_from)]
    return f"from {' or '.join(found)}" if found else "any size"


def step(plan: StepPlan) -> str:
    """One step in a line: who, how many, and what happens when they are silent."""
    many = f", {plan.quorum} of them" if plan.quorum > 1 else ""
    return (
        f"{plan.words}{many}; target {plan.target_hours} h, reminder after {plan.remind_hours} h, "
        f"after {plan.escalate_hours} h to {seat_words(plan.escalate_to)}"
    )


def route(way: Route) -> str:
    """A route in a line."""
    return f"{where(way.where)}, {sizes(way)}: {', then '.join(map(step, way.steps))}"

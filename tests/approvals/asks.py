"""Asks, standings and policies that pure tests begin with, one by one and generated."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import prod
from typing import Any

from hypothesis import strategies as st

from allocations.budgets.money import Left
from catalogue.offerings import OFFERINGS
from policy.document import (
    ENGINEERING_LEADERSHIP,
    MANAGERS,
    PLATFORM_LEADS,
    Override,
    Policy,
    Route,
    StepPlan,
    Thresholds,
    Where,
)
from policy.rules import Arrival, Ask, Standing

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MONTHS = [date(2026 + month // 12, month % 12 + 1, 1) for month in range(10, 23)]
GROUP = "group:00000000-0000-4000-9000-000000000042"


def budget(
    left: Decimal | str | int = 100_000,
    limit: str | int = 100_000,
    *,
    hours: tuple[int, int] | None = None,
    soft: int = 80,
) -> Mapping[date, Left]:
    """The same of every month: USD left of a limit, and GPU-hours left of a limit."""
    of_hours = (Decimal(hours[0]), Decimal(hours[1])) if hours else (None, None)
    hours_left, hours_limit = of_hours
    return dict.fromkeys(
        MONTHS, Left(Decimal(left), Decimal(limit), hours_left, hours_limit, soft)
    )


def standing(**changes: Any) -> Standing:
    """24 GPUs, all of them free, nothing held and money enough."""
    usual: dict[str, Any] = {
        "now": NOW,
        "free_gpus": 24,
        "total_gpus": 24,
        "budget": budget(),
    }
    return Standing(**(usual | changes))


def ask(count: int = 1, *, length: timedelta = 3 * DAY, **changes: Any) -> Ask:
    """GPUs at $1.00 for three days in dev."""
    usual: dict[str, Any] = {
        "environment": "dev",
        "flavor": "a100",
        "usd_per_hour_each": Decimal(1),
    }
    return Ask(count=count, until=NOW + length, **(usual | changes))


USD = st.decimals(0, 60_000, places=2)
# Every ask there may be, by the choices it is made of: one number drawn is one ask, which keeps drawing 10,000 cheap.
CHOICES: Mapping[str, Sequence[Any]] = {
    "count": range(1, 33),
    "gpus_each": (0, 1, 1, 1, 2, 4),
    "usd_per_hour_each": range(100_001),  # in hundredths of a cent
    "until": range(60, 70 * 86_400),  # in seconds from now
    "offering": tuple(OFFERINGS),
    "environment": ("dev", "dev", "test", "production", ""),
    "flavor": ("a100", "t4", ""),
    "tier": ("standard", "trusted"),
    "reversible_minutes": (1, 1, 1, 5, 10, 60, None),
    "decided_by_people": (False,) * 7 + (True,),
    "by_person": (False, True),
    "arrival": tuple(Arrival),
}


def numbered(number: int) -> Ask:
    """The ask of this number, below the product of how many choices there are."""
    made: dict[str, Any] = {}
    for name, choices in CHOICES.items():
        number, place = divmod(number, len(choices))
        made[name] = choices[place]
    made["usd_per_hour_each"] = Decimal(made["usd_per_hour_each"]).scaleb(-4)
    made["until"] = NOW + timedelta(seconds=made["until"])
    return Ask(**made)


ASKS = st.integers(0, prod(len(choices) for choices in CHOICES.values()) - 1).map(
    numbered
)
LEFT = st.builds(
    Left,
    USD,
    USD,
    st.none() | st.decimals(0, 20_000, places=2),
    st.none() | st.decimals(0, 20_000, places=2),
    st.integers(1, 100),
).map(
    lambda left: (
        left
        if left.gpu_hours is None or left.gpu_hours_limit is not None
        else left._replace(gpu_hours_limit=left.gpu_hours)
    )
)
BUDGETS = st.lists(LEFT, min_size=1, max_size=3).map(
    lambda given: {
        month: given[place % len(given)] for place, month in enumerate(MONTHS[:6])
    }
)
STANDINGS = st.builds(
    Standing,
    now=st.just(NOW),
    held_gpus=st.integers(0, 20),
    recent_team_gpus=st.integers(0, 8),
    recent_person_gpus=st.integers(0, 8),
    recent_team_usd=st.none() | st.decimals(0, 9_000, places=2),
    recent_person_usd=st.none() | st.decimals(0, 9_000, places=2),
    free_gpus=st.none() | st.integers(-2, 40),
    total_gpus=st.none() | st.integers(8, 80),
    use_percent=st.none() | st.decimals(0, 100, places=1),
    held_since=st.none()
    | st.timedeltas(timedelta(0), 14 * DAY).map(lambda age: NOW - age),
    use_samples=st.none() | st.integers(0, 2_000),
    ready_gpus=st.none() | st.integers(0, 40),
    cordoned_gpus=st.integers(0, 8),
    growing_minutes=st.integers(0, 240),
    budget=BUDGETS,
)
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "automatic_gpus": st.integers(0, 16),
    "automatic_gpu_hours": st.none() | st.integers(0, 20_000),
    "automatic_usd": USD,
    "unconfirmed_usd": USD,
    "automatic_days": st.integers(0, 60),
    "longest_days": st.integers(60, 120),
    "window_days": st.integers(1, 30),
    "window_gpus_team": st.integers(16, 48),
    "window_gpus_person": st.none() | st.integers(4, 40),
    "window_usd_team": st.none() | USD,
    "window_usd_person": st.none() | USD,
    "automatic_environments": st.sampled_from(
        [("dev", "test"), ("dev", "test", "production"), ("test",), ()]
    ),
    "automatic_beyond_soft_budget": st.booleans(),
    "least_use_percent": st.integers(0, 100),
    "automatic_when_unmeasured": st.booleans(),
    "use_after_hours": st.integers(0, 336),
    "use_after_samples": st.integers(0, 2_000),
    "keep_free_gpus": st.integers(0, 8),
    "reversible_minutes": st.integers(1, 90),
    "carried_out_hours": st.integers(1, 9_600),
}
WHERES = st.builds(
    Where,
    offerings=st.lists(st.sampled_from(list(OFFERINGS)), max_size=2, unique=True).map(
        tuple
    ),
    environments=st.lists(st.sampled_from(["dev", "production"]), max_size=1).map(
        tuple
    ),
    flavors=st.lists(st.sampled_from(["a100", "t4"]), max_size=1).map(tuple),
    tiers=st.lists(st.just("trusted"), max_size=1).map(tuple),
)
STEPS = st.builds(
    StepPlan,
    by=st.sampled_from([PLATFORM_LEADS, ENGINEERING_LEADERSHIP, GROUP]),
    name=st.sampled_from(["", "the security board", "Ärzte & Söhne: “1”"]),
    quorum=st.integers(1, 9),
    target_hours=st.integers(1, 9_600),
    remind_hours=st.integers(1, 20),
    escalate_hours=st.integers(21, 9_600),
    escalate_to=st.sampled_from([PLATFORM_LEADS, ENGINEERING_LEADERSHIP, GROUP]),
) | st.builds(StepPlan, by=st.just(MANAGERS), level=st.integers(1, 9))
STEP_LISTS = st.lists(STEPS, min_size=1, max_size=3).map(tuple)
SIZED = st.builds(
    Route,
    name=st.text("abc- é", max_size=10),
    where=WHERES,
    gpus_from=st.integers(1, 64),
    usd_from=st.none() | USD,
    steps=STEP_LISTS,
)
POLICIES = st.builds(
    lambda thresholds, overrides, sized, last, days: Policy(
        thresholds=thresholds,
        overrides=tuple(overrides),
        routes=(*sized, last),
        lapse_days=days,
    ),
    st.builds(Thresholds, **NUMBERS),
    st.lists(
        st.builds(
            Override, where=WHERES, set=st.fixed_dictionaries({}, optional=NUMBERS)
        ),
        max_size=2,
    ),
    st.lists(SIZED, max_size=2),
    st.builds(Route, name=st.just("ordinary"), steps=STEP_LISTS),
    st.integers(1, 400),
)
# Policies that leave much to themselves: with them about half of the asks are automatic, or nearly.
MILD = st.builds(
    Thresholds,
    automatic_gpus=st.integers(4, 16),
    automatic_gpu_hours=st.none(),
    automatic_usd=st.decimals(100, 20_000, places=2),
    automatic_days=st.integers(5, 60),
    window_gpus_team=st.integers(20, 48),
    window_gpus_person=st.none(),
    automatic_environments=st.just(("dev", "test", "production")),
    least_use_percent=st.integers(0, 30),
    keep_free_gpus=st.integers(0, 3),
    reversible_minutes=st.integers(10, 90),
).map(lambda thresholds: Policy(thresholds=thresholds))

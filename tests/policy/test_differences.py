"""What differs between two policies is said line by line, and nothing that differs is left out."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.differences import Difference, differences
from policy.document import (
    LEADERSHIP,
    LEADS,
    Override,
    Policy,
    Route,
    StepPlan,
    Thresholds,
    Where,
)
from policy.words import THRESHOLDS

USUAL = Policy(overrides=())
DEV = Where(environments=("dev",))
FOR_DEV = Override(where=DEV, set={"automatic_gpus": 4})
FOR_TRUSTED = Override(where=Where(tiers=("trusted",)), set={"automatic_gpus": 3})
LARGE, ORDINARY = USUAL.routes

FIRST = "platform leads; target 24 h, reminder after 8 h, after 48 h to engineering leadership"
SECOND = "engineering leadership; target 48 h, reminder after 24 h, after 96 h to engineering leadership"


def with_thresholds(**numbers: Any) -> Policy:
    """The usual policy with other numbers."""
    return replace(USUAL, thresholds=replace(USUAL.thresholds, **numbers))


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        pytest.param(USUAL, [], id="the same"),
        pytest.param(
            with_thresholds(automatic_gpus=1, automatic_usd=Decimal(900)),
            [
                "GPUs in one request: 2 GPUs → 1 GPU",
                "Money for the whole time: $1,500 → $900",
            ],
            id="numbers",
        ),
        pytest.param(
            with_thresholds(
                automatic_gpu_hours=None,
                automatic_environments=(),
                automatic_when_unmeasured=False,
            ),
            [
                "GPU-hours in one request: 700 GPU-hours → no limit",
                "Environments: dev or test → none",
                "Counts as used where nothing is measured: yes → no",
            ],
            id="what has no number",
        ),
        pytest.param(
            replace(USUAL, overrides=(FOR_DEV,)),
            ["GPUs in one request, for dev: nothing → 4 GPUs"],
            id="an exception comes",
        ),
        pytest.param(
            replace(
                USUAL, routes=(replace(LARGE, gpus_from=4, steps=(LEADS,)), ORDINARY)
            ),
            [
                "Route large: from: 8 GPUs → 4 GPUs",
                f"Route large, step 2: {SECOND} → nothing",
            ],
            id="a route",
        ),
        pytest.param(
            replace(
                USUAL,
                routes=(
                    LARGE,
                    replace(
                        ORDINARY, steps=(replace(LEADS, quorum=2, remind_hours=4),)
                    ),
                ),
            ),
            [
                "Route ordinary, step 1: how many of them: 1 → 2",
                "Route ordinary, step 1: reminder after: 8 hours → 4 hours",
            ],
            id="a step",
        ),
        pytest.param(
            replace(USUAL, routes=(ORDINARY,), lapse_days=7),
            [
                f"Route large: every ask, from 8 GPUs or $25,000: {FIRST}, then {SECOND} → nothing",
                "Nobody decides: lapses after: 14 days → 7 days",
            ],
            id="a route goes",
        ),
        pytest.param(
            replace(
                USUAL,
                routes=(replace(LARGE, where=DEV, usd_from=Decimal(30_000)), ORDINARY),
            ),
            [
                "Route large: for: every ask → dev",
                "Route large: from: $25,000 → $30,000",
            ],
            id="whom a route is for",
        ),
    ],
)
def test_each_difference_is_a_line_with_its_place(
    after: Policy, lines: list[str]
) -> None:
    assert [each.line for each in differences(USUAL, after)] == lines


def test_the_order_of_exceptions_and_routes_is_told_because_it_decides() -> None:
    before = replace(USUAL, overrides=(FOR_DEV, FOR_TRUSTED))
    after = replace(USUAL, overrides=(FOR_TRUSTED, FOR_DEV), routes=(ORDINARY, LARGE))
    assert differences(before, after) == (
        Difference("Order of exceptions", "dev, trusted", "trusted, dev"),
        Difference("Order of routes", "large, ordinary", "ordinary, large"),
    )


def test_two_exceptions_for_the_same_asks_are_told_apart() -> None:
    again = replace(FOR_DEV, set={"automatic_gpus": 6})
    lines = differences(
        replace(USUAL, overrides=(FOR_DEV,)), replace(USUAL, overrides=(FOR_DEV, again))
    )
    assert lines == (Difference("GPUs in one request, for dev (2)", None, "6 GPUs"),)


def test_an_exception_that_says_another_number_is_told_with_both() -> None:
    before = replace(USUAL, overrides=(FOR_DEV,))
    after = replace(USUAL, overrides=(replace(FOR_DEV, set={"automatic_gpus": 1}),))
    assert [each.line for each in differences(before, after)] == [
        "GPUs in one request, for dev: 4 GPUs → 1 GPU"
    ]


def test_an_environment_and_a_flavor_of_one_name_are_told_apart() -> None:
    before = replace(USUAL, overrides=(FOR_DEV,))
    for_flavor = replace(FOR_DEV, where=Where(flavors=("dev",)))
    [found] = differences(before, replace(USUAL, overrides=(for_flavor,)))
    assert found.line == "Exception for dev: environments “dev” → flavors “dev”"


def test_every_threshold_has_a_label() -> None:
    assert set(THRESHOLDS) == set(Thresholds.__dataclass_fields__)


NAMES = st.lists(
    st.sampled_from(["dev", "test", "a", "a or b"]), max_size=2, unique=True
).map(tuple)
WHERE = st.builds(Where, environments=NAMES, tiers=NAMES)
SETS = st.dictionaries(
    st.sampled_from(["automatic_gpus", "automatic_days"]), st.integers(0, 3), max_size=2
)
STEPS = st.lists(
    st.builds(
        StepPlan,
        by=st.sampled_from([LEADS.by, LEADERSHIP.by]),
        quorum=st.integers(1, 2),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
ROUTES = st.builds(
    Route,
    name=st.sampled_from(["", "x", "y"]),
    where=WHERE,
    gpus_from=st.none() | st.integers(0, 2),
    usd_from=st.none() | st.sampled_from([Decimal(1), Decimal("1.5")]),
    steps=STEPS,
)
POLICIES = st.builds(
    Policy,
    thresholds=st.builds(Thresholds, automatic_gpus=st.integers(0, 2)),
    overrides=st.lists(st.builds(Override, where=WHERE, set=SETS), max_size=3).map(
        tuple
    ),
    routes=st.lists(ROUTES, max_size=3).map(tuple),
    lapse_days=st.integers(1, 2),
)


@settings(max_examples=50)
@given(POLICIES, POLICIES)
def test_nothing_differs_if_and_only_if_the_policies_are_the_same(
    one: Policy, other: Policy
) -> None:
    assert differences(one, one) == ()
    assert bool(differences(one, other)) is (one != other)
    assert all(each.before != each.after for each in differences(one, other))

"""Spot beside on-demand: what is saved, what an interruption costs, and where it stops to pay."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from workloads.economics import Plan, compare

# Eight A100 of seed prices for a day, a checkpoint every half hour, an interruption of a node every ten hours.
PLAN = Plan(
    gpus=8,
    nodes=1,
    hours=Decimal(24),
    on_demand=Decimal("3.67"),
    spot=Decimal("1.46"),
    rate=Decimal("0.1"),
    interval=30,
    restart=15,
)


def test_an_interruption_loses_half_an_interval_and_the_restart() -> None:
    found = compare(PLAN)
    assert found.lost == Decimal("1.46") * 8 * Decimal("0.5")
    assert found.on_demand == Decimal("704.64")
    assert found.hours is not None
    assert found.spot is not None
    assert round(found.hours, 2) == Decimal("25.26")
    assert round(found.spot, 2) == Decimal("295.07")
    assert round(found.saves, 2) == Decimal("409.57")
    assert round(found.interruptions, 1) == Decimal("2.5")


def test_at_the_break_even_both_cost_the_same() -> None:
    found = compare(PLAN)
    assert found.break_even is not None
    at = compare(replace(PLAN, interval=found.break_even))
    beyond = compare(replace(PLAN, interval=found.break_even + 5))
    assert abs(at.saves) < Decimal(2)
    assert at.saves >= 0 > beyond.saves


def test_every_node_of_a_gang_can_interrupt_all_of_them() -> None:
    gang = compare(replace(PLAN, nodes=8, gpus=64))
    assert gang.interruptions / Decimal(8) > compare(PLAN).interruptions


def test_without_checkpoints_a_long_run_may_never_finish() -> None:
    found = compare(replace(PLAN, interval=None, hours=Decimal(48)))
    assert (found.spot, found.hours) == (None, None)
    assert found.saves == -found.on_demand


def test_without_interruptions_only_the_price_counts() -> None:
    found = compare(replace(PLAN, rate=Decimal(0)))
    assert (found.hours, found.break_even, found.interruptions) == (
        Decimal(24),
        None,
        Decimal(0),
    )
    assert compare(replace(PLAN, rate=Decimal(0), spot=Decimal(4))).break_even == 0


def test_spot_that_is_no_cheaper_never_pays() -> None:
    assert compare(replace(PLAN, spot=PLAN.on_demand)).break_even == 0


@given(
    st.builds(
        replace,
        st.just(PLAN),
        rate=st.decimals("0.001", "1", places=3),
        spot=st.decimals("0.01", "5", places=2),
        interval=st.integers(1, 600),
        nodes=st.integers(1, 32),
    )
)
def test_more_checkpoints_never_cost_more(plan: Plan) -> None:
    often, rarely = (
        compare(plan),
        compare(replace(plan, interval=(plan.interval or 0) * 2)),
    )
    if rarely.spot is not None:
        assert often.spot is not None
        assert often.spot <= rarely.spot
    assert often.lost <= rarely.lost

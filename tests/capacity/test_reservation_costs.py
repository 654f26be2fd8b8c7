"""What a reservation has cost, and what of that was for idle machines."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from capacity.reservations.advice import Day
from capacity.reservations.costs import by_day, costs

PRICE = Decimal("2.00")
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)


def a_day(
    later: int = 0, *, reserved: int = 4, used: int = 1, looks: int = 10, most: int = 2
) -> Day:
    """A day on which it looked the same at every look."""
    day = date(2026, 11, 16) + timedelta(days=later)
    return Day(
        day=day,
        looks=looks,
        reserved_sum=looks * reserved,
        used_sum=looks * used,
        most=most,
    )


def test_a_day_costs_its_hours_whether_machines_ran_or_not() -> None:
    found = costs(
        [a_day()],
        usd_per_hour_each=PRICE,
        begins=MONDAY,
        ends=MONDAY + timedelta(days=1),
    )
    assert (found.usd, found.idle_usd) == (Decimal(192), Decimal(144))


def test_only_hours_between_its_beginning_and_its_end_count() -> None:
    begins, ends = MONDAY + timedelta(hours=18), MONDAY + timedelta(hours=30)
    found = by_day(
        [a_day(), a_day(1)], usd_per_hour_each=PRICE, begins=begins, ends=ends
    )
    assert [one.hours for one in found] == [Decimal(6), Decimal(6)]


def test_what_changed_within_a_day_counts_by_its_average() -> None:
    changed = Day(
        day=date(2026, 11, 16), looks=4, reserved_sum=2 + 2 + 4 + 4, used_sum=4, most=2
    )
    [found] = by_day(
        [changed],
        usd_per_hour_each=PRICE,
        begins=MONDAY,
        ends=MONDAY + timedelta(days=1),
    )
    assert (found.reserved, found.used, found.usd) == (
        Decimal(3),
        Decimal(1),
        Decimal(144),
    )


def test_a_day_without_a_look_counts_as_the_one_before_it() -> None:
    ends = MONDAY + timedelta(days=3)
    found = by_day(
        [a_day(), a_day(2, reserved=2)],
        usd_per_hour_each=PRICE,
        begins=MONDAY,
        ends=ends,
    )
    assert [(int(one.reserved), one.is_read) for one in found] == [
        (4, True),
        (4, False),
        (2, True),
    ]


def test_what_never_began_or_was_never_looked_at_costs_nothing_that_is_known() -> None:
    assert costs([a_day()], usd_per_hour_each=PRICE, begins=None, ends=MONDAY).usd == 0
    assert (
        costs(
            [], usd_per_hour_each=PRICE, begins=MONDAY, ends=MONDAY + timedelta(days=9)
        ).usd
        == 0
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 20)), max_size=12
    ),
    st.integers(0, 400),
)
def test_idle_hours_never_cost_more_than_all_hours_and_both_only_grow(
    numbers: list[tuple[int, int, int]], hours: int
) -> None:
    days = [
        a_day(at, reserved=max(pair), used=min(pair), looks=looks)
        for at, (*pair, looks) in enumerate(numbers)
    ]
    ends = MONDAY + timedelta(hours=hours)
    now = costs(days, usd_per_hour_each=PRICE, begins=MONDAY, ends=ends)
    later = costs(
        days, usd_per_hour_each=PRICE, begins=MONDAY, ends=ends + timedelta(hours=7)
    )
    assert 0 <= now.idle_usd <= now.usd <= later.usd
    assert now.idle_usd <= later.idle_usd

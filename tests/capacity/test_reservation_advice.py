"""What the use of a reservation suggests."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from capacity.reservations.advice import Advice, Day, Deed, advice

PRICE = Decimal("3.673")
FIRST = date(2026, 11, 1)


def days(*most: int, over: int = 0, held: int = 4) -> list[Day]:
    """Days of a hundred looks at which so many ran at most, of so many that were reserved."""
    return [
        Day(
            day=FIRST + timedelta(days=at),
            looks=100,
            reserved_sum=100 * held,
            used_sum=100 * one,
            most=one,
            over=over,
        )
        for at, one in enumerate(most)
    ]


def of(found: list[Day], reserved: int = 4) -> Advice:
    """What is suggested."""
    return advice(found, reserved=reserved, usd_per_hour_each=PRICE)


def test_two_days_say_nothing() -> None:
    assert of(days(0, 0)).deed is Deed.WAIT


def test_what_never_ran_is_released_with_what_that_saves() -> None:
    found = of(days(1, 2, 1, 2))
    assert (found.deed, found.machines) == (Deed.RELEASE, 2)
    assert (
        found.sentence
        == "In 4 days at most 2 of 4 ran. Release 2: that saves $1,234 a week."
    )


def test_what_was_full_at_times_is_kept() -> None:
    assert of(days(0, 4, 0)).deed is Deed.KEEP


def test_what_often_ran_without_a_guarantee_is_grown() -> None:
    found = of(days(6, 5, 6, over=30))
    assert (found.deed, found.machines) == (Deed.GROW, 2)
    assert of(days(6, 5, 6, over=2)).deed is Deed.KEEP


def test_what_was_before_a_fortnight_counts_no_more() -> None:
    assert of(days(4, *[1] * 14)).machines == 3
    assert of(days(4, *[1] * 13)).deed is Deed.KEEP


def test_days_from_before_it_grew_say_nothing() -> None:
    small = days(*[2] * 12, held=2)
    for grown, deed in ((2, Deed.WAIT), (3, Deed.KEEP)):
        later = [
            replace(one, day=one.day + timedelta(days=12))
            for one in days(*[5] * grown, held=5)
        ]
        assert of([*small, *later], reserved=5).deed is deed
    partly = replace(small[-1], reserved_sum=499, most=5)
    assert of([*days(1, 1, 1, held=5)[:2], partly], reserved=5).deed is Deed.WAIT


def test_days_from_before_it_shrank_count() -> None:
    found = of(days(*[3] * 5, held=6))
    assert (found.deed, found.machines) == (Deed.RELEASE, 1)


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 9))
def test_nothing_is_released_that_ran_lately_and_something_always_stays_said(
    most: list[int], reserved: int
) -> None:
    found = of(days(*most, held=9), reserved)
    assert found.sentence
    if found.deed is Deed.RELEASE:
        assert reserved - found.machines >= max(most[-14:])

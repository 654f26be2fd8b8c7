"""How many GPUs are free from when on: levels, the fewest within a time, and the first time with enough."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from allocations.bookings.levels import (
    Change,
    Level,
    combined,
    earliest,
    levels,
    lowest,
)

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MOMENTS = st.integers(-48, 480).map(lambda hours: NOW + hours * HOUR)
CHANGES = st.lists(st.builds(Change, MOMENTS, st.integers(-8, 8)), max_size=8)


def test_what_ends_frees_and_what_is_booked_takes() -> None:
    known = levels(
        4,
        [Change(NOW + 2 * DAY, 8), Change(NOW + DAY, -2), Change(NOW + 3 * DAY, 2)],
        now=NOW,
    )
    assert known == (
        Level(NOW, 4),
        Level(NOW + DAY, 2),
        Level(NOW + 2 * DAY, 10),
        Level(NOW + 3 * DAY, 12),
    )


def test_what_is_late_counts_from_now_on() -> None:
    assert levels(4, [Change(NOW - HOUR, -2)], now=NOW) == (Level(NOW, 2),)


def test_the_end_of_a_time_is_not_within_it() -> None:
    known = (Level(NOW, 4), Level(NOW + DAY, 0))
    assert lowest(known, start=NOW, end=NOW + DAY) == 4
    assert lowest(known, start=NOW, end=NOW + DAY + HOUR) == 0
    assert lowest(known, start=NOW + DAY, end=NOW + DAY) == 0


def test_the_first_time_with_enough_lies_behind_what_is_booked() -> None:
    known = (Level(NOW, 4), Level(NOW + DAY, 0), Level(NOW + 2 * DAY, 4))
    latest = NOW + 90 * DAY
    assert earliest(known, gpus=4, length=DAY, since=NOW, latest=latest) == NOW
    assert (
        earliest(known, gpus=4, length=DAY + HOUR, since=NOW, latest=latest)
        == NOW + 2 * DAY
    )
    assert earliest(known, gpus=5, length=HOUR, since=NOW, latest=latest) is None
    assert earliest(known, gpus=4, length=2 * DAY, since=NOW, latest=NOW + DAY) is None


@given(st.integers(0, 16), CHANGES, MOMENTS, st.integers(1, 200))
def test_the_fewest_are_those_of_the_worst_hour(
    free: int, changes: list[Change], start: datetime, hours: int
) -> None:
    start = max(start, NOW)
    known = levels(free, changes, now=NOW)
    by_hour = [
        free + sum(one.gpus for one in changes if one.at <= start + hour * HOUR)
        for hour in range(hours)
    ]
    assert lowest(known, start=start, end=start + hours * HOUR) == min(by_hour)


@given(st.integers(0, 16), CHANGES, st.integers(1, 16), st.integers(1, 200))
def test_the_first_time_with_enough_has_enough_and_none_before_it(
    free: int, changes: list[Change], gpus: int, hours: int
) -> None:
    known, length, latest = levels(free, changes, now=NOW), hours * HOUR, NOW + 30 * DAY
    found = earliest(known, gpus=gpus, length=length, since=NOW, latest=latest)
    for hour in range(30 * 24):
        at = NOW + hour * HOUR
        fits = lowest(known, start=at, end=at + length) >= gpus
        if found is None or at < found:
            assert not fits
        elif at == found:
            assert fits


def test_levels_that_follow_from_others_change_whenever_one_of_those_does() -> None:
    first = (Level(NOW, 4), Level(NOW + DAY, 1))
    second = (Level(NOW, 3), Level(NOW + HOUR, 5))
    expected = (Level(NOW, 7), Level(NOW + HOUR, 9), Level(NOW + DAY, 6))
    assert combined([first, second], by=sum) == expected
    assert [one.free for one in combined([first, second], by=min)] == [3, 4, 1]
    assert combined([], by=sum) == ()

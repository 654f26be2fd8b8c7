"""Use by weeks: which weeks are told, what of them was held, measured and used, and how they are added up."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from insights.utilisation.weeks import (
    Looks,
    Stretch,
    Week,
    by_week,
    empty_weeks,
    percent_of,
    summed,
)

# A Friday, in the week of Monday the 16th.
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MONDAY = date(2026, 11, 16)
D = Decimal


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    """A moment of November 2026."""
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def stretch(start: datetime, end: datetime, gpus: int = 1, usd: str = "1") -> Stretch:
    """GPUs at a price for each of them."""
    return Stretch(start=start, end=end, gpus=gpus, usd_per_hour=gpus * D(usd))


def looked(*days: int, held: int = 4, used: int = 1) -> Mapping[date, Looks]:
    """Days of November on which looks saw the same."""
    return {date(2026, 11, day): Looks(held=held, used=used) for day in days}


def test_twelve_whole_weeks_are_told_and_the_one_under_way() -> None:
    weeks = empty_weeks(NOW)
    assert [weeks[0].begins, weeks[-1].begins] == [date(2026, 8, 24), MONDAY]
    assert [one.is_over for one in weeks] == [True] * 12 + [False]
    assert weeks[-1].until == NOW
    assert {one.begins.weekday() for one in weeks} == {0}


@pytest.mark.parametrize(
    ("now", "begins", "name"),
    [
        (at(16), MONDAY, "2026-W47"),
        (at(16) - timedelta(seconds=1), date(2026, 11, 9), "2026-W46"),
        # It is still Sunday in UTC.
        (
            datetime(2026, 11, 16, 1, tzinfo=timezone(timedelta(hours=2))),
            date(2026, 11, 9),
            "2026-W46",
        ),
        (datetime(2027, 1, 2, tzinfo=UTC), date(2026, 12, 28), "2026-W53"),
        (datetime(2025, 12, 29, 3, tzinfo=UTC), date(2025, 12, 29), "2026-W01"),
    ],
)
def test_a_week_begins_on_monday_in_utc(now: datetime, begins: date, name: str) -> None:
    last = empty_weeks(now)[-1]
    assert (last.begins, last.name) == (begins, name)


def test_a_week_counts_the_hours_for_which_something_was_held_and_no_others() -> None:
    held = [
        # From Sunday into Monday, and two hours of Wednesday.
        stretch(at(15, 18), at(16, 6), gpus=2),
        stretch(at(18, 10), at(18, 12)),
        # It ends later: until now.
        stretch(at(20, 9, 30), at(25)),
    ]
    before, last = by_week(held, {}, now=NOW)[-2:]
    assert (before.held, last.held) == (D("12.00"), D("16.50"))


def test_what_ended_before_the_first_week_or_begins_later_counts_nothing() -> None:
    first = datetime(2026, 8, 24, tzinfo=UTC)
    held = [
        stretch(first - timedelta(days=3), first),
        stretch(NOW, NOW + timedelta(days=1)),
        stretch(first - timedelta(days=3), first + timedelta(hours=1)),
    ]
    assert [one.held for one in by_week(held, {}, now=NOW)] == [D(1), *[D(0)] * 12]


def test_of_each_day_as_much_is_used_as_its_looks_saw_on_average() -> None:
    # 96 GPU-hours on Monday, a quarter of them used; 48 on Tuesday, all of them.
    held = [stretch(at(16), at(17), gpus=4), stretch(at(17), at(18), gpus=2)]
    looks = {**looked(16), **looked(17, held=2, used=2)}
    last = by_week(held, looks, now=NOW)[-1]
    assert (last.held, last.measured, last.used) == (D(144), D(144), D(72))
    assert last.percent == D(50)
    assert last.unused_usd == D(72)


def test_a_day_on_which_nobody_looked_is_neither_used_nor_unused() -> None:
    last = by_week([stretch(at(16), at(18))], looked(16), now=NOW)[-1]
    assert (last.held, last.measured, last.used) == (D(48), D(24), D(6))
    assert (last.percent, last.unused_usd) == (D(25), D(18))


def test_a_week_without_looks_or_without_gpus_is_a_gap_and_never_zero() -> None:
    # Nothing was held in the week before, whatever was seen on a day of it.
    gap, unmeasured = by_week([stretch(at(16), at(18))], looked(10), now=NOW)[-2:]
    for one in (gap, unmeasured):
        assert (one.used, one.percent, one.unused_usd) == (None, None, None)
    assert (gap.held, unmeasured.held) == (D(0), D(48))
    [idle] = by_week([stretch(at(16), at(18))], looked(16, used=0), now=NOW)[-1:]
    assert (idle.used, idle.percent) == (D(0), D(0))


def test_each_price_counts_for_its_own_gpus() -> None:
    held = [stretch(at(16), at(17)), stretch(at(16), at(17), usd="2.5")]
    last = by_week(held, looked(16, held=2, used=1), now=NOW)[-1]
    assert last.unused_usd == D("42.00")


def test_places_are_added_up_and_a_gap_in_one_is_none_in_both() -> None:
    one = by_week([stretch(at(16), at(17))], looked(16), now=NOW)
    other = by_week([stretch(at(9), at(10)), stretch(at(16), at(17))], {}, now=NOW)
    total = summed([one, other], now=NOW)
    assert (total[-1].held, total[-1].measured, total[-1].used) == (D(48), D(24), D(6))
    assert total[-1].unused_usd == D(18)
    assert (total[-2].held, total[-2].used, total[-2].percent) == (D(24), None, None)
    assert total[-1].until == NOW


def test_no_place_has_empty_weeks() -> None:
    assert summed([], now=NOW) == empty_weeks(NOW)


def test_several_weeks_have_the_share_of_their_hours_not_of_their_shares() -> None:
    weeks = [
        Week(begins=MONDAY, until=NOW, held=D(90), measured=D(90), used=D(90)),
        Week(begins=MONDAY, until=NOW, held=D(10), measured=D(10), used=D(0)),
        Week(begins=MONDAY, until=NOW, held=D(500)),
    ]
    assert percent_of(weeks) == D(90)
    assert percent_of(weeks[2:]) is None


def test_the_clocks_of_people_change_no_week() -> None:
    """The 25th of October has 25 hours in Berlin, and 24 in UTC."""
    berlin = timezone(timedelta(hours=2))
    held = stretch(
        datetime(2026, 10, 19, 2, tzinfo=berlin), datetime(2026, 10, 26, tzinfo=UTC)
    )
    weeks = by_week([held], {}, now=NOW)
    assert [one.held for one in weeks if one.held] == [D(168)]

"""Weeks of use as steps in a frame, and as small bars."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from insights.utilisation.charting import week_bars, week_chart
from insights.utilisation.weeks import Week

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)


def week(
    back: int,
    held: int,
    used: int | None = None,
    *,
    measured: int = -1,
    hours: int = 168,
) -> Week:
    """A week so many weeks ago; all of what was held in it was measured, unless something else is said."""
    begins = MONDAY - timedelta(weeks=back)
    return Week(
        begins=begins.date(),
        until=begins + timedelta(hours=hours),
        held=Decimal(held),
        measured=Decimal(0 if used is None else held if measured < 0 else measured),
        used=None if used is None else Decimal(used),
    )


def backwards(line: str) -> str:
    return " ".join(reversed(line.split()))


def test_one_week_is_no_line() -> None:
    assert week_chart([]) is None
    assert week_chart([week(1, 0), week(0, 168, 10)]) is None


def test_a_week_is_as_high_as_what_was_held_on_average_and_as_wide_as_it_lasted() -> (
    None
):
    found = week_chart([week(1, 672, 168), week(0, 168, 84, hours=84)])
    assert found is not None
    assert found.top == 4
    assert found.held == ["0.0,1.0 666.7,1.0 666.7,100.0 1000.0,100.0"]
    assert found.used == ["0.0,149.5 666.7,149.5 666.7,149.5 1000.0,149.5"]
    assert found.idle == [f"{found.held[0]} {backwards(found.used[0])}"]
    assert found.begins.date() == date(2026, 11, 9)
    assert found.ends == MONDAY + timedelta(hours=84)
    assert found.is_under_way


def test_gaps_are_drawn_as_gaps_and_a_week_without_work_at_the_bottom() -> None:
    found = week_chart([week(3, 168, 0), week(2, 0), week(1, 168), week(0, 168, 168)])
    assert found is not None
    assert found.held == [
        "0.0,1.0 250.0,1.0",
        "500.0,1.0 750.0,1.0 750.0,1.0 1000.0,1.0",
    ]
    assert found.used == ["0.0,199.0 250.0,199.0", "750.0,1.0 1000.0,1.0"]
    assert found.idle == [
        "0.0,1.0 250.0,1.0 250.0,199.0 0.0,199.0",
        "750.0,1.0 1000.0,1.0 1000.0,1.0 750.0,1.0",
    ]


def test_of_a_week_that_was_measured_in_part_the_part_stands_for_all() -> None:
    found = week_chart([week(1, 336, 84, measured=168), week(0, 336, 168)])
    assert found is not None
    assert found.used == ["0.0,100.0 500.0,100.0 500.0,100.0 1000.0,100.0"]


def test_a_week_that_has_just_begun_is_not_drawn() -> None:
    weeks = [week(2, 168, 168), week(1, 168, 168), week(0, 40, 40, hours=0)]
    found = week_chart(weeks)
    assert found is not None
    assert (found.top, found.ends, found.is_under_way) == (1, MONDAY, False)


def test_what_is_rounded_makes_no_gpu_more() -> None:
    few = week(0, 0, hours=1)
    rounded = replace(
        few, held=Decimal("4.02"), measured=Decimal("4.02"), used=Decimal("4.02")
    )
    found = week_chart([week(1, 672, 672), rounded])
    assert found is not None
    assert found.top == 4
    assert found.used == found.held
    assert found.held[0].endswith("1000.0,1.0")


def test_small_bars_tell_no_use_from_a_gap() -> None:
    found = week_bars([week(2, 168, 84), week(1, 0), week(0, 168, 0)])
    assert found.track == "M0 24v-24.0h4v24.0z M10 24v-24.0h4v24.0z"
    assert found.used == "M0 24v-12.0h4v12.0z M10 24v-2.0h4v2.0z"
    assert (found.width, found.height) == (14, 24)

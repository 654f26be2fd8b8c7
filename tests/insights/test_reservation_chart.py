"""A reservation's days as lines in a frame."""

from datetime import date, timedelta
from decimal import Decimal

from capacity.reservations.costs import DayCost
from insights.reservations.charting import use_chart


def day(at: int, reserved: int, used: int, most: int) -> DayCost:
    """A day of a reservation."""
    return DayCost(
        day=date(2026, 11, 1) + timedelta(days=at),
        reserved=Decimal(reserved),
        used=Decimal(used),
        most=most,
        hours=Decimal(24),
        usd=Decimal(0),
        idle_usd=Decimal(0),
    )


def test_one_day_is_no_line() -> None:
    assert use_chart([day(0, 4, 2, 3)]) is None


def test_lines_stand_from_zero_and_what_is_idle_lies_between_them() -> None:
    found = use_chart([day(0, 4, 2, 5), day(1, 4, 4, 4), day(2, 0, 0, 0)])
    assert found is not None
    assert found.used.split()[-1] == "1000.0,199.0"
    heights = [float(point.split(",")[1]) for point in found.most.split()]
    assert heights[0] == 1
    assert found.idle.split()[:3] == found.reserved.split()
    assert found.idle.split()[3:] == found.used.split()[::-1]
    assert (found.top, found.begins, found.ends) == (
        5,
        date(2026, 11, 1),
        date(2026, 11, 3),
    )


def test_what_never_ran_and_was_never_held_is_drawn_at_zero() -> None:
    found = use_chart([day(0, 0, 0, 0), day(1, 0, 0, 0)])
    assert found is not None
    assert found.reserved == "0.0,199.0 1000.0,199.0"

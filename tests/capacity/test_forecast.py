"""When a limit is reached if use goes on as it did."""

import random
from bisect import bisect_left
from datetime import UTC, datetime, timedelta

import pytest

from capacity.chain.forecast import (
    MAX_AHEAD,
    MIN_WEEKS,
    WEEK,
    Point,
    forecast,
    quantile_80,
    weekly,
)

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def weeks(*used: float) -> list[Point]:
    """Readings of the last weeks, the newest last."""
    return [
        Point(NOW - (len(used) - 1 - number) * WEEK, one)
        for number, one in enumerate(used)
    ]


def test_a_straight_line_crosses_on_its_day() -> None:
    found = forecast(weeks(10, 20, 30, 40, 50, 60), limit=80, now=NOW)
    assert found is not None
    assert found.per_week == pytest.approx(10)
    assert (
        found.crosses_at == found.earliest == found.latest == NOW + timedelta(days=14)
    )


def test_below_five_weeks_nothing_is_said() -> None:
    assert forecast(weeks(*range(MIN_WEEKS - 1)), limit=80, now=NOW) is None
    assert forecast([], limit=80, now=NOW) is None
    # Many readings of one week are one week.
    crowd = [Point(NOW - timedelta(hours=hour), hour) for hour in range(100)]
    assert forecast(crowd, limit=80, now=NOW) is None


def test_what_falls_or_grows_too_slowly_crosses_nothing() -> None:
    falling = forecast(weeks(60, 50, 40, 30, 20), limit=80, now=NOW)
    assert falling is not None
    assert (falling.crosses_at, falling.earliest) == (None, None)
    slow = forecast(weeks(1, 2, 3, 4, 5), limit=80, now=NOW)
    assert slow is not None
    assert slow.crosses_at is None


def test_what_is_reached_already_crosses_now() -> None:
    found = forecast(weeks(80, 82, 84, 86, 88), limit=80, now=NOW)
    assert found is not None
    assert found.crosses_at == NOW


def test_what_swings_has_a_wider_interval_than_what_does_not() -> None:
    calm = forecast(weeks(20, 26, 29, 36, 40, 44), limit=60, now=NOW)
    wild = forecast(weeks(20, 36, 19, 46, 30, 44), limit=60, now=NOW)
    assert calm is not None
    assert wild is not None
    assert calm.earliest is not None
    assert calm.crosses_at is not None
    assert calm.latest is not None
    assert calm.earliest <= calm.crosses_at <= calm.latest
    assert wild.earliest is not None
    assert wild.earliest < calm.earliest
    assert wild.latest is None


def test_the_peak_of_a_week_counts() -> None:
    points = [
        Point(NOW, 5),
        Point(NOW - timedelta(days=2), 9),
        Point(NOW - timedelta(days=8), 3),
    ]
    assert [(one.at, one.used) for one in weekly(points)] == [(NOW - WEEK, 3), (NOW, 9)]


@pytest.mark.slow
def test_the_interval_holds_four_of_five_futures() -> None:
    """Lines with normal noise: what comes a week later lies in the interval about as often as it says."""
    chance = random.Random(20261125)
    inside = 0
    for _ in range(400):
        used = [50 + 3 * week + chance.gauss(0, 4) for week in range(10)]
        points, then = weeks(*used), 50 + 3 * 10 + chance.gauss(0, 4)
        # At which limits the edges lie in a week: the first ones that they do not cross within it.
        low, high = (
            bisect_left(
                range(200),
                True,
                key=lambda limit: not _crosses_within_a_week(points, limit, edge),
            )
            for edge in ("latest", "earliest")
        )
        inside += low - 1 <= then <= high
    assert 0.72 <= inside / 400 <= 0.92


def _crosses_within_a_week(points: list[Point], limit: float, edge: str) -> bool:
    found = forecast(points, limit=limit, now=NOW)
    assert found is not None
    at = getattr(found, edge)
    return at is not None and at - NOW <= WEEK


def test_quantiles_between_two_known_ones_are_the_wider() -> None:
    assert quantile_80(3) == 1.638
    assert quantile_80(11) == quantile_80(10)
    assert quantile_80(500) == 1.282
    assert timedelta(days=84) == MAX_AHEAD

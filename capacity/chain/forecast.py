"""When a limit will be reached if use goes on as in the last weeks: a straight line with its interval. Pure.

Ordinary least squares over weekly readings with a prediction interval by Student's t: Montgomery, Peck, Vining,
"Introduction to Linear Regression Analysis", chapter 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, linear_regression

WEEK = timedelta(days=7)
# Fewer weeks say nothing; further ahead than this nobody can say anything.
MIN_WEEKS, MAX_AHEAD = 5, timedelta(weeks=12)
# Two-sided 80 % quantiles of Student's t by degrees of freedom; beyond the last, the normal distribution's.
T80 = {
    3: 1.638,
    4: 1.533,
    5: 1.476,
    6: 1.440,
    7: 1.415,
    8: 1.397,
    9: 1.383,
    10: 1.372,
    12: 1.356,
    15: 1.341,
    20: 1.325,
}
NORMAL80 = 1.282


@dataclass(frozen=True)
class Point:
    """What was used at a moment."""

    at: datetime
    used: float


@dataclass(frozen=True)
class Expected:
    """What is expected at a moment, and between what it lies four times out of five."""

    at: datetime
    used: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The line and when it crosses a limit. `crosses_at` is None where it does not within twelve weeks.

    `earliest` and `latest` are where the edges of the 80 % interval cross; `latest` is None where that lies beyond.
    `weeks` is the line from now on, week by week.
    """

    per_week: float
    weeks: tuple[Expected, ...]
    crosses_at: datetime | None
    earliest: datetime | None
    latest: datetime | None


def weekly(points: Sequence[Point]) -> list[Point]:
    """The highest reading of each of the weeks before the newest one, oldest first: a peak is what hits a limit."""
    if not points:
        return []
    newest = max(one.at for one in points)
    peaks: dict[int, Point] = {}
    for one in points:
        week = (newest - one.at) // WEEK
        if week not in peaks or one.used > peaks[week].used:
            peaks[week] = Point(newest - week * WEEK, one.used)
    return [peaks[week] for week in sorted(peaks, reverse=True)]


def forecast(
    points: Sequence[Point], *, limit: float, now: datetime
) -> Forecast | None:
    """The line through weekly readings; None below five of them."""
    known = weekly(points)
    if len(known) < MIN_WEEKS:
        return None
    xs = [(one.at - now) / WEEK for one in known]
    ys = [one.used for one in known]
    slope, intercept = linear_regression(xs, ys)
    margin = _margin(
        xs, [y - intercept - slope * x for x, y in zip(xs, ys, strict=True)]
    )
    return Forecast(
        per_week=slope,
        weeks=tuple(
            Expected(
                at=now + week * WEEK,
                used=max(0, intercept + slope * week),
                low=max(0, intercept + slope * week - margin(week)),
                high=max(0, intercept + slope * week + margin(week)),
            )
            for week in range(MAX_AHEAD // WEEK + 1)
        ),
        crosses_at=_crossing(lambda x: intercept + slope * x, limit, now),
        earliest=_crossing(lambda x: intercept + slope * x + margin(x), limit, now),
        latest=_crossing(lambda x: intercept + slope * x - margin(x), limit, now),
    )


def _margin(xs: Sequence[float], errors: Sequence[float]) -> Callable[[float], float]:
    """Half of the prediction interval at a week."""
    count, mean = len(xs), fmean(xs)
    spread = math.fsum((x - mean) ** 2 for x in xs)
    sigma = math.sqrt(math.fsum(error**2 for error in errors) / (count - 2))
    quantile = quantile_80(count - 2)
    return lambda x: (
        quantile * sigma * math.sqrt(1 + 1 / count + (x - mean) ** 2 / spread)
    )


def quantile_80(free: int) -> float:
    """The two-sided 80 % quantile of Student's t with so many degrees of freedom; between two known, the wider."""
    if free > max(T80):
        return NORMAL80
    return T80[max(known for known in T80 if known <= free)]


def _crossing(
    value: Callable[[float], float], limit: float, now: datetime
) -> datetime | None:
    """The first day from now on at which a value reaches the limit; None within twelve weeks."""
    for day in range(MAX_AHEAD.days + 1):
        if value(day / 7) >= limit:
            return now + timedelta(days=day)
    return None

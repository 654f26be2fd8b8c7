"""A limit's readings and what is expected of them as lines in a frame of 1,000 by 200, zero at the bottom. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from capacity.chain.forecast import Forecast, Point

WIDTH, HEIGHT = 1000, 200
# What stands above the highest line.
ROOM = 1.08


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Points of an SVG's lines, "x,y x,y …"; `band` goes round, and is empty as `ahead` where nothing is forecast.

    `now` is where today is, `limit` how high the limit, both in the frame's units; `now_at` and `limit_at` are the same
    in percent of the frame.
    """

    used: str
    ahead: str
    band: str
    now: str
    limit: str
    now_at: str
    limit_at: str
    begins: datetime
    ends: datetime


def chart(
    points: Sequence[Point], *, limit: float, forecast: Forecast | None, now: datetime
) -> Chart | None:
    """The lines of a limit; None before there are two readings."""
    if len(points) < 2:
        return None
    weeks = forecast.weeks if forecast is not None else ()
    begins, ends = points[0].at, max([now, points[-1].at, *(one.at for one in weeks)])
    top = ROOM * max(
        [
            limit,
            *(one.used for one in points),
            *(min(one.high, 2 * limit) for one in weeks),
            # Of a limit of 0 nothing is used, either.
            1,
        ]
    )

    def place(at: datetime, value: float) -> str:
        return f"{_x(at):.1f},{_y(value):.1f}"

    def _x(at: datetime) -> float:
        return WIDTH * ((at - begins) / (ends - begins))

    def _y(value: float) -> float:
        return HEIGHT * (1 - min(value, top) / top)

    high = [place(one.at, one.high) for one in weeks]
    low = [place(one.at, one.low) for one in reversed(weeks)]
    return Chart(
        used=" ".join(place(one.at, one.used) for one in points),
        ahead=" ".join(place(one.at, one.used) for one in weeks),
        band=" ".join(high + low),
        now=f"{_x(now):.1f}",
        limit=f"{_y(limit):.1f}",
        now_at=f"{100 * _x(now) / WIDTH:.1f}",
        limit_at=f"{100 * _y(limit) / HEIGHT:.1f}",
        begins=begins,
        ends=ends,
    )

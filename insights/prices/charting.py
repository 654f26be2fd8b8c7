"""The history of a price as steps in a frame of 1,000 by 200, zero at the bottom. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

WIDTH, HEIGHT = 1000, 200
# What stands above the highest line.
ROOM = 1.08


@dataclass(frozen=True, kw_only=True)
class Point:
    """What a machine costs from a moment on, in USD an hour; None for not sold so."""

    at: datetime
    on_demand: Decimal | None
    spot: Decimal | None
    one_year: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Points of an SVG's lines, "x,y x,y …", one line for each stretch in which there was a price."""

    on_demand: list[str]
    spot: list[str]
    one_year: list[str]
    top: Decimal
    begins: datetime
    ends: datetime


def chart(points: Sequence[Point], *, now: datetime) -> Chart | None:
    """The steps of a price until now, its changes from old to new; None before some time has passed."""
    prices = [
        usd
        for one in points
        for usd in (one.on_demand, one.spot, one.one_year)
        if usd is not None
    ]
    if not prices or points[0].at >= now:
        return None
    begins, top = points[0].at, max(prices)
    ends = [one.at for one in points[1:]] + [now]

    def x(at: datetime) -> str:
        return f"{WIDTH * ((at - begins) / (now - begins)):.1f}"

    def steps(way: str) -> list[str]:
        lines: list[list[str]] = [[]]
        for point, end in zip(points, ends, strict=True):
            usd = getattr(point, way)
            if usd is None:
                lines.append([])
                continue
            y = f"{HEIGHT * (1 - float(usd) / (ROOM * float(top))):.1f}"
            lines[-1] += [f"{x(point.at)},{y}", f"{x(end)},{y}"]
        return [" ".join(line) for line in lines if line]

    return Chart(
        on_demand=steps("on_demand"),
        spot=steps("spot"),
        one_year=steps("one_year"),
        top=top,
        begins=begins,
        ends=now,
    )

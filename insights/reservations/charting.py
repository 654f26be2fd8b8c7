"""A reservation's days as lines in a frame of 1,000 by 200, zero at the bottom: reserved, used, and idle in between.

Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal

from capacity.reservations.costs import DayCost

WIDTH, HEIGHT = 1000, 200
# Half of a line's width, which would be cut off at the edges.
EDGE = 1


@dataclass(frozen=True, kw_only=True)
class UseChart:
    """Points of an SVG's lines, "x,y x,y …"; `idle` goes round what lies between reserved and used.

    `top` is the number of machines at the upper edge.
    """

    reserved: str
    used: str
    most: str
    idle: str
    begins: date
    ends: date
    top: int


def use_chart(days: Sequence[DayCost]) -> UseChart | None:
    """The lines of some days in a row; None before there are two of them."""
    if len(days) < 2:
        return None
    highest = max([Decimal(1), *(max(one.reserved, Decimal(one.most)) for one in days)])
    top = highest.to_integral_value(ROUND_CEILING)

    def points(value: Callable[[DayCost], Decimal]) -> list[str]:
        return [
            f"{WIDTH * at / (len(days) - 1):.1f},{_y(value(one), top):.1f}"
            for at, one in enumerate(days)
        ]

    reserved, used = points(lambda one: one.reserved), points(lambda one: one.used)
    return UseChart(
        reserved=" ".join(reserved),
        used=" ".join(used),
        most=" ".join(points(lambda one: Decimal(one.most))),
        idle=" ".join([*reserved, *reversed(used)]),
        begins=days[0].day,
        ends=days[-1].day,
        top=int(top),
    )


def _y(value: Decimal, top: Decimal) -> Decimal:
    return EDGE + (HEIGHT - 2 * EDGE) * (1 - value / top)

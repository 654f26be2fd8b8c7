"""A reservation's days as lines in a frame of 1,000 by 200, zero at the bottom: reserved, used, and idle in between.

Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from capacity.reservations.costs import DayCost

WIDTH, HEIGHT = 1000, 200
# What stands above the highest line.
ROOM = Decimal("1.08")


@dataclass(frozen=True, kw_only=True)
class UseChart:
    """Points of an SVG's lines, "x,y x,y …"; `idle` goes round what lies between reserved and used.

    `top` is the highest number of machines that is drawn.
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
    top = max([Decimal(1), *(max(one.reserved, Decimal(one.most)) for one in days)])

    def points(value: Callable[[DayCost], Decimal]) -> list[str]:
        return [
            f"{WIDTH * at / (len(days) - 1):.1f},{_y(value(one), top):.1f}" for at, one in enumerate(days)
        ]

    reserved, used = points(lambda one: one.reserved), points(lambda one: one.used)
    return UseChart(
        reserved=" ".join(reserved),
        used=" ".join(used),
        most=" ".join(points(lambda one: Decimal(one.most))),
        idle=" ".join([*reserved, *reversed(used)]),
        begins=days[0].day,
        ends=days[-1].day,
        top=round(top),
    )


def _y(value: Decimal, top: Decimal) -> Decimal:
    return HEIGHT * (1 - value / (ROOM * top))

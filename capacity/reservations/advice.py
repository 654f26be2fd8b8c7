"""What the use of a reservation suggests: release some, keep it, or grow it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from ui.amounts import usd

# Fewer days say nothing yet; what a fortnight never used is not needed.
MIN_DAYS, LOOKED_BACK_DAYS = 3, 14
# Percent of looks at which more ran than is reserved, from which on that is no chance.
OVER_PERCENT = 10
HOURS_A_WEEK = 168


class Deed(StrEnum):
    """What is suggested."""

    WAIT = "wait"
    KEEP = "keep"
    RELEASE = "release"
    GROW = "grow"


@dataclass(frozen=True, kw_only=True)
class Day:
    """How a reservation was used on one day (UTC), over all looks at it: sums in machines, and the most that ran.

    `over` counts the looks at which more ran than is reserved, which Azure does not guarantee.
    """

    day: date
    looks: int
    reserved_sum: int
    used_sum: int
    most: int
    over: int = 0


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A suggestion in a sentence; `machines` is how many to release or to add."""

    deed: Deed
    sentence: str
    machines: int = 0


def advice(days: Sequence[Day], *, reserved: int, usd_per_hour_each: Decimal) -> Advice:
    """What the last fortnight suggests for a reservation of so many machines.

    Only days count on which it had all of them: before it grew, nothing could run on those that came later.
    """
    fortnight = sorted(days, key=lambda one: one.day)[-LOOKED_BACK_DAYS:]
    recent = [one for one in fortnight if one.reserved_sum >= reserved * one.looks]
    if len(recent) < MIN_DAYS:
        return Advice(
            deed=Deed.WAIT,
            sentence=f"It is measured for {MIN_DAYS} days before anything is suggested.",
        )
    most, looks = max(one.most for one in recent), sum(one.looks for one in recent)
    over = 100 * sum(one.over for one in recent) // looks if looks else 0
    if over >= OVER_PERCENT and most > reserved:
        more = most - reserved
        return Advice(
            deed=Deed.GROW,
            machines=more,
            sentence=f"At {over} % of the looks more ran than is reserved, without a guarantee. Reserve {more} more.",
        )
    idle = reserved - most
    if idle > 0:
        saved = usd(idle * usd_per_hour_each * HOURS_A_WEEK)
        ran = f"In {len(recent)} days at most {most} of {reserved} ran."
        return Advice(
            deed=Deed.RELEASE,
            machines=idle,
            sentence=f"{ran} Release {idle}: that saves {saved} a week.",
        )
    return Advice(
        deed=Deed.KEEP,
        sentence=f"In {len(recent)} days all {reserved} ran at times. Keep it.",
    )

"""What a reservation has cost so far, and how much of that for machines that stood idle. Pure.

Azure charges from creation on, used or not, and keeps no history of use. What the looks of a day (UTC) found on
average therefore counts for every hour of that day between the reservation's beginning and its end; a day without a
look counts as the last one before it. Of what was never looked at nothing is known, and nothing is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from capacity.reservations.advice import Day

DAY, SECONDS_AN_HOUR = timedelta(days=1), 3600


@dataclass(frozen=True, kw_only=True)
class DayCost:
    """One day of a reservation: machines reserved and used on average, the most that ran, and USD.

    `is_read` is False for a day without a look.
    """

    day: date
    reserved: Decimal
    used: Decimal
    most: int
    hours: Decimal
    usd: Decimal
    idle_usd: Decimal
    is_read: bool = True


@dataclass(frozen=True, kw_only=True)
class Costs:
    """USD in all, and what of it was for machines that stood idle."""

    usd: Decimal = Decimal(0)
    idle_usd: Decimal = Decimal(0)


def by_day(
    days: Sequence[Day],
    *,
    usd_per_hour_each: Decimal,
    begins: datetime | None,
    ends: datetime,
) -> tuple[DayCost, ...]:
    """Each day from the first that was looked at, in order, until `ends`; none of what never began."""
    looked = {one.day: one for one in days if one.looks}
    if not looked or begins is None:
        return ()
    found: list[DayCost] = []
    day, last = min(looked), looked[min(looked)]
    while _midnight(day) < ends:
        last = looked.get(day, last)
        hours = _hours(day, begins, ends)
        reserved, used = (
            Decimal(last.reserved_sum) / last.looks,
            Decimal(last.used_sum) / last.looks,
        )
        found.append(
            DayCost(
                day=day,
                reserved=reserved,
                used=used,
                most=last.most,
                hours=hours,
                usd=hours * reserved * usd_per_hour_each,
                idle_usd=hours * (reserved - used) * usd_per_hour_each,
                is_read=day in looked,
            )
        )
        day += DAY
    return tuple(found)


def costs(
    days: Sequence[Day],
    *,
    usd_per_hour_each: Decimal,
    begins: datetime | None,
    ends: datetime,
) -> Costs:
    """What all of its days come to."""
    found = by_day(days, usd_per_hour_each=usd_per_hour_each, begins=begins, ends=ends)
    return Costs(
        usd=sum((one.usd for one in found), Decimal(0)),
        idle_usd=sum((one.idle_usd for one in found), Decimal(0)),
    )


def _hours(day: date, begins: datetime, ends: datetime) -> Decimal:
    """How many hours of a day lie between the two."""
    length = min(_midnight(day + DAY), ends) - max(_midnight(day), begins)
    return Decimal(max(0, int(length.total_seconds()))) / SECONDS_AN_HOUR


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

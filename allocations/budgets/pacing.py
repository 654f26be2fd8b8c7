"""Whether a month's budget lasts: what was spent, what is held to the end, where today's rate leads. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal

from allocations.budgets.money import (
    CENT,
    NOTHING,
    Amount,
    month_of,
    next_month,
    part_of,
)
from ui.amounts import day, hours, usd


@dataclass(frozen=True)
class Holding:
    """Something held from one moment to another, planned or past, at `usd_per_hour` for the whole of it."""

    gpus: int
    usd_per_hour: Decimal
    start: datetime
    end: datetime

    def within(self, start: datetime, end: datetime) -> Amount:
        """What it costs of the time from start to end."""
        return part_of(
            gpus=self.gpus,
            usd_per_hour=self.usd_per_hour,
            start=self.start,
            first=max(self.start, start),
            last=min(self.end, end),
        )

    def rate(self, now: datetime) -> Amount:
        """What it takes an hour, now."""
        is_held = self.start <= now < self.end
        return Amount(self.usd_per_hour, Decimal(self.gpus)) if is_held else NOTHING


@dataclass(frozen=True)
class Course:
    """One limit of a month, in USD or GPU-hours.

    `held_to_end` is what is planned for the month: what the holdings will have taken by its end if each ends on its
    date, with those that begin later; `at_pace` what it will be if everything held now goes on. `used_up` is when that
    passes the limit, None when it lasts the month.
    """

    limit: Decimal
    spent: Decimal
    held_to_end: Decimal
    at_pace: Decimal
    used_up: datetime | None


@dataclass(frozen=True)
class Pace:
    """A month under way: the share of it that is gone in percent, the money, and the GPU-hours if they are limited."""

    percent_gone: int
    usd: Course
    gpu_hours: Course | None


def pace(
    holdings: Iterable[Holding],
    *,
    usd_limit: Decimal,
    gpu_hours_limit: Decimal | None,
    now: datetime,
) -> Pace:
    """How the month (UTC) in which `now` lies goes on."""
    rows = list(holdings)
    first = month_of(now)
    start = datetime(first.year, first.month, 1, tzinfo=UTC)
    end = next_month(start)
    spent = held = rate = NOTHING
    for row in rows:
        spent = spent.plus(row.within(start, now))
        held = held.plus(row.within(start, end))
        rate = rate.plus(row.rate(now))
    hours_left = Decimal(int((end - now).total_seconds())) / 3600

    def course(limit: Decimal, index: int) -> Course:
        """Money is the first of an amount, GPU-hours the second."""
        # Rounded up, so that it is above the limit exactly when the sum before rounding is.
        at_pace = (spent[index] + rate[index] * hours_left).quantize(
            CENT, ROUND_CEILING
        )
        return Course(
            limit=limit,
            spent=spent[index],
            held_to_end=held[index],
            at_pace=at_pace,
            used_up=_used_up(limit - spent[index], rate[index], now)
            if at_pace > limit
            else None,
        )

    return Pace(
        percent_gone=int(100 * (now - start) / (end - start)),
        usd=course(usd_limit, 0),
        gpu_hours=None if gpu_hours_limit is None else course(gpu_hours_limit, 1),
    )


def _used_up(left: Decimal, rate: Decimal, now: datetime) -> datetime:
    """When the rate has taken what is left; only asked where it does before the month ends."""
    return (
        now
        if left <= 0 or rate <= 0
        else now + timedelta(seconds=int(left / rate * 3600))
    )


def pace_words(course: Course, *, now: datetime, unit: str = "USD") -> str:
    """Where the month leads: "At this pace the month ends at $8,100 of $12,000, …", or when it is used up."""
    if course.used_up is not None:
        what = "the budget" if unit == "USD" else "the allowance of GPU-hours"
        leads = f"{what} is used up on {day(course.used_up, now)}"
    elif unit == "USD":
        leads = f"the month ends at {usd(course.at_pace)} of {usd(course.limit)}"
    else:
        leads = f"the month ends at {course.at_pace:,.0f} of {hours(course.limit)}"
    return f"At this pace {leads}, if everything held now goes on."

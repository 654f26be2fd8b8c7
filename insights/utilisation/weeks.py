"""Use by weeks, from what was held and what looks saw of it: ISO weeks in UTC, from Monday to Sunday. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

from allocations.budgets.money import CENT, HOUR, hours_between

# So many whole weeks are told, and the one under way behind them.
WHOLE_WEEKS = 12
WEEK, DAY_SECONDS = timedelta(weeks=1), 86_400
HUNDREDTH, TENTH = Decimal("0.01"), Decimal("0.1")


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """GPUs that were held from start to end, and what all of them together cost an hour."""

    start: datetime
    end: datetime
    gpus: int
    usd_per_hour: Decimal


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What the looks of one day (UTC) added up to: of `held` GPUs, work had reserved `used`."""

    held: int
    used: int


NOBODY_LOOKED = Looks(held=0, used=0)


@dataclass(frozen=True, kw_only=True)
class Week:
    """The GPU-hours of one week, of one place or several; `until` is how far the week has come.

    `measured` are those of `held` that fell on days with looks, `used` is how many of these work had reserved, and
    `unused_usd` what the rest of these cost. `used` and `unused_usd` are None where nothing was measured, so that a
    week in which nobody looked, or nothing was held, never reads as one without work.
    """

    begins: date
    until: datetime
    held: Decimal = Decimal(0)
    measured: Decimal = Decimal(0)
    used: Decimal | None = None
    unused_usd: Decimal | None = None

    @property
    def name(self) -> str:
        """As ISO 8601 writes it: "2026-W48"."""
        year, number, _ = self.begins.isocalendar()
        return f"{year}-W{number:02}"

    @property
    def is_over(self) -> bool:
        """Whether nothing is held in it any more."""
        return self.until == midnight(self.begins) + WEEK

    @property
    def percent(self) -> Decimal | None:
        """How much of what was measured work had reserved, to a tenth; None where nothing was measured."""
        return percent_of([self])

    @property
    def hours(self) -> Decimal:
        """How many hours of it have passed."""
        return hours_between(midnight(self.begins), self.until)


def midnight(day: date) -> datetime:
    """The first moment of a day in UTC."""
    return datetime.combine(day, time.min, UTC)


def empty_weeks(now: datetime) -> list[Week]:
    """The twelve whole weeks before that of `now`, and this one as far as it has come, with nothing in them."""
    today = now.astimezone(UTC).date()
    monday = today - timedelta(days=today.weekday())
    first = monday - WHOLE_WEEKS * WEEK
    begins = [first + number * WEEK for number in range(WHOLE_WEEKS + 1)]
    return [Week(begins=day, until=min(midnight(day) + WEEK, now)) for day in begins]


def by_week(
    held: Iterable[Stretch], looks: Mapping[date, Looks], *, now: datetime
) -> list[Week]:
    """The weeks of one place, whose looks are given by day (UTC).

    The mean of a day's looks counts for everything that was held on that day.
    """
    weeks = empty_weeks(now)
    first = weeks[0].begins
    days = _by_day(held, start=midnight(first), end=now)
    for day, seen in looks.items():
        if 0 <= (number := (day - first).days) < len(days):
            days[number].looks = seen
    return [
        _filled(week, days[7 * number : 7 * number + 7])
        for number, week in enumerate(weeks)
    ]


def summed(places: Iterable[Sequence[Week]], *, now: datetime) -> list[Week]:
    """The weeks of several places added up; empty ones for no place."""
    total = empty_weeks(now)
    for weeks in places:
        total = [_both(one, other) for one, other in zip(total, weeks, strict=True)]
    return total


def percent_of(weeks: Iterable[Week]) -> Decimal | None:
    """How much of what was measured in several weeks work had reserved, to a tenth; None for nothing measured."""
    measured = used = Decimal(0)
    for week in weeks:
        measured += week.measured
        used += week.used or Decimal(0)
    return (100 * used / measured).quantize(TENTH, ROUND_HALF_UP) if measured else None


def _both(one: Week, other: Week) -> Week:
    return replace(
        one,
        held=one.held + other.held,
        measured=one.measured + other.measured,
        used=_sum(one.used, other.used),
        unused_usd=_sum(one.unused_usd, other.unused_usd),
    )


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other


@dataclass
class _Day:
    """GPU-seconds that were held on a day, USD an hour times the seconds for which they were held, and its looks."""

    gpu_seconds: int = 0
    usd_seconds: Decimal = Decimal(0)
    looks: Looks = NOBODY_LOOKED


def _by_day(
    held: Iterable[Stretch], *, start: datetime, end: datetime
) -> Sequence[_Day]:
    """Each day (UTC) from a midnight on, to the seventh of the week of `end`."""
    days = [_Day() for _ in range(7 * (WHOLE_WEEKS + 1))]
    for one in held:
        # In whole seconds from the midnight on: days of UTC all have as many.
        first = _seconds(max(one.start, start) - start)
        last = _seconds(min(one.end, end) - start)
        for number in range(first // DAY_SECONDS, -(-last // DAY_SECONDS)):
            begins = number * DAY_SECONDS
            seconds = min(last, begins + DAY_SECONDS) - max(first, begins)
            if seconds > 0:
                days[number].gpu_seconds += one.gpus * seconds
                days[number].usd_seconds += one.usd_per_hour * seconds
    return days


def _seconds(length: timedelta) -> int:
    return length.days * DAY_SECONDS + length.seconds


def _filled(week: Week, days: Sequence[_Day]) -> Week:
    looked_at = [one for one in days if one.looks.held and one.gpu_seconds]
    held = _hours(sum(one.gpu_seconds for one in days), HUNDREDTH)
    measured = _hours(sum(one.gpu_seconds for one in looked_at), HUNDREDTH)
    if not measured:
        return replace(week, held=held)
    used = unused_usd = Decimal(0)
    for one in looked_at:
        share = Decimal(one.looks.used) / one.looks.held
        used += one.gpu_seconds * share
        unused_usd += one.usd_seconds * (1 - share)
    return replace(
        week,
        held=held,
        measured=measured,
        used=_hours(used, HUNDREDTH),
        unused_usd=_hours(unused_usd, CENT),
    )


def _hours(seconds: Decimal | int, to: Decimal) -> Decimal:
    """Seconds in hours, or what was counted by seconds in what an hour counts."""
    return (seconds / HOUR).quantize(to, ROUND_HALF_UP)

"""What holding something costs, in USD and GPU-hours, split by calendar month in UTC. Pure."""

from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

CENT = Decimal("0.01")
HOUR = Decimal(3600)


class Amount(NamedTuple):
    """USD and GPU-hours, which are set aside and let go together."""

    usd: Decimal = Decimal(0)
    gpu_hours: Decimal = Decimal(0)

    def plus(self, other: "Amount") -> "Amount":
        """Both together."""
        return Amount(self.usd + other.usd, self.gpu_hours + other.gpu_hours)

    def minus(self, other: "Amount") -> "Amount":
        """What is left without the other; below zero where the other is more."""
        return Amount(self.usd - other.usd, self.gpu_hours - other.gpu_hours)


NOTHING = Amount()


class Left(NamedTuple):
    """What a budget has left of its limits; None hours where GPU-hours have no limit."""

    usd: Decimal
    usd_limit: Decimal
    gpu_hours: Decimal | None = None
    gpu_hours_limit: Decimal | None = None
    soft_percent: int = 80

    def and_freed(self, more: Amount) -> "Left":
        """The same after something was let go, to the cent: what SQLite adds up has more digits."""
        hours = None
        if self.gpu_hours is not None:
            hours = _rounded(self.gpu_hours + more.gpu_hours)
        return self._replace(usd=_rounded(self.usd + more.usd), gpu_hours=hours)


def hours_between(start: datetime, end: datetime) -> Decimal:
    """Hours from start to end, to the second; 0 when end is not after start."""
    # Python subtracts two moments of one zone by the clock on the wall, which twice a year is an hour off.
    length = end.astimezone(UTC) - start.astimezone(UTC)
    return Decimal(max(length.days * 86_400 + length.seconds, 0)) / HOUR


def cost_of(*, usd_per_hour: Decimal, start: datetime, end: datetime) -> Decimal:
    """USD for what costs `usd_per_hour` as a whole, from start to end, rounded to cents (half up)."""
    return _rounded(usd_per_hour * hours_between(start, end))


def cost(*, gpus: int, price: Decimal, start: datetime, end: datetime) -> Decimal:
    """USD for holding `gpus` at `price` USD per GPU-hour from start to end, rounded to cents (half up)."""
    return cost_of(usd_per_hour=gpus * price, start=start, end=end)


def per_day(*, gpus: int, price: Decimal) -> Decimal:
    """USD for a day of 24 hours."""
    return _rounded(gpus * price * 24)


def _rounded(number: Decimal) -> Decimal:
    return number.quantize(CENT, ROUND_HALF_UP)


def part_of(
    *,
    gpus: int,
    usd_per_hour: Decimal,
    start: datetime,
    first: datetime,
    last: datetime,
) -> Amount:
    """What holding `gpus` from `start` on costs from `first` to `last`, neither of them before `start`.

    It is the difference of two rounded totals: parts that follow each other never add or lose a cent.
    """
    if last <= first:
        return NOTHING
    before, after = hours_between(start, first), hours_between(start, last)
    return Amount(
        _rounded(usd_per_hour * after) - _rounded(usd_per_hour * before),
        _rounded(gpus * after) - _rounded(gpus * before),
    )


def by_month(
    *, gpus: int, usd_per_hour: Decimal, start: datetime, end: datetime
) -> dict[date, Amount]:
    """The amounts by first day of the month (UTC), oldest first, for `gpus` that cost `usd_per_hour` all together.

    The parts add up to `cost_of` to the cent and to `gpu_hours` to the hundredth.
    """
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    parts: dict[date, Amount] = {}
    at = start
    while at < end:
        until = min(next_month(at), end)
        parts[month_of(at)] = part_of(
            gpus=gpus, usd_per_hour=usd_per_hour, start=start, first=at, last=until
        )
        at = until
    return parts


def month_of(moment: datetime) -> date:
    """The first day of the month (UTC) in which the moment lies."""
    moment = moment.astimezone(UTC)
    return date(moment.year, moment.month, 1)


def months_in_a_row(first: date, number: int) -> list[date]:
    """So many months from one on, each as its first day."""
    index = first.year * 12 + first.month - 1
    return [date((index + n) // 12, (index + n) % 12 + 1, 1) for n in range(number)]


def months_between(first: date, last: date) -> list[date]:
    """The months from one to another, both of them included, each as its first day."""
    number = (last.year - first.year) * 12 + last.month - first.month + 1
    return months_in_a_row(first, number)


def next_month(moment: datetime) -> datetime:
    """The first moment of the month (UTC) after the one in which the moment lies."""
    moment = moment.astimezone(UTC)
    year, month = (
        (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    )
    return datetime(year, month, 1, tzinfo=UTC)

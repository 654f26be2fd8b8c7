"""What GPUs cost: GPU-hours times price, split by calendar month in UTC. Pure."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
HOUR = Decimal(3600)


def hours_between(start: datetime, end: datetime) -> Decimal:
    """Hours from start to end, to the second; 0 when end is not after start."""
    # Python subtracts two moments of one zone by the clock on the wall, which twice a year is an hour off.
    length = end.astimezone(UTC) - start.astimezone(UTC)
    return max(Decimal(int(length.total_seconds())), Decimal(0)) / HOUR


def gpu_hours(*, gpus: int, start: datetime, end: datetime) -> Decimal:
    """GPU-hours of holding `gpus` from start to end, to two places."""
    return (gpus * hours_between(start, end)).quantize(CENT, ROUND_HALF_UP)


def cost(*, gpus: int, price: Decimal, start: datetime, end: datetime) -> Decimal:
    """USD for holding `gpus` at `price` USD per GPU-hour from start to end, rounded to cents (half up)."""
    return (gpus * price * hours_between(start, end)).quantize(CENT, ROUND_HALF_UP)


def per_day(*, gpus: int, price: Decimal) -> Decimal:
    """USD for a day of 24 hours."""
    return (gpus * price * 24).quantize(CENT, ROUND_HALF_UP)


def by_month(*, gpus: int, price: Decimal, start: datetime, end: datetime) -> Mapping[date, Decimal]:
    """The cost by first day of the month (UTC), oldest first; the parts add up to `cost` to the cent."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    parts: dict[date, Decimal] = {}
    spent = Decimal(0)
    at = start
    while at < end:
        until = min(_next_month(at), end)
        # Each part is the difference of two rounded totals, so rounding never adds or loses a cent.
        total = cost(gpus=gpus, price=price, start=start, end=until)
        parts[date(at.year, at.month, 1)] = total - spent
        spent, at = total, until
    return parts


def month_of(moment: datetime) -> date:
    """The first day of the month (UTC) in which the moment lies."""
    moment = moment.astimezone(UTC)
    return date(moment.year, moment.month, 1)


def _next_month(moment: datetime) -> datetime:
    year, month = (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    return datetime(year, month, 1, tzinfo=UTC)

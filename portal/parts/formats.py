"""How amounts, moments and spans are written: the same words on page, mail, card and API."""

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal


def number(value: float | Decimal) -> str:
    """1234 → "1,234", 2.50 → "2.5": no trailing zeros, at most two decimals."""
    exact = Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{exact:,.2f}".rstrip("0").rstrip(".")


def dollars(amount: Decimal | float | str) -> str:
    """USD, cents only below $10 and only when there are some: "$1,233", "$3.67", "−$4"."""
    exact = Decimal(str(amount))
    sign = "−" if exact < 0 else ""
    size = abs(exact)
    whole = size >= 10 or size == size.to_integral_value()
    step = Decimal(1) if whole else Decimal("0.01")
    return f"{sign}${size.quantize(step, ROUND_HALF_UP):,}"


def moment(at: datetime, now: datetime) -> str:
    """ "Fri 28 Nov, 18:00", with the year when it is not this year's."""
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at:%a} {at.day} {at:%b}{year}, {at:%H:%M}"


def exactly(at: datetime) -> str:
    """The moment to the second with its zone, for the hover."""
    return f"{at:%A} {at.day} {at:%B} {at.year}, {at:%H:%M:%S} {at.tzname() or ''}".rstrip()


def span(length: timedelta) -> str:
    """The largest fitting unit alone: "8 s", "5 min", "3 h", "14 days"."""
    seconds = int(abs(length.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 86400} days"


def relative(at: datetime, now: datetime) -> str:
    """ "8 s ago" or "in 3 days"."""
    return f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"

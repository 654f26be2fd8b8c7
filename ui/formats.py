"""How the parts of pages write amounts, moments and spans: as `ui.amounts` does, for any kind of number."""

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from ui import amounts as words


def number(value: float | Decimal) -> str:
    """1234 → "1,234", 2.50 → "2.5": no trailing zeros, at most two decimals."""
    exact = Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{exact:,.2f}".rstrip("0").rstrip(".")


def dollars(amount: Decimal | float | str) -> str:
    """USD, cents only below $10 and only when there are some: "$1,233", "$3.67", "−$4"."""
    return words.usd(Decimal(str(amount)))


def moment(at: datetime, now: datetime) -> str:
    """ "Fri 28 Nov, 18:00 UTC", with the year when it is not this year's."""
    return words.moment(at, now)


def exactly(at: datetime) -> str:
    """The moment to the second with its zone, for the hover."""
    return f"{at:%A} {at.day} {at:%B} {at.year}, {at:%H:%M:%S} {at.tzname() or ''}".rstrip()


def span(length: timedelta) -> str:
    """The largest fitting unit alone: "8 s", "5 min", "3 h", "14 days"."""
    return words.span(length)


def relative(at: datetime, now: datetime) -> str:
    """ "8 s ago" or "in 3 days"."""
    return f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"

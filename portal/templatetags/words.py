"""Numbers, money and lengths of time as pages say them."""

from datetime import datetime, timedelta
from decimal import Decimal

from django import template
from django.utils import timezone

from ui import amounts, formats

register = template.Library()


@register.filter
def rate(value: Decimal) -> str:
    """USD for one of something, with the digits that it is reckoned with: "$0.526"."""
    return amounts.rate(value)


@register.filter
def usd(value: Decimal | float | str | None) -> str:
    """1233.4 → $1,233; below ten dollars with cents; nothing for None."""
    if value is None or value == "":
        return ""
    return formats.dollars(value)


@register.filter
def ago(moment: datetime | None) -> str:
    """How long ago, or in how long, in one unit: 8 s ago, in 3 days."""
    if moment is None:
        return "never"
    return formats.relative(moment, timezone.now())


@register.filter
def span(length: timedelta) -> str:
    """A length of time in its largest fitting unit."""
    return formats.span(length)

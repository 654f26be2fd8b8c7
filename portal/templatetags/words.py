"""Numbers, money and lengths of time as pages say them."""

from datetime import datetime, timedelta
from decimal import Decimal

from django import template
from django.utils import timezone

register = template.Library()


@register.filter
def usd(value: Decimal | float | str | None) -> str:
    """1233.4 → $1,233; below ten dollars with cents; nothing for None."""
    if value is None or value == "":
        return ""
    amount = Decimal(value)
    return f"${amount:,.2f}" if abs(amount) < 10 and amount != int(amount) else f"${amount:,.0f}"


@register.filter
def ago(moment: datetime | None) -> str:
    """How long ago, or in how long, in one unit: 8 s ago, in 3 days."""
    if moment is None:
        return "never"
    length = timezone.now() - moment
    return f"{span(length)} ago" if length >= timedelta(0) else f"in {span(-length)}"


@register.filter
def span(length: timedelta) -> str:
    """A length of time in its largest fitting unit."""
    seconds = int(length.total_seconds())
    if seconds < 90:
        return f"{seconds} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    if seconds < 36 * 3600:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86400)} days"

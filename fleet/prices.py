"""How long GPUs were in use, and what that costs at their price. Pure."""

from datetime import datetime, timedelta
from decimal import Decimal

HOUR = 3_600


def time_in_use(
    earlier_seconds: int, *, since: datetime | None, now: datetime
) -> timedelta:
    """How long something ran in all: earlier, and since it began last; None where it does not run now."""
    current = now - since if since is not None else timedelta(0)
    return max(current, timedelta(0)) + timedelta(seconds=earlier_seconds)


def cost_while(length: timedelta, *, usd_per_hour: Decimal) -> Decimal:
    """USD for so long at a price an hour, not rounded."""
    return usd_per_hour * Decimal(length.total_seconds()) / HOUR

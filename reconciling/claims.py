"""Claims: the right to do something alone, taken by one conditional update and lost by itself."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from reconciling.models import Throttle


def unclaimed(field: str, now: datetime) -> Q:
    """Rows on which nobody has a claim now: it was never taken, was given back, or has run out."""
    return Q(**{field: None}) | Q(**{f"{field}__lte": now})


def claim(rows: QuerySet[Any], field: str, *, until: datetime, **fields: Any) -> bool:
    """Set `field` of these rows to a moment ahead; False when another worker was faster.

    `rows` are chosen by what the claim changes, such as `unclaimed` or being due, and the database looks at that once
    more in the same statement. Whoever dies loses the claim at that moment, without anybody's doing.
    """
    return bool(rows.update(**{field: until}, **fields))


def claim_target(throttle: Throttle, *, now: datetime, seconds: float) -> bool:
    """Have a target for oneself for so long at most; False while another worker has it."""
    throttle.ensure()
    free = throttle.stored.filter(unclaimed("claimed_until", now))
    return claim(free, "claimed_until", until=now + timedelta(seconds=seconds))


def release_target(throttle: Throttle, **fields: Any) -> None:
    """Let others have the target again, and write what else came of having it."""
    throttle.stored.update(claimed_until=None, **fields)

"""Writes a second that a target takes, over all workers: a token bucket that the database keeps.

Nobody waits for a token: whoever finds too few gives the row back, to be requeued when there are enough.
"""

from datetime import datetime, timedelta

from django.db.models import F, FloatField, Value
from django.db.models.functions import Greatest

from reconciling.models import Throttle

# No plan owes for more writes, and no burst is longer: a clock that went wrong wrote what is beyond both of them, and
# it is forgotten.
MAX_WRITES_OWED = 1_000
LONGEST_BURST = timedelta(minutes=2)
SHORTEST_WAIT = 0.05


def reserve(
    throttle: Throttle,
    writes: int,
    *,
    per_second: float,
    burst: timedelta,
    now: datetime,
) -> timedelta | None:
    """Take so many writes at once; None when they may be done, else after how long to come again.

    `burst` is how far ahead of the budget they may be, in time. More writes than that are let through when nothing is
    owed, and owed afterwards, up to MAX_WRITES_OWED of them: nothing is too large for ever.
    """
    if not writes:
        return None
    at, cost = now.timestamp(), min(writes, MAX_WRITES_OWED) / per_second
    latest = at + max(0.0, burst.total_seconds() - cost)
    start = Greatest(F("spent_until"), Value(at), output_field=FloatField())
    if throttle.stored.filter(spent_until__lte=latest).update(spent_until=start + cost):
        return None
    throttle.ensure()
    longest = max(LONGEST_BURST.total_seconds(), MAX_WRITES_OWED / per_second)
    wrong = throttle.stored.filter(spent_until__gt=at + longest)
    if wrong.update(spent_until=at + cost):
        return None
    owed = throttle.stored.values_list("spent_until", flat=True).get() - latest
    if owed <= 0:  # the row was not there yet, whoever made it
        return reserve(throttle, writes, per_second=per_second, burst=burst, now=now)
    return timedelta(seconds=max(owed, SHORTEST_WAIT))

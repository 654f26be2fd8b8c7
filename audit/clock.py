"""The time that work goes by: the database's, so that a worker whose own clock is wrong ends nothing early."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

# Nobody waits longer for a lock; a moment further back is a replay's or a test's.
MAX_WAIT = timedelta(minutes=5)
# Within a task: when the database said what time it is, by its clock and by one that nobody sets.
_asked: ContextVar[list[tuple[datetime, float]] | None] = ContextVar(
    "asked", default=None
)


@contextmanager
def of_the_database() -> Iterator[None]:
    """Go by the database's clock in the block: it is asked once, when somebody wants to know the time."""
    before = _asked.set([])
    try:
        yield
    finally:
        _asked.reset(before)


def now() -> datetime:
    """The time: the database's within a task, this machine's elsewhere."""
    asked = _asked.get()
    if asked is None:
        return timezone.now()
    if not asked:
        asked.append((_by_database(), time.monotonic()))
    at, ticks = asked[0]
    return at + timedelta(seconds=time.monotonic() - ticks)


def after_waiting(since: datetime) -> datetime:
    """The time once locks are held that were waited for since a moment; that moment where it is not of this clock.

    What is judged under a lock is judged by what is in force then, however long the lock was waited for.
    """
    at = now()
    return at if timedelta(0) <= at - since < MAX_WAIT else since


def _by_database() -> datetime:
    if connection.vendor != "postgresql":  # it has no other clock than this machine's
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found

"""A sweep does the same to many rows: a row at which it fails keeps no other from its turn."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection

logger = structlog.get_logger(__name__)

# After these no row can be handled, the next one neither.
ENDS_THE_TASK = (SoftTimeLimitExceeded, MemoryError)

T = TypeVar("T")
R = TypeVar("R")


def for_each(rows: Iterable[T], act: Callable[[T], R]) -> list[R]:
    """What the action returned for each row, each in its turn, whatever happens to the others.

    The action is a transaction of its own. Raises the failures together once all have had their turn, so that the task
    counts as failed; at once where the time of the task or its memory is over, or the database cannot be reached: no
    row could survive that. A connection that was only cut is made anew by Django as the row's transaction ends.
    """
    found, failures = [], []
    for row in rows:
        try:
            found.append(act(row))
        except ENDS_THE_TASK:
            raise
        except Exception as failure:
            if not connection.is_usable():
                raise
            logger.exception("a sweep failed at a row", row=str(row))
            failures.append(failure)
    if failures:
        raise ExceptionGroup("a sweep failed at some of its rows", failures)
    return found

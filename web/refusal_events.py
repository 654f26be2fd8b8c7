"""Which refused changes become events of the audit log: the first of a person's minute; those beyond are counted."""

import time
from collections.abc import Collection

import structlog
from django.db import DatabaseError
from django.utils import timezone

from audit.actors import Actor
from audit.log import count_refusal
from web import counters as counting

logger = structlog.get_logger(__name__)
# Refusals of one person that become events in a minute; who presses wrong buttons by hand stays below it.
EVENTS_PER_MINUTE = 30


def may_become_event(actor: Actor) -> bool:
    """Whether this refusal is among the first of the person's minute, by whatever door they came; it is one more."""
    window = int(time.time() // 60)
    return (
        counting.breaker.count(f"refusal-events:{actor.id}:{window}", seconds=60)
        <= EVENTS_PER_MINUTE
    )


def log_and_count(
    actor: Actor, *, status: int, fields: Collection[str] = (), **details: object
) -> None:
    """Leave a line in the log and add to the person's count instead of an event."""
    logger.info(
        "refused", person=actor.id, status=status, fields=sorted(fields), **details
    )
    count(actor, status)


def count(actor: Actor, status: int) -> None:
    """Count it; a database that cannot take that must not change what was answered."""
    try:
        count_refusal(actor=actor, status=status, now=timezone.now())
    except DatabaseError as error:
        logger.warning("a refusal is not counted", error=type(error).__name__)

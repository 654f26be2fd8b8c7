"""The one way an event is written."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from audit import chain, clock
from audit.actors import Actor
from audit.events import Kind
from audit.models import Event, Head, RefusalCount

COUNTS_KEPT = timedelta(days=90)


def record(
    kind: Kind,
    *,
    actor: Actor,
    subject: tuple[str, object] = ("", ""),
    team_id: int | None = None,
    outcome: str = Event.Outcome.DONE,
    **details: Any,
) -> Event:
    """Append one event to the chain inside the caller's transaction, so that it commits with what it tells of.

    It locks the chain's head until that transaction ends: call it after every other lock was taken.
    Raises TransactionManagementError outside a transaction, and ValueError for a kind that there is not.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("An audit event needs the transaction it tells of.")
    head = Head.objects.select_for_update(no_key=True).get_or_create(id=1)[0]
    event = Event(
        seq=head.seq + 1,
        at=clock.now(),
        kind=Kind(kind),
        outcome=outcome,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name[:200],
        team_id=team_id,
        subject_type=subject[0],
        subject_id=str(subject[1])[:64],
        details=_plain(details),
        request_id=str(structlog.contextvars.get_contextvars().get("request_id", "")),
        previous=head.hash,
    )
    event.hash = chain.digest(seq=event.seq, body=event.body(), previous=head.hash)
    event.save(force_insert=True)
    Head.objects.filter(id=1).update(seq=event.seq, hash=event.hash)
    return event


def refuse(*, actor: Actor, reason: str, where: str, **details: Any) -> None:
    """Record, in a transaction of its own, that something was asked for and refused."""
    with transaction.atomic():
        record(
            Kind.REFUSED,
            actor=actor,
            subject=("route", where),
            outcome=Event.Outcome.REFUSED,
            reason=reason[:500],
            **details,
        )


def count_refusal(*, actor: Actor, status: int, now: datetime) -> None:
    """Count a refusal that leaves no event; nobody waits for anybody else's count, and old days are forgotten."""
    day = now.astimezone(UTC).date()
    rows = RefusalCount.objects.filter(actor_id=actor.id, day=day, status=status)
    if rows.update(count=F("count") + 1):
        return
    first = RefusalCount(actor_id=actor.id, actor_name=actor.name[:200], day=day, status=status, count=1)
    with transaction.atomic():
        RefusalCount.objects.filter(actor_id=actor.id, day__lt=day - COUNTS_KEPT).delete()
        try:
            with transaction.atomic():
                first.save(force_insert=True)
        except IntegrityError:
            # Another process was the first of the day.
            rows.update(count=F("count") + 1)


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details as JSON keeps them, long texts cut: an audit log is not a place for 100 kB."""
    return {key: _short(value) for key, value in details.items() if value is not None}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        value = _storable(value)
        return value if len(value) <= 1000 else value[:1000] + "…"
    if isinstance(value, dict):
        return {_storable(str(key)[:100]): _short(inner) for key, inner in list(value.items())[:50]}
    if isinstance(value, list | tuple):
        return [_short(inner) for inner in value[:50]]
    if isinstance(value, bool | int) or value is None:
        return value
    return str(value)


def _storable(text: str) -> str:
    """Without what PostgreSQL keeps in no text: NUL and halves of characters. What was refused may hold them."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()

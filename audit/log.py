"""The one way an event is written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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

    It locks the chain's head until that transaction ends: call it after every other lock was taken. Within `together`
    both wait for the end of the block, and so do the event's number and hash. What a person or a team's
    pipelines did over the API says in `called_with` with which token.
    Raises TransactionManagementError outside a transaction, and ValueError for a kind that there is not.
    """
    _check_transaction()
    call = structlog.contextvars.get_contextvars()
    if actor.kind in ("person", "pipelines"):
        details["called_with"] = call.get("called_with")
    event = Event(
        kind=Kind(kind),
        outcome=outcome,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name[:200],
        team_id=team_id,
        subject_type=subject[0],
        subject_id=str(subject[1])[:64],
        details=_plain(details),
        request_id=str(call.get("request_id", "")),
    )
    waiting = _waiting.get()
    if waiting is None:
        _append([event])
    else:
        waiting.append(_Waiting(event))
    return event


@contextmanager
def together() -> Iterator[None]:
    """Append what is recorded within, in the order in which it was recorded, when the block ends.

    Three statements for however many events; the chain's head is locked for the last of them only. What was recorded
    in a savepoint that was rolled back is left out, and of a block that raises nothing is appended. A block within
    another one ends with that one. Raises TransactionManagementError outside a transaction.
    """
    _check_transaction()
    if _waiting.get() is not None:
        yield
        return
    waiting: list[_Waiting] = []
    token = _waiting.set(waiting)
    try:
        yield
    finally:
        _waiting.reset(token)
    _append([each.event for each in waiting if each.still_happened])


class _Waiting:
    """An event that is not appended yet; it is forgotten with the savepoint in which it was recorded."""

    def __init__(self, event: Event) -> None:
        self.event = event
        # Django forgets what is to be done on commit exactly where it rolls back; there is no other sign of it.
        transaction.on_commit(self._committed)

    @property
    def still_happened(self) -> bool:
        """Whether what it tells of was not rolled back."""
        return any(each[1] == self._committed for each in connection.run_on_commit)

    def _committed(self) -> None:
        """Nothing is left to do."""


_waiting: ContextVar[list[_Waiting] | None] = ContextVar("waiting", default=None)


def _check_transaction() -> None:
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "An audit event needs the transaction it tells of."
        )


def _append(events: Sequence[Event]) -> None:
    """Number and chain events under the lock of the head, and write them."""
    if not events:
        return
    head = Head.objects.select_for_update(no_key=True).get_or_create(id=1)[0]
    for event in events:
        event.seq, event.at, event.previous = head.seq + 1, clock.now(), head.hash
        event.hash = chain.digest(
            seq=event.seq, body=event.body(), previous=event.previous
        )
        head.seq, head.hash = event.seq, event.hash
    Event.objects.bulk_create(events)
    Head.objects.filter(id=1).update(seq=head.seq, hash=head.hash)


def refuse(
    *,
    actor: Actor,
    reason: str,
    where: str,
    kind: Kind = Kind.REFUSED,
    about: tuple[str, object] | None = None,
    team_id: int | None = None,
    **details: Any,
) -> None:
    """Record, in a transaction of its own, that something was asked for and refused.

    `where` is the route that was called; `about` is the object that it was about, where there is one.
    """
    with transaction.atomic():
        record(
            kind,
            actor=actor,
            subject=about or ("route", where),
            team_id=team_id,
            outcome=Event.Outcome.REFUSED,
            reason=reason[:500],
            where=where,
            **details,
        )


def count_refusal(*, actor: Actor, status: int, now: datetime) -> None:
    """Count a refusal that leaves no event; nobody waits for anybody else's count, and old days are forgotten."""
    day = now.astimezone(UTC).date()
    rows = RefusalCount.objects.filter(actor_id=actor.id, day=day, status=status)
    if rows.update(count=F("count") + 1):
        return
    first = RefusalCount(
        actor_id=actor.id, actor_name=actor.name[:200], day=day, status=status, count=1
    )
    with transaction.atomic():
        RefusalCount.objects.filter(
            actor_id=actor.id, day__lt=day - COUNTS_KEPT
        ).delete()
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
        return {
            _storable(str(key)[:100]): _short(inner)
            for key, inner in list(value.items())[:50]
        }
    if isinstance(value, list | tuple):
        return [_short(inner) for inner in value[:50]]
    if isinstance(value, bool | int) or value is None:
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _storable(text: str) -> str:
    """Without what PostgreSQL keeps in no text: NUL and halves of characters. What was refused may hold them."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()

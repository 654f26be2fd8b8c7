"""Events that leave the portal as a file: that it was done is an event itself."""

from collections.abc import Mapping

from django.db import transaction

from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from audit.models import EventQuerySet


@transaction.atomic
def begin_export(
    rows: EventQuerySet,
    *,
    by: Actor,
    narrowed: Mapping[str, str],
    team_id: int | None = None,
) -> EventQuerySet:
    """Record that somebody exports these events and what they were narrowed to; returns those that there are now.

    Nothing that is written later belongs to them, however long the file takes. `team_id` is the team that they were
    narrowed to: its members see that somebody took its events along.
    """
    event = record(
        Kind.AUDIT_EXPORTED,
        actor=by,
        team_id=team_id,
        events=rows.count(),
        narrowed=dict(narrowed) or None,
    )
    return rows.filter(seq__lt=event.seq)

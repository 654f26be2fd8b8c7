"""How identities end: on their own, with the token that named them, or with their team."""

from collections.abc import Iterable
from datetime import datetime

from accounts.identities.models import Identity, IdentityQuerySet
from audit.actors import Actor
from audit.events import Kind
from audit.log import record


def ended_identities(rows: IdentityQuerySet, *, now: datetime) -> list[Identity]:
    """Those of these that acted until now, and no longer do; inside the caller's transaction, which records them."""
    ended: list[Identity] = []
    for each in rows.live().order_by("pk"):
        ended += [each] * Identity.objects.live().filter(pk=each.pk).update(
            removed_at=now
        )
    return ended


def record_removed(ended: Iterable[Identity], *, actor: Actor) -> None:
    """Append the event of each that has ended, which is last."""
    for each in ended:
        record(
            Kind.IDENTITY_REMOVED,
            actor=actor,
            subject=("identity", each.object_id),
            team_id=each.team_id,
            name=each.name,
        )

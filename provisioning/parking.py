"""Giving up on a tenancy that ends every worker that tries it, until somebody has it tried again."""

from datetime import datetime

from django.db import transaction
from django.urls import reverse

from accounts import people
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from notices.actions import tell, tell_channels
from notices.kinds import NoticeKind
from notices.message import Message
from provisioning.models import Tenancy
from reconciling.conditions import READY, upsert

# Tries in a row that nobody came back from. The next would begin 80 seconds after the first, which is longer than
# a pass is given: whoever is merely slow has come back by then, and the tenancy of a slow cluster is not given up.
MOST = 5
PARKED = f"Parked: {MOST} tries in a row ended the worker, and nobody came back to say why."
TRIED_AGAIN = "It was parked, and is tried again now."


@transaction.atomic
def park(tenancy_id: int, *, lease_no: int, now: datetime) -> None:
    """Try a tenancy no more, and tell the platform leads; once, however many workers find out.

    It takes the next lease number with it, so that a worker that was only asleep changes nothing any more.
    """
    rows = Tenancy.objects.locked().select_related("team", "cluster")
    tenancy = rows.filter(pk=tenancy_id, lease_no=lease_no, parked_at=None).first()
    if tenancy is None:
        return
    tenancy.lease_no += 1
    tenancy.parked_at, tenancy.lease_until, tenancy.slot, tenancy.is_true = now, None, None, False
    tenancy.conditions = upsert(
        tenancy.conditions, READY, status="False", reason="Parked", message=PARKED, now=now
    )
    tenancy.save(update_fields=["lease_no", "parked_at", "lease_until", "slot", "is_true", "conditions"])
    message = Message(
        f"{tenancy.team.name} on {tenancy.cluster.title} is parked",
        f"{PARKED} {tenancy.explanation}",
        facts=(("Team", tenancy.team.name), ("Cluster", tenancy.cluster.title)),
        action="Look at the team",
    )
    about, link = ("tenancy", tenancy.pk), reverse("team", args=[tenancy.team.slug])
    leads = people.holding(Permission.MANAGE_CLUSTERS)
    tell(NoticeKind.TENANCY_PARKED, to=leads, subject=about, link=link, message=message, now=now)
    tell_channels(NoticeKind.TENANCY_PARKED, subject=about, link=link, message=message, now=now)
    record(Kind.TENANCY_PARKED, actor=PORTAL, subject=about, team_id=tenancy.team_id, message=PARKED)


def begin_again(tenancy: Tenancy, *, now: datetime) -> list[str]:
    """Count the tries of a locked tenancy from the beginning, parked or not; returns the fields to be saved."""
    tenancy.next_look_at, tenancy.attempts, tenancy.unfinished = now, 0, 0
    fields = ["next_look_at", "attempts", "unfinished"]
    if tenancy.parked_at is None:
        return fields
    tenancy.parked_at = None
    tenancy.conditions = upsert(
        tenancy.conditions, READY, status="Unknown", reason="NotLookedYet", message=TRIED_AGAIN, now=now
    )
    return [*fields, "parked_at", "conditions"]

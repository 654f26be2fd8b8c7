"""Giving up on a tenancy that ends every worker that tries it, until somebody has it tried again."""

from datetime import datetime

from django.urls import reverse

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message
from provisioning.models import Tenancy
from reconciling.conditions import READY, upsert
from reconciling.controller import MAX_UNFINISHED

PARKED = f"Parked: {MAX_UNFINISHED} tries in a row ended the worker, and nobody came back to say why."
TRIED_AGAIN = "It was parked, and is tried again now."


def park(tenancy: Tenancy, now: datetime) -> list[str]:
    """Tell everybody that it is tried no more: its pages, platform leads, the audit log; returns the changed fields."""
    tenancy.is_true = False
    tenancy.conditions = upsert(
        tenancy.conditions,
        READY,
        status="False",
        reason="Parked",
        message=PARKED,
        now=now,
    )
    message = Message(
        f"{tenancy.team.name} on {tenancy.cluster.title} is parked",
        f"{PARKED} {tenancy.explanation}",
        facts=(("Team", tenancy.team.name), ("Cluster", tenancy.cluster.title)),
        action="Look at the team",
    )
    about, link = ("tenancy", tenancy.pk), reverse("team", args=[tenancy.team.slug])
    tell_leads(
        NoticeKind.TENANCY_PARKED, subject=about, link=link, message=message, now=now
    )
    record(
        Kind.TENANCY_PARKED,
        actor=PORTAL,
        subject=about,
        team_id=tenancy.team_id,
        message=PARKED,
    )
    return ["is_true", "conditions"]


def retry(tenancy: Tenancy, *, now: datetime) -> list[str]:
    """Have a locked tenancy tried now as if for the first time, parked or not; returns the fields to be saved."""
    was_parked = tenancy.parked_at is not None
    fields = tenancy.retry(now=now)
    if not was_parked:
        return fields
    tenancy.conditions = upsert(
        tenancy.conditions,
        READY,
        status="Unknown",
        reason="NotLookedYet",
        message=TRIED_AGAIN,
        now=now,
    )
    return [*fields, "conditions"]

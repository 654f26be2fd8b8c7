"""What becomes of a team's requests when it leaves, or its cluster is lost: nothing waits or is held at what goes.

Each in a transaction of its own, in the order of every action: request, budgets, flavor, tenancy, audit chain.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import Team
from allocations.schedule import WITH_DATA
from approvals import notices
from approvals.events import record_event
from approvals.fulfilment.actions import end_early, may_release
from approvals.models import Request
from approvals.requests.actions import close
from approvals.states import State
from audit.actors import Actor
from audit.events import Kind


@dataclass(frozen=True)
class Going:
    """What is held without GPUs: what ends when work stops, what is kept with its place, what is paid to its end."""

    ends: list[Request]
    kept: list[Request]
    paid: list[Request]


def waiting(
    team: Team, tenancies: Collection[int], *, whole: bool
) -> QuerySet[Request]:
    """The team's requests that wait for a decision and are about these places, or all of them."""
    about = Q() if whole else Q(tenancy__in=tenancies)
    return Request.objects.filter(about, team=team, state=State.WAITING).order_by("pk")


def going(rows: QuerySet[Request], *, now: datetime) -> Going:
    """Of what is held without GPUs: what becomes of each when the team leaves."""
    found = list(rows.select_related("allocation"))
    over = [row for row in found if may_release(row, now=now)]
    return Going(
        ends=[row for row in over if row.offering not in WITH_DATA],
        kept=[row for row in over if row.offering in WITH_DATA],
        paid=[
            row
            for row in found
            if row.of.reversible_minutes is None and row.until_now > now
        ],
    )


def held(team: Team, tenancies: Collection[int], *, whole: bool) -> QuerySet[Request]:
    """What the team holds without GPUs at these places, or anywhere."""
    about = Q() if whole else Q(tenancy__in=tenancies)
    return Request.objects.filter(
        about, team=team, state=State.APPROVED, flavor=None
    ).order_by("pk")


def ending_with_work(
    team: Team, tenancies: Collection[int], *, whole: bool
) -> QuerySet[Request]:
    """What of it ends when work stops: all but what has data, which can be restored with its place."""
    rows = held(team, tenancies, whole=whole).filter(allocation__ended_at=None)
    return rows.exclude(offering__in=WITH_DATA)


def ending_with_places(tenancies: Collection[int]) -> QuerySet[Request]:
    """What has data at these places, and ends because they are deleted."""
    rows = Request.objects.filter(tenancy__in=tenancies, state=State.APPROVED)
    return rows.filter(offering__in=WITH_DATA, allocation__ended_at=None).order_by("pk")


@transaction.atomic
def drop(request_id: int, *, actor: Actor, now: datetime, why: str) -> bool:
    """Take a waiting request back, and tell why in a clause; False when it was decided in between.

    It is kept for who asked, too.
    """
    rows = Request.objects.locked()
    request = rows.select_related("team", "requester", "flavor__cluster").get(
        pk=request_id
    )
    if request.state != State.WAITING:
        return False
    told = f"It was taken back, because {why}."
    close(request, State.WITHDRAWN, now=now, withdrawn_because=told)
    notices.withdrawn(request, told, now=now)
    record_event(Kind.REQUEST_WITHDRAWN, request, actor=actor, reason=why)
    return True


def let_go(request_id: int, *, actor: Actor, now: datetime, why: str) -> bool:
    """End what is held without GPUs, and say why in a clause; False for what is paid to its end or over already."""
    return end_early(request_id, actor=actor, now=now, why=why)

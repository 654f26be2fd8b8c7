"""What becomes of teams' places on a cluster that is written off: what they hold ends, then a worker lets go of them.

Safe to repeat, to interrupt and to begin late: a place is let go of last, so that what it holds is found until then.
"""

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from allocations.bookings import actions as bookings
from allocations.ends import actions as ends
from allocations.models import Allocation
from allocations.use import over_quota
from approvals.fulfilment import leaving as requests
from approvals.models import Request
from approvals.shares import actions as apart
from audit.actors import PORTAL
from fleet.models import Cluster
from offboarding import notices
from offboarding.actions import leave_out_written_off
from offboarding.sweep import end_what_has_data, give_back
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling.sweeping import for_each

WHY = "its cluster is gone for good"


def sweep(*, now: datetime) -> None:
    """End what is asked for, booked and held on clusters that are written off, and let go of their tenancies.

    A row at which it fails keeps no other from it.
    """
    lost = list(Cluster.objects.filter(written_off_at__isnull=False))
    if not lost:
        return
    for_each((_drop_waiting, _cancel_booked, _let_go), lambda end: end(lost, now=now))


def _drop_waiting(lost: Collection[Cluster], *, now: datetime) -> None:
    waiting = Request.objects.waiting().filter(_about(lost))
    for_each(_keys(waiting), partial(requests.drop, actor=PORTAL, now=now, why=WHY))


def _cancel_booked(lost: Collection[Cluster], *, now: datetime) -> None:
    booked = Allocation.objects.booked().filter(_about(lost))
    for_each(_keys(booked), partial(bookings.cancel, actor=PORTAL, now=now, why=WHY))


def _let_go(lost: Collection[Cluster], *, now: datetime) -> None:
    places = Tenancy.objects.present().filter(cluster__in=lost)
    for_each(_keys(places), partial(let_go, now=now))


def _about(lost: Collection[Cluster]) -> Q:
    """What is asked for or booked on a cluster, by teams that are there and by those that are not yet."""
    about = (
        Q(tenancy__cluster__in=lost)
        | Q(flavor__cluster__in=lost)
        | Q(spec__cluster__in=[cluster.name for cluster in lost])
    )
    for cluster in lost:
        about |= Q(spec__nodes_for__startswith=f"{cluster.name}/")
    return about


def _keys(rows: QuerySet[Any]) -> QuerySet[Any, int]:
    return rows.order_by("pk").values_list("pk", flat=True)


def let_go(tenancy_id: int, *, now: datetime) -> None:
    """End what is held at one place, and have it let go of once nothing is; its team is told once."""
    place = Tenancy.objects.select_related("team", "cluster").get(pk=tenancy_id)
    if place.cluster.written_off_at is None:
        return
    held = Allocation.objects.live().filter(tenancy=place)
    due = held.filter(kept_until__lte=now).order_by("pk")
    for allocation_id in list(due.values_list("pk", flat=True)):
        ends.expire(allocation_id, now=now)
    apart.drop(tenancy_id, now=now)
    give_back(place.team, [tenancy_id], whole=False, why=WHY, now=now)
    end_what_has_data([tenancy_id], why=WHY, now=now)
    if not held.of_gpus().exists():
        leave_out_written_off(tenancy_id, now=now)
        _lose(tenancy_id, now=now)


@transaction.atomic
def _lose(tenancy_id: int, *, now: datetime) -> None:
    place = leaving.locked(tenancy_id)
    if place.stands and not _is_told(place):
        notices.lost(place, now=now)
    over_quota.forget(place, now=now)
    leaving.let_go_of_written_off(tenancy_id, actor=PORTAL, now=now)


def _is_told(place: Tenancy) -> bool:
    """Whether the team was told already, for another namespace of it there."""
    others = Tenancy.objects.filter(team=place.team, cluster=place.cluster)
    return others.filter(
        stage__in=[Stage.REMOVING, Stage.GONE],
        changed_at__gte=place.cluster.written_off_at,
    ).exists()

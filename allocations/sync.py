"""Desired states that follow their team and cluster: what was changed there reaches every tenancy."""

from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import transaction

from allocations.changes import refresh
from allocations.places import place_of
from audit.actors import PORTAL
from fleet.models import Flavor
from provisioning.desired.isolation import is_for
from provisioning.desired.spec import SpecRefused
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling.sweeping import for_each

AROUND = (
    "cost_centre",
    "entra_group",
    "cohort",
    "storage_class",
    "weight",
    "jupyterhub_namespace",
    "services",
    "egress",
    "by_name",
    "dashboards",
    "highest_priority",
    "queueing",
)


def keep_in_step(*, now: Callable[[], datetime]) -> int:
    """Publish the desired state of every tenancy whose surroundings have changed; returns how many.

    Each in a transaction of its own, and only those that differ: running it twice changes nothing.
    """
    kinds: dict[int, list[Flavor]] = {}
    for flavor in Flavor.objects.order_by("name"):
        kinds.setdefault(flavor.cluster_id, []).append(flavor)
    rows = Tenancy.objects.filter(
        stage__in=(Stage.HERE, Stage.LEAVING), generation__gt=0
    ).select_related("team", "cluster", "project")
    at = now()
    behind = [
        row.pk for row in rows if _is_behind(row, kinds.get(row.cluster_id, []), now=at)
    ]

    @transaction.atomic
    def follow(tenancy_id: int) -> None:
        tenancy = Tenancy.objects.locked().get(pk=tenancy_id)
        refresh(tenancy, actor=PORTAL, now=now())

    return len(for_each(behind, follow))


def _is_behind(tenancy: Tenancy, kinds: Sequence[Flavor], *, now: datetime) -> bool:
    """Whether the stored state says otherwise of what surrounds the tenancy, or of the flavors it may use."""
    try:
        spec, place = tenancy.desired, place_of(tenancy)
    except SpecRefused:
        # Nothing is published that must not reach a cluster; the worker says why at the tenancy.
        return False
    if spec.maintenance != tenancy.cluster.stop_policy(now):
        return True
    if any(getattr(spec, name) != getattr(place, name) for name in AROUND):
        return True
    held = {flavor.name for flavor in spec.flavors if flavor.gpus or flavor.over}
    wanted = [
        (kind.name, kind.resource, kind.cpu_per_gpu, kind.memory_gib_per_gpu)
        for kind in kinds
        if kind.name in held or is_for(kind, tenancy)
    ]
    stands = [
        (f.name, f.resource, f.cpu_per_gpu, f.memory_gib_per_gpu) for f in spec.flavors
    ]
    percent = place.borrow_percent
    return sorted(wanted) != stands or any(
        f.borrow != f.gpus * percent // 100 for f in spec.flavors
    )

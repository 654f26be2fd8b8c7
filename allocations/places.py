"""The parts of a tenancy's desired state that come from its team and its cluster, read from the database."""

from typing import NamedTuple

from django.db.models import OuterRef, Q, Sum

from allocations.budgets.totals import total
from allocations.desired_state import Kind, Place
from allocations.models import Allocation, Leftover
from provisioning.desired.isolation import flavors_for
from provisioning.desired.spec import egress_from, services_from
from provisioning.models import Tenancy


def place_of(tenancy: Tenancy) -> Place:
    """Where the tenancy is and what is around it; raises SpecRefused when the cluster's services are none."""
    team, cluster = tenancy.team, tenancy.cluster
    return Place(
        tenancy=tenancy.pk,
        team=team.slug,
        project=tenancy.project.slug,
        cost_centre=team.cost_centre,
        environment=tenancy.environment,
        namespace=tenancy.namespace,
        entra_group=str(team.entra_group),
        cohort=cluster.cohort,
        storage_class=_storage_class(tenancy),
        borrow_percent=cluster.borrow_percent,
        weight=tenancy.weight,
        jupyterhub_namespace=cluster.jupyterhub_namespace,
        services=services_from(cluster.shared_services),
        egress=egress_from(cluster.egress),
        by_name=cluster.may_have_policies_by_name,
        dashboards=cluster.dashboards,
        highest_priority=tenancy.highest_priority,
        queueing=cluster.queueing,
    )


def _storage_class(tenancy: Tenancy) -> str:
    """The cluster's when the tenancy was first wanted: a claim cannot change its class afterwards."""
    wanted: str = tenancy.spec.get("storage_class", tenancy.cluster.storage_class)
    return wanted


class Queued(NamedTuple):
    """A flavor in a tenancy's queue: GPUs that it holds, and those that may still run although it does not any more."""

    kind: Kind
    held: int
    over: int


def in_queue(tenancy: Tenancy) -> list[Queued]:
    """The flavors in its queue, by name: those it may use, and any that it still holds something of."""
    live = Allocation.objects.live().filter(tenancy=tenancy, flavor=OuterRef("pk"))
    left = Leftover.objects.open().filter(tenancy=tenancy, flavor=OuterRef("pk"))
    rows = tenancy.cluster.flavors.annotate(
        held=total(live, Sum("gpus"), by="flavor"),
        over=total(left, Sum("gpus"), by="flavor"),
    )
    found = rows.filter(
        Q(pk__in=flavors_for(tenancy)) | Q(held__isnull=False) | Q(over__isnull=False)
    )
    fields = ("name", "cpu_per_gpu", "memory_gib_per_gpu", "resource")
    return [
        Queued(
            Kind(**{name: row[name] for name in fields}),
            row["held"] or 0,
            row["over"] or 0,
        )
        for row in found.order_by("name").values(*fields, "held", "over")
    ]

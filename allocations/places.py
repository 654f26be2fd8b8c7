"""The parts of a tenancy's desired state that come from its team and its cluster, read from the database."""

from collections.abc import Iterable

from django.db.models import Q

from allocations.desired_state import Kind, Place
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
    )


def _storage_class(tenancy: Tenancy) -> str:
    """The cluster's when the tenancy was first wanted: a claim cannot change its class afterwards."""
    wanted: str = tenancy.spec.get("storage_class", tenancy.cluster.storage_class)
    return wanted


def kinds_of(tenancy: Tenancy, *, held: Iterable[str]) -> list[Kind]:
    """The flavors in its queue: those it may use, and any that it still holds something of."""
    rows = tenancy.cluster.flavors.filter(Q(pk__in=flavors_for(tenancy)) | Q(name__in=held)).order_by("name")
    return [
        Kind(
            name=f.name,
            cpu_per_gpu=f.cpu_per_gpu,
            memory_gib_per_gpu=f.memory_gib_per_gpu,
            resource=f.resource,
        )
        for f in rows
    ]

"""The namespaces in which servers would start, as profiles have to know them."""

from collections.abc import Sequence

from django.conf import settings

from fleet.models import Flavor
from notebooks.profiles.spawning import Place
from provisioning.desired.first_job import Kind
from provisioning.models import Tenancy


def places_of(tenancies: Sequence[Tenancy]) -> list[Place]:
    """What spawning has to know of namespaces, in their order; `tenancies` come with team, project and cluster.

    One query, however many they are.
    """
    rows = Flavor.objects.filter(cluster__in={one.cluster_id for one in tenancies})
    flavors = {(one.cluster_id, one.name): one for one in rows}
    return [_place(one, flavors) for one in tenancies]


def _place(tenancy: Tenancy, flavors: dict[tuple[int, str], Flavor]) -> Place:
    held = [one for one in tenancy.desired.flavors if (tenancy.cluster_id, one.name) in flavors]
    there = {one.name: flavors[tenancy.cluster_id, one.name] for one in held}
    return Place(
        namespace=tenancy.namespace,
        cluster=tenancy.cluster.name,
        cluster_title=tenancy.cluster.title,
        team=tenancy.team.slug,
        project=tenancy.project.slug,
        cost_centre=tenancy.team.cost_centre,
        environment=tenancy.environment,
        kinds={
            name: Kind(name, one.resource, one.node_labels, one.node_taints or [])
            for name, one in there.items()
        },
        gpus={one.name: one.gpus + one.borrow for one in held},
        images=settings.ENV.run_images,
    )

"""The namespaces in which servers would start, as profiles have to know them."""

from collections.abc import Mapping

from django.conf import settings

from fleet.models import Flavor
from notebooks.profiles.spawning import Place
from provisioning.desired.first_job import Kind
from provisioning.models import Tenancy


def flavors_on(cluster: int) -> Mapping[str, Flavor]:
    """Every flavor of a cluster by name, in one query."""
    return {
        one.name: one
        for one in Flavor.objects.filter(cluster=cluster).select_related("cluster")
    }


def place_of(tenancy: Tenancy, flavors: Mapping[str, Flavor]) -> Place:
    """What spawning has to know of a namespace; `tenancy` comes with team, project and cluster, `flavors` are its."""
    held = [one for one in tenancy.desired.flavors if one.name in flavors]
    there = {one.name: flavors[one.name] for one in held}
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

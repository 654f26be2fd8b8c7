"""Limits of the fleet itself: what was granted of each kind of GPU, and to how many nodes each pool has grown."""

from datetime import datetime

from capacity.metering.actions import Level, note
from capacity.models import NodePool
from fleet.models import Cluster, Flavor


def note_fleet(*, now: datetime) -> None:
    """Keep a reading of every kind of GPU of clusters looked after, and of every pool that an autoscaler grows."""
    clusters = Cluster.objects.looked_after()
    # Of a kind that nobody has nodes or grants of, there is nothing to come near.
    kinds = Flavor.objects.exclude(gpus_total=0, allocated=0)
    flavors = kinds.filter(cluster__in=clusters).select_related("cluster")
    pools = (
        NodePool.objects.filter(cluster__in=clusters, max_nodes__isnull=False)
        .exclude(max_nodes=0, nodes=0)
        .select_related("cluster")
    )
    for level in (*map(_granted, flavors), *map(_grown, pools)):
        note(level, now=now)


def _granted(flavor: Flavor) -> Level:
    return Level(
        key=f"granted:{flavor.key}",
        title=f"{flavor.kind} granted on {flavor.cluster.title}",
        unit="GPUs",
        limit=flavor.gpus_total,
        used=flavor.allocated,
    )


def _grown(pool: NodePool) -> Level:
    return Level(
        key=f"pool:{pool.cluster.name}/{pool.name}",
        title=f"Node pool {pool.name} of {pool.cluster.title}",
        unit="nodes",
        limit=pool.max_nodes or 0,
        used=pool.nodes,
    )

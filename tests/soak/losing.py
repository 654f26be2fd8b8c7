"""A cluster that is gone for good in a walk: taken out of use, found away for two days, written off."""

from datetime import timedelta

from fleet.clusters.actions import change_cluster
from fleet.models import Cluster
from fleet.write_off import write_off
from tests.soak.walk import Walk


def lose_a_cluster(walk: Walk) -> str:
    """Its API server answers no more, and a lead writes it off; what stands there is nobody's from then on."""
    lead, now = walk.random.choice(walk.town.leads), walk.town.time
    cluster = walk.one_of(Cluster.objects.not_written_off())
    change_cluster(cluster.pk, values={"enabled": False}, by=lead)
    Cluster.objects.filter(pk=cluster.pk).update(
        reachable=False, away_since=now - timedelta(days=2), parts=[]
    )
    write_off(cluster.pk, name=cluster.name, by=lead, now=now)
    return f"write off a cluster: {cluster.name}"


LOSING = {lose_a_cluster: 1}

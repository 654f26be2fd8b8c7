"""A cluster of Azure's whose subscription was read: rows as `capacity.subscriptions.observing` leaves them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from capacity.metering.keys import quota_key
from capacity.models import FamilyQuota, Meter, NodePool, Reading, Subscription, VmSize
from fleet.models import Cluster, Flavor
from provisioning.models import Tenancy
from tests.scene import Scene
from tests.workloads.copying import Copying

SUBSCRIPTION = "44444444-4444-4444-8444-444444444444"
SIZE, FAMILY, VCPUS = "Standard_NC96ads_A100_v4", "StandardNCADSA100v4Family", 96
AKS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/gpu/providers/Microsoft.ContainerService/managedClusters/"


@dataclass
class Site:
    """Two machines of 4 GPUs stand in a pool of at most twelve; nothing of it was granted."""

    scene: Scene
    cluster: Cluster
    flavor: Flavor

    @property
    def address(self) -> str:
        """The page of its chain."""
        return f"/clusters/{self.cluster.name}/chain"

    def meter(self, family: str = FAMILY) -> Meter:
        """The limit of a quota."""
        return Meter.objects.get(key=quota_key(SUBSCRIPTION, "eastus", family))

    def quota(self, *, limit: int, family: str = FAMILY) -> None:
        """Have Azure allow so many machines of 96 vCPUs in all."""
        FamilyQuota.objects.filter(name=family).update(limit=limit * VCPUS)
        Meter.objects.filter(key=quota_key(SUBSCRIPTION, "eastus", family)).update(
            limit=limit * VCPUS
        )

    def queue(self, tenancy: Tenancy, *, nominal: int, used: int) -> None:
        """Have the portal's copy tell of the team's ClusterQueue."""
        copying = Copying(self.cluster)
        copying.begin(
            cluster_queue(
                tenancy.namespace, self.flavor.name, nominal=nominal, used=used
            )
        )


def connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the installation's settings name an identity in Azure; nothing calls it."""
    monkeypatch.setattr(settings.ENV, "azure_subscription_id", SUBSCRIPTION)


def site(scene: Scene, *, read_at: datetime | None = None) -> Site:
    """The scene's cluster in Azure, as it was read at a moment."""
    at = read_at or timezone.now()
    cluster = scene.flavor.cluster
    Cluster.objects.filter(pk=cluster.pk).update(azure_id=AKS + cluster.name)
    Flavor.objects.filter(pk=scene.flavor.pk).update(
        gpus_per_node=4,
        gpus_ready=8,
        gpus_total=48,
        node_pool="a100",
        gpus_seen_at=timezone.now(),
    )
    subscription = Subscription.objects.create(
        id=SUBSCRIPTION,
        reachable=True,
        looked_at=at,
        answered_at=at,
        next_look_at=at + timedelta(minutes=10),
    )
    VmSize.objects.create(
        subscription=subscription,
        region="eastus",
        name=SIZE,
        family=FAMILY,
        vcpus=VCPUS,
        gpus=4,
        is_reservable=True,
        seen_at=at,
    )
    for name, title, machines in (
        (FAMILY, "Standard NCADSA100v4 Family vCPUs", 12),
        ("cores", "Total Regional vCPUs", 20),
    ):
        FamilyQuota.objects.create(
            subscription=subscription,
            region="eastus",
            name=name,
            title=title,
            limit=machines * VCPUS,
            used=2 * VCPUS,
            seen_at=at,
        )
        meter(title=f"{title} in eastus", name=name, limit=machines * VCPUS, at=at)
    pool(cluster, at=at)
    cluster.refresh_from_db()
    return Site(
        scene, cluster, Flavor.objects.select_related("cluster").get(pk=scene.flavor.pk)
    )


def pool(cluster: Cluster, *, at: datetime, **fields: Any) -> NodePool:
    """A pool of two nodes that grows to twelve."""
    usual = {
        "name": "a100",
        "vm_size": SIZE,
        "nodes": 2,
        "min_nodes": 0,
        "max_nodes": 12,
    }
    return NodePool.objects.create(cluster=cluster, seen_at=at, **usual | fields)


def meter(*, title: str, name: str, limit: int, at: datetime) -> Meter:
    """The limit of a quota, of which two machines are used."""
    return Meter.objects.create(
        key=quota_key(SUBSCRIPTION, "eastus", name),
        title=title,
        unit="vCPUs",
        limit=limit,
        used=2 * VCPUS,
        seen_at=at,
    )


def read_for_weeks(of: Meter, *, weeks: int, per_week: int, now: datetime) -> None:
    """Readings of the last weeks, growing to what is used now."""
    Reading.objects.bulk_create(
        Reading(
            meter=of,
            at=now - timedelta(weeks=back),
            limit=of.limit,
            used=max(0, of.used - back * per_week),
        )
        for back in range(weeks)
    )


def cluster_queue(name: str, flavor: str, *, nominal: int, used: int) -> dict[str, Any]:
    """A ClusterQueue as Kueue shows it."""
    resource = {"name": "nvidia.com/gpu"}
    quota = {
        "name": flavor,
        "resources": [{**resource, "nominalQuota": nominal, "borrowingLimit": 0}],
    }
    reserved = {
        "name": flavor,
        "resources": [{**resource, "total": used, "borrowed": 0}],
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {
            "cohortName": "all",
            "resourceGroups": [
                {"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}
            ],
        },
        "status": {"flavorsReservation": [reserved], "pendingWorkloads": 0},
    }

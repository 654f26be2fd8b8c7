"""Two kinds of GPU that take from the same quotas of Azure, and asks for them."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from allocations import actions
from allocations.models import Allocation
from capacity.models import FamilyQuota, VmSize
from capacity.subscriptions.following import follow
from fleet.models import Cluster, Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.insights.fleet import AKS, FAMILY, SUBSCRIPTION, VCPUS, Site, pool, site
from tests.scene import NOW, scene

SMALL, SMALL_FAMILY, SMALL_VCPUS = "Standard_NC24ads_T4", "StandardNCADST4Family", 24


def two_clusters(*, machines: int) -> tuple[Site, Flavor, Tenancy]:
    """Two clusters with two nodes of 4 GPUs each, of whose family Azure allows so many machines more."""
    here = site(scene(), read_at=NOW)
    other = factories.cluster("second", azure_id=AKS + "second")
    flavor = kind(other, "second-a100", node_pool="a100")
    pool(other, at=NOW)
    FamilyQuota.objects.filter(name=FAMILY).update(
        used=4 * VCPUS, limit=(4 + machines) * VCPUS
    )
    FamilyQuota.objects.filter(name="cores").update(used=4 * VCPUS, limit=40 * VCPUS)
    read_again(here.cluster, other)
    return (
        here,
        Flavor.objects.get(pk=flavor.pk),
        factories.tenancy(here.scene.team, other),
    )


def kind(on: Cluster, name: str, **fields: Any) -> Flavor:
    """A kind of GPU of which two nodes of four stand."""
    return factories.flavor(
        on,
        name,
        gpus_per_node=4,
        gpus_ready=8,
        gpus_total=8,
        price_per_gpu_hour=1,
        **fields,
    )


def read_again(*clusters: Cluster) -> None:
    """Have what Azure said be kept with the kinds of GPU, as after each reading."""
    for cluster in clusters:
        follow(Cluster.objects.get(pk=cluster.pk))


def small_size() -> VmSize:
    """A size of another family, with a quarter of the vCPUs and one GPU."""
    FamilyQuota.objects.create(
        subscription_id=SUBSCRIPTION,
        region="eastus",
        name=SMALL_FAMILY,
        title="T4",
        limit=100 * SMALL_VCPUS,
        used=0,
        seen_at=NOW,
    )
    return VmSize.objects.create(
        subscription_id=SUBSCRIPTION,
        region="eastus",
        name=SMALL,
        family=SMALL_FAMILY,
        vcpus=SMALL_VCPUS,
        gpus=1,
        is_reservable=True,
        seen_at=NOW,
    )


def grant(
    here: Site,
    at: Tenancy,
    flavor: Flavor,
    gpus: int,
    *,
    starts: datetime | None = None,
    days: float = 3,
) -> Allocation:
    """Grant GPUs as the last step of an approval does it, at once or from a later moment on."""
    fresh = Flavor.objects.select_related("cluster").get(pk=flavor.pk)
    granted = factories.granted(
        here.scene.ada,
        at,
        fresh,
        gpus=gpus,
        until=(starts or NOW) + timedelta(days=days),
    )
    granted = replace(granted, starts_at=starts)
    return actions.grant(granted, actor=here.scene.priya.as_actor(), now=NOW)

"""Clusters and pools in Azure: their resource id and node pool, and what Azure lets a pool grow to."""

import pytest

from accounts.models import User
from accounts.roles import Role
from fleet.clusters.actions import add_cluster, change_cluster
from fleet.flavors.actions import change_flavor
from fleet.models import Cluster, Flavor, gpus_obtainable
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput, Conflict

pytestmark = pytest.mark.django_db
SUBSCRIPTION = "/subscriptions/33333333-3333-4333-8333-333333333333"
AKS = f"{SUBSCRIPTION}/resourceGroups/gpu-platform/providers/Microsoft.ContainerService/managedClusters/training"


@pytest.fixture
def lead() -> User:
    return factories.person("Priya Nair", Role.PLATFORM_LEAD)


def change(cluster: Cluster, lead: User, **values: str) -> Cluster:
    """Change a cluster."""
    return change_cluster(cluster.pk, values=values, by=lead)


def test_a_cluster_in_azure_has_a_resource_id_that_leads_alone_see(lead: User) -> None:
    cluster = factories.cluster("training")
    assert change(cluster, lead, azure_id=AKS).azure_id == AKS
    assert Caller(lead).get("clusters/training/").json()["azure_id"] == AKS
    assert (
        Caller(factories.person("Ada")).get("clusters/training/").json()["azure_id"]
        is None
    )


@pytest.mark.parametrize(
    "text",
    [
        "training",
        f"{SUBSCRIPTION}/resourceGroups/gpu-platform",
        AKS.replace(
            "Microsoft.ContainerService/managedClusters",
            "Microsoft.Compute/virtualMachines",
        ),
        AKS + "/agentPools/a100",
        AKS.replace("gpu-platform", "gpu'platform"),
        AKS.replace("gpu-platform", "../x"),
        "https://management.azure.com" + AKS,
    ],
)
def test_what_is_no_resource_id_of_a_cluster_is_refused(lead: User, text: str) -> None:
    with pytest.raises(BadInput, match="az aks show") as refused:
        change(factories.cluster("training"), lead, azure_id=text)
    assert refused.value.field == "azure_id"


def test_a_managed_cluster_is_registered_once_however_it_is_written(lead: User) -> None:
    change(factories.cluster("training"), lead, azure_id=AKS)
    other = factories.cluster("second")
    with pytest.raises(Conflict, match="Another cluster has this resource id"):
        change(
            other,
            lead,
            azure_id=AKS.upper().replace("/SUBSCRIPTIONS", "/subscriptions"),
        )
    values = {
        "title": "Third",
        "region": "eastus",
        "purpose": "training",
        "azure_id": AKS.lower(),
    }
    with pytest.raises(Conflict, match="Another cluster has this resource id"):
        add_cluster(name="third", values=values, by=lead)


def test_a_node_pool_is_named_where_there_is_azure(lead: User) -> None:
    cluster = factories.cluster("training")
    flavor = factories.flavor(cluster, "a100")
    with pytest.raises(BadInput, match="Azure resource id of Training first"):
        change_flavor(flavor.pk, values={"node_pool": "a100"}, by=lead)
    change(cluster, lead, azure_id=AKS)
    assert (
        change_flavor(flavor.pk, values={"node_pool": "a100"}, by=lead).node_pool
        == "a100"
    )
    for wrong in ("A100", "a-100", "a" * 13, "1a"):
        with pytest.raises(BadInput, match=r"12 (small letters|characters)"):
            change_flavor(flavor.pk, values={"node_pool": wrong}, by=lead)


def test_a_pool_that_azure_keeps_small_offers_what_azure_allows() -> None:
    flavor = factories.flavor(factories.cluster("training"), "a100")
    flavor.gpus_per_node, flavor.max_nodes, flavor.gpus_ready, flavor.gpus_cordoned = (
        4,
        10,
        8,
        0,
    )
    for allowed, obtainable in ((None, 40), (12, 40), (6, 24), (1, 8), (0, 8)):
        flavor.azure_nodes = allowed
        assert flavor.gpus_obtainable == obtainable
        assert flavor.is_kept_small is (allowed is not None and allowed < 10)
        flavor.save()
        stored = Flavor.objects.annotate(counted=gpus_obtainable(ready=8, cordoned=0))
        assert stored.values_list("counted", flat=True).get() == obtainable
    flavor.gpus_total = flavor.gpus_obtainable
    # What Azure holds back is there: whoever asks for it waits, and is not told that it cannot be.
    assert flavor.gpus_at_most == 40

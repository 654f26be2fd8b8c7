"""Pools that an autoscaler looks after: what is counted, what is no alarm, and what a team is given meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from accounts.roles import Role
from fleet.flavors.actions import change_flavor
from fleet.models import Cluster, Flavor
from notices.models import Notice
from provisioning.clusters.access import use_of
from provisioning.clusters.capacity import STARTING, tally
from provisioning.clusters.observe import look_at
from tests import factories
from tests.provisioning.conftest import Place
from tests.provisioning.kubernetes import Kubernetes
from tests.scene import NOW

NODE, QUEUE = ("v1", "Node"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
AGES = [(timedelta(minutes=1), (0, 0)), (STARTING, (0, 8))]


def node(
    name: str = "a",
    *,
    ready: bool = True,
    age: timedelta = timedelta(days=1),
    **spec: Any,
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"gpu": "a"},
            "creationTimestamp": (NOW - age).isoformat(),
        },
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "allocatable": {"nvidia.com/gpu": "8"},
        },
    }


def counted(nodes: list[dict[str, Any]], **pool: int) -> tuple[int, int, int]:
    """GPUs ready and cordoned, and the nodes that no autoscaler takes away."""
    flavor = Flavor(pk=1, node_labels={"gpu": "a"}, gpus_per_node=8, **pool)
    found = tally(nodes, [flavor], now=NOW)
    return found.ready[1], found.cordoned[1], found.lasting


def test_what_is_ready_and_what_is_cordoned_are_counted_apart() -> None:
    nodes = [node(), node(unschedulable=True), node(ready=False)]
    assert counted(nodes) == (8, 16, 3)


@pytest.mark.parametrize(("age", "numbers"), AGES)
def test_a_node_that_has_just_been_added_is_starting(
    age: timedelta, numbers: tuple[int, int]
) -> None:
    assert counted([node(ready=False, age=age)])[:2] == numbers


@pytest.mark.parametrize(
    "key", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"]
)
def test_a_node_that_an_autoscaler_is_about_to_delete_is_neither(key: str) -> None:
    taint = {"key": key, "effect": "NoSchedule"}
    assert counted([node(taints=[taint], unschedulable=True)])[:2] == (0, 0)


def test_only_the_least_of_a_pool_is_expected_to_last() -> None:
    nodes = [node(str(number)) for number in range(4)]
    assert counted(nodes)[2] == 4
    assert counted(nodes, max_nodes=6)[2] == 0
    assert counted(nodes, min_nodes=1, max_nodes=6)[2] == 1


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


@pytest.fixture
def pool(place: Place, priya: User) -> Place:
    """The A100s are a pool of up to three nodes, and all of them stand."""
    change_flavor(
        place.a100.pk, values={"max_nodes": 3, "growing_minutes": 6}, by=priya
    )
    assert look_at(place.cluster.pk, now=place.now)
    return place


def remove(server: Kubernetes, *words: str) -> None:
    for name in server.names(NODE):
        if name.startswith(words):
            server.delete(NODE, name)


def numbers(place: Place) -> tuple[int, int, int]:
    flavor = Flavor.objects.get(pk=place.a100.pk)
    return flavor.gpus_ready, flavor.gpus_total, flavor.free


def cluster(place: Place) -> Cluster:
    return Cluster.objects.get(pk=place.cluster.pk)


def test_nodes_that_an_autoscaler_takes_away_are_no_alarm_and_no_lost_capacity(
    pool: Place,
) -> None:
    assert numbers(pool) == (24, 24, 24)
    remove(pool.kubernetes, "a100")
    assert look_at(pool.cluster.pk, now=pool.now)
    assert numbers(pool) == (0, 24, 24)
    assert (cluster(pool).capacity_doubt, cluster(pool).broken_parts) == ("", [])
    assert not Notice.objects.filter(kind="cluster_braked").exists()


def test_losing_more_than_it_may_take_is_still_doubted(
    place: Place, priya: User
) -> None:
    change_flavor(place.a100.pk, values={"min_nodes": 3, "max_nodes": 6}, by=priya)
    look_at(place.cluster.pk, now=place.now)
    remove(place.kubernetes, "a100", "h100")
    look_at(place.cluster.pk, now=place.now)
    assert cluster(place).capacity_doubt == "The cluster listed 1 of its 6 nodes."
    assert numbers(place) == (24, 48, 48)


def test_an_empty_list_is_doubted_beside_a_pool_that_may_be_empty(pool: Place) -> None:
    remove(pool.kubernetes, "h100", "cpu")
    look_at(pool.cluster.pk, now=pool.now)
    assert (
        cluster(pool).capacity_doubt
        == "The cluster listed none of the 3 nodes that no autoscaler takes away."
    )
    assert Flavor.objects.get(pk=pool.h100.pk).gpus_total == 16


def test_a_cordoned_node_of_a_pool_takes_its_place(pool: Place) -> None:
    pool.kubernetes.patch(NODE, "a100-0", None, {"spec": {"unschedulable": True}})
    look_at(pool.cluster.pk, now=pool.now)
    flavor = Flavor.objects.get(pk=pool.a100.pk)
    assert (
        flavor.gpus_ready,
        flavor.gpus_cordoned,
        flavor.gpus_total,
        flavor.gpus_at_most,
    ) == (
        16,
        8,
        16,
        24,
    )


def test_use_it_says_what_happens_while_too_few_are_ready(pool: Place) -> None:
    factories.request(
        pool.ada, pool.tenancy, Flavor.objects.get(pk=pool.a100.pk), gpus=2
    )
    [held] = use_of(pool.row).held
    assert held.growing == ""
    remove(pool.kubernetes, "a100")
    look_at(pool.cluster.pk, now=pool.now)
    [held] = use_of(pool.row).held
    assert held.growing == (
        "0 ready now. When jobs need more, the pool grows to 24, usually within 6 minutes; until then their pods are "
        "Pending."
    )


def test_the_quota_of_what_is_granted_stands_however_the_pool_grows_and_shrinks(
    pool: Place,
) -> None:
    remove(pool.kubernetes, "a100")
    look_at(pool.cluster.pk, now=pool.now)
    factories.request(
        pool.ada, pool.tenancy, Flavor.objects.get(pk=pool.a100.pk), gpus=2
    )
    pool.reconcile()
    queue = pool.kubernetes.get(QUEUE, pool.tenancy.namespace)
    assert queue is not None
    flavors = [
        flavor
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
    ]
    quotas = {
        (f["name"], one["name"]): one["nominalQuota"]
        for f in flavors
        for one in f["resources"]
    }
    assert str(quotas["a100", "nvidia.com/gpu"]) == "2"
    for _ in range(2):
        pool.later(minutes=20)
        look_at(pool.cluster.pk, now=pool.now)
        assert pool.reconcile() == 0
        remove(pool.kubernetes, "h100-0")

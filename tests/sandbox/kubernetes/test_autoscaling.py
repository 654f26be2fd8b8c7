"""Pods without a node make nodes of a pool appear after a moment; nodes that stay idle go away again."""

import pytest

from sandbox.kubernetes import NodePool, NodeSpec
from sandbox.kubernetes.autoscaling import GROW_SECONDS, IDLE_SECONDS
from tests.sandbox.kubernetes.jobs import World

TAINT = ("sku", "gpu", "NoSchedule")
TOLERATES = {"tolerations": [{"key": "sku", "operator": "Exists"}]}
EACH = NodeSpec("a-pool-", gpus=2, labels={"gpu": "a"}, taints=(TAINT,))


def made(*, least: int = 0, most: int = 3) -> World:
    nodes = tuple(NodePool(EACH, least, most).named(number) for number in range(least))
    world = World(
        nodes=(NodeSpec("cpu-0"), *nodes), pools=(NodePool(EACH, least, most),)
    )
    world.queue("vision", 16)
    return world


@pytest.fixture
def world() -> World:
    """A team with a queue of 16 GPUs, on a pool without a node that grows to three of two."""
    return made()


def nodes(world: World) -> list[str]:
    found = world.send("GET", "/api/v1/nodes")["items"]
    return [
        one["metadata"]["name"]
        for one in found
        if one["metadata"]["name"].startswith("a-pool-")
    ]


def test_a_pool_at_zero_grows_when_a_pod_needs_it_and_the_pod_runs(
    world: World,
) -> None:
    world.job("vision", "train", 2, seconds=30, pod=TOLERATES)
    world.pass_time()
    assert (world.phases("vision"), nodes(world)) == (["Pending"], [])
    world.pass_time(GROW_SECONDS)
    assert nodes(world) == ["a-pool-000000"]
    world.pass_time()
    assert world.phases("vision") == ["Running"]


def test_it_grows_by_as_many_nodes_as_are_needed_and_never_beyond_its_maximum(
    world: World,
) -> None:
    for number in range(4):
        world.job("vision", f"train-{number}", 2, pod=TOLERATES)
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert nodes(world) == [f"a-pool-{number:06d}" for number in range(3)]
    world.pass_time(GROW_SECONDS)
    world.pass_time()
    assert len(nodes(world)) == 3
    assert sorted(world.phases("vision")) == ["Pending", *["Running"] * 3]


def test_what_no_node_of_the_pool_could_run_makes_none_appear(world: World) -> None:
    world.job("vision", "large", 4, pod=TOLERATES)
    world.job("vision", "elsewhere", 1, pod={**TOLERATES, "nodeSelector": {"gpu": "b"}})
    world.job("vision", "intolerant", 1)
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert nodes(world) == []


def test_an_idle_node_goes_away_and_a_busy_one_stays(world: World) -> None:
    world.job("vision", "short", 2, seconds=5, pod=TOLERATES)
    world.job("vision", "long", 2, pod=TOLERATES)
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    world.pass_time()
    assert len(nodes(world)) == 2
    world.pass_time(6)
    world.pass_time(IDLE_SECONDS - 1)
    assert len(nodes(world)) == 2
    world.pass_time(2)
    assert len(nodes(world)) == 1
    assert "Running" in world.phases("vision")


def test_a_pool_keeps_its_least_and_nothing_is_due_when_nothing_is_to_do() -> None:
    world = made(least=1)
    world.pass_time(IDLE_SECONDS + 1)
    world.pass_time(IDLE_SECONDS + 1)
    assert nodes(world) == ["a-pool-000000"]
    assert world.cluster.controllers.next_node_due is None


def test_a_cluster_from_a_snapshot_goes_on_growing(world: World) -> None:
    world.job("vision", "train", 2, pod=TOLERATES)
    world.pass_time()
    world.cluster.restore(world.cluster.snapshot())
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 1


def test_it_adds_no_node_that_the_cloud_does_not_permit(world: World) -> None:
    autoscaler = world.cluster.controllers.autoscaler
    autoscaler.permits = lambda pools: len(pools) <= 1
    for number in range(2):
        world.job("vision", f"train-{number}", 2, pod=TOLERATES)
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 1
    autoscaler.permits = lambda pools: True
    autoscaler.wake()
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 2


def test_it_goes_by_the_limits_that_it_was_told_last(world: World) -> None:
    autoscaler = world.cluster.controllers.autoscaler
    autoscaler.keep(NodePool(EACH, 0, 1))
    for number in range(2):
        world.job("vision", f"train-{number}", 2, pod=TOLERATES)
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 1
    autoscaler.leave(EACH.name)
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 1
    autoscaler.keep(NodePool(EACH, 0, 2))
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 2
    autoscaler.keep(NodePool(EACH, 0, 3))
    autoscaler.clear()
    world.job("vision", "train-2", 2, pod=TOLERATES)
    world.pass_time()
    world.pass_time(GROW_SECONDS)
    assert len(nodes(world)) == 2


def test_nodes_of_a_pool_lie_in_its_zones_by_turns() -> None:
    pool = NodePool(EACH, 0, 3, ("eastus-1", "eastus-2"))
    zones = [
        pool.named(number).labels["topology.kubernetes.io/zone"] for number in range(3)
    ]
    assert zones == ["eastus-1", "eastus-2", "eastus-1"]

"""Quota that is free is no room on a node: who would wait for one is told before anything is sent."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from provisioning.desired.first_job import Kind
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.test_runs import ASKED
from ui.parts import Verdict
from workloads.observed import Node
from workloads.runs import actions
from workloads.runs.planning.nodes import nodes_as_seen, on_nodes
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.start_verdict import AT_ONCE, start_verdict_of_plan

GPU = "nvidia.com/gpu"
POOL = Pool(
    kind=Kind("a100", GPU, {}, []),
    product="A100",
    gpus=16,
    borrow=0,
    per_node=8,
    usd_per_hour=Decimal(1),
    on_cluster=16,
)
FREE: Verdict = {
    "tone": "good",
    "sentence": AT_ONCE,
    "detail": "16 of your 16 × A100 are free now.",
    "rules": [],
}


def nodes(*free: int) -> list[Node]:
    """Nodes of eight A100 each, with so many free, and one of another kind with all of its own."""
    found = [
        Node(name=f"a100-{number}", flavor="a100", gpus=8, used=8 - one)
        for number, one in enumerate(free)
    ]
    return [*found, Node(name="h100-0", flavor="h100", gpus=8)]


@pytest.mark.parametrize(
    ("each", "pods", "free"),
    [
        pytest.param(8, 2, (8, 8), id="a node for each"),
        pytest.param(4, 2, (0, 8), id="both on one"),
        pytest.param(0, 1, (0, 0), id="no GPU"),
        pytest.param(8, 2, (), id="no node was read"),
    ],
)
def test_what_nodes_have_room_for_starts_at_once(
    each: int, pods: int, free: Sequence[int]
) -> None:
    assert on_nodes(FREE, POOL, nodes(*free), each=each, pods=pods) == FREE


@pytest.mark.parametrize(
    ("each", "pods", "free", "said"),
    [
        (4, 1, (3, 2), "But no node has 4 × A100 free now: the most on one is 3."),
        (8, 2, (8, 7), "room for 1 of its 2 pods now, with 8 × A100 each."),
        (8, 2, (4, 4), "room for none of its pods now, with 8 × A100 each."),
    ],
)
def test_what_fits_no_node_now_says_so_and_what_would_do(
    each: int, pods: int, free: Sequence[int], said: str
) -> None:
    found = on_nodes(FREE, POOL, nodes(*free), each=each, pods=pods)
    assert found["tone"] == "waiting"
    assert found["sentence"] == "It gets its GPUs, and waits for room on a node"
    assert said in found["detail"]
    assert found["detail"].endswith("with fewer GPUs in a pod it may fit sooner.")


def test_a_cluster_that_grows_adds_a_node() -> None:
    growing = replace(POOL, on_cluster=32)
    found = on_nodes(FREE, growing, nodes(4, 4), each=8, pods=1)
    assert found["sentence"] == "It starts once the cluster has added nodes"
    assert found["detail"].endswith(
        "The cluster can add nodes, which takes some minutes."
    )


def test_a_cluster_that_can_add_too_few_nodes_waits_for_those_that_are_there() -> None:
    growing = replace(POOL, on_cluster=24)
    found = on_nodes(FREE, growing, nodes(0, 0), each=8, pods=2)
    assert found["sentence"] == "It gets its GPUs, and waits for room on a node"


def test_a_node_that_the_cluster_adds_takes_whole_pods_alone() -> None:
    """Five of its eight GPUs are a pod's, and the three beside them are no room for another one of five."""
    growing = replace(POOL, on_cluster=24)
    found = on_nodes(FREE, growing, nodes(4), each=5, pods=3)
    assert found["sentence"] == "It gets its GPUs, and waits for room on a node"
    two = on_nodes(FREE, growing, nodes(4), each=5, pods=2)
    assert two["sentence"] == "It starts once the cluster has added nodes"


def test_a_node_that_is_serviced_takes_no_pod_and_is_not_counted_as_there() -> None:
    serviced = Node(name="a100-9", flavor="a100", gpus=8, is_cordoned=True)
    found = on_nodes(FREE, POOL, [serviced, *nodes(0)], each=8, pods=1)
    assert found["sentence"] == "It starts once the cluster has added nodes"


def test_trials_that_begin_one_by_one_need_room_for_one_of_them() -> None:
    room, none = nodes(8, 0), nodes(4, 4)
    apart = partial(on_nodes, FREE, POOL, each=8, pods=4, is_together=False)
    assert apart(room) == FREE
    assert apart(none)["tone"] == "waiting"


def taken(watched: Watched, node: int, gpus: int) -> None:
    """Somebody else's pod holds GPUs of a node."""
    container: dict[str, Any] = {
        "name": "other",
        "image": "registry.example.com/other:1",
        "resources": {"limits": {GPU: str(gpus), "cpu": "1", "memory": "1Gi"}},
    }
    watched.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"other-{node}", "namespace": "default"},
            "spec": {
                "nodeName": f"a100-{node}",
                "containers": [container],
                "tolerations": [{"key": "sku", "operator": "Exists"}],
            },
        }
    )


def test_a_run_whose_quota_is_free_is_compared_with_the_nodes_of_its_kind(
    watched: Watched,
) -> None:
    """Its team has both GPUs to itself, and each node one that others leave."""
    for node in range(3):
        taken(watched, node, 7)
    flavors = list(watched.cluster.flavors.all())

    def free() -> list[int]:
        seen = nodes_as_seen(watched.cluster.pk, flavors)
        return [one.free for one in seen if one.flavor == "a100"]

    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        wait_until(lambda: free() == [1, 1, 1], what="the pods to be seen")
        two = actions.preview(watched.tenancy.pk, ASKED, by=watched.ada, key="one")
        one_gpu = replace(ASKED, values={**ASKED.values, "gpus": 1})
        one = actions.preview(watched.tenancy.pk, one_gpu, by=watched.ada, key="two")
        now = timezone.now()
        waits = start_verdict_of_plan(two, watched.tenancy, "a100", now)
        starts = start_verdict_of_plan(one, watched.tenancy, "a100", now)
    assert waits["tone"] == "waiting"
    assert "no node has 2 × A100 free now: the most on one is 1" in waits["detail"]
    assert (starts["tone"], starts["sentence"]) == ("good", AT_ONCE)

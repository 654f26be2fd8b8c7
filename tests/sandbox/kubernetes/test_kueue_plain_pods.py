"""Plain pods in Kueue's line: gated until there is room, sent to their flavor's nodes, deleted when they must stop."""

import json
from typing import Any

import pytest

from sandbox.kubernetes import Cluster
from tests.sandbox.kubernetes.jobs import CLASS, GPU, KUEUE, QUEUE_NAME, World
from tests.sandbox.kubernetes.test_cluster import TOKENS

GATE, MANAGED = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/managed"


@pytest.fixture
def world() -> World:
    """Two teams of one cohort with two GPUs each, of which nothing is lent."""
    made = World()
    made.queue("vision", 2, borrowingLimit="0")
    made.queue("speech", 2, borrowingLimit="0")
    return made


def start(
    world: World, name: str, gpus: int = 1, *, namespace: str = "vision", **more: Any
) -> Any:
    """Create a pod that no controller made; `labels` and `annotations` go to its metadata."""
    container = {
        "name": "notebook",
        "image": "lab:1",
        "resources": {"limits": {GPU: str(gpus)}},
    }
    labels = more.get("labels", {QUEUE_NAME: "default"})
    metadata = {
        "name": name,
        "labels": labels,
        "annotations": more.get("annotations", {}),
    }
    body = {
        "metadata": metadata,
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    return world.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def end(world: World, name: str, *, namespace: str = "vision") -> None:
    world.send("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
    world.pass_time()


def pod(world: World, name: str) -> Any:
    return next(one for one in world.pods("vision") if one["metadata"]["name"] == name)


def gates(world: World, name: str) -> list[str]:
    return [one["name"] for one in pod(world, name)["spec"].get("schedulingGates", ())]


def names(world: World) -> list[str]:
    return sorted(one["metadata"]["name"] for one in world.pods("vision"))


def queue(world: World) -> Any:
    return world.send("GET", f"/apis/{KUEUE}/clusterqueues/vision")["status"]


def line(world: World) -> list[tuple[str, int]]:
    path = (
        "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/vision/pendingworkloads"
    )
    rows = world.send("GET", path)["items"]
    return [
        (one["metadata"]["ownerReferences"][0]["name"], one["positionInClusterQueue"])
        for one in rows
    ]


def test_a_pod_waits_behind_its_gate_in_the_line(world: World) -> None:
    world.job("vision", "busy", 2)
    made = start(world, "first")
    assert made["spec"]["schedulingGates"] == [{"name": GATE}]
    assert made["metadata"]["labels"][MANAGED] == "true"
    assert made["metadata"]["finalizers"] == [MANAGED]
    [condition] = made["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == (
        "PodScheduled",
        "SchedulingGated",
    )
    start(world, "second")
    world.pass_time(60)
    assert line(world) == [("first", 0), ("second", 1)]
    waits = world.workload("vision", "first")
    assert waits["metadata"]["name"].startswith("pod-first-")
    assert waits["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert world.said("vision", "first")[:2] == ("False", "Pending")
    assert pod(world, "first")["status"]["phase"] == "Pending"
    assert queue(world)["pendingWorkloads"] == 2


def test_pods_are_let_in_in_their_order_and_sent_to_the_nodes_of_their_flavor(
    world: World,
) -> None:
    toleration = {
        "key": "sku",
        "operator": "Equal",
        "value": "gpu",
        "effect": "NoSchedule",
    }
    world.change("resourceflavors", "a", {"spec": {"tolerations": [toleration]}})
    world.job("vision", "busy", 2)
    for name, gpus in (("first", 1), ("second", 1), ("third", 1)):
        start(world, name, gpus)
    world.end("vision", "busy")
    world.pass_time()
    assert [gates(world, name) for name in ("first", "second", "third")] == [
        [],
        [],
        [GATE],
    ]
    let_in = pod(world, "first")
    assert let_in["spec"]["nodeSelector"] == {"gpu": "a"}
    assert toleration in let_in["spec"]["tolerations"]
    assert let_in["metadata"]["labels"]["kueue.x-k8s.io/cluster-queue-name"] == "vision"
    assert let_in["status"]["phase"] == "Running"
    assert world.said("vision", "first", "PodsReady")[:2] == ("True", "Started")
    assert line(world) == [("third", 0)]


@pytest.mark.parametrize(("code", "reason"), [("0", "Succeeded"), ("1", "Failed")])
def test_the_end_of_a_pod_frees_its_quota_and_its_finalizer(
    world: World, code: str, reason: str
) -> None:
    start(world, "short", 2, annotations={"test/run-for": "10", "test/exit-code": code})
    start(world, "next", 2)
    world.pass_time()
    assert gates(world, "next") == [GATE]
    world.pass_time(10)
    assert world.said("vision", "short", "Finished")[:2] == ("True", reason)
    assert "finalizers" not in pod(world, "short")["metadata"]
    assert gates(world, "next") == []
    assert queue(world)["admittedWorkloads"] == 1


def test_a_pod_that_is_deleted_while_it_waits_leaves_the_line(world: World) -> None:
    start(world, "runs", 2)
    start(world, "waits")
    assert line(world) == [("waits", 0)]
    end(world, "waits")
    assert names(world) == ["runs"]
    assert line(world) == []
    assert world.workload("vision", "waits") is None
    end(world, "runs")
    assert names(world) == []
    assert queue(world)["reservingWorkloads"] == 0


def test_a_pod_that_is_preempted_is_deleted_with_its_reason(world: World) -> None:
    start(world, "weak", 2, labels={QUEUE_NAME: "default", CLASS: "low"})
    world.pass_time()
    world.send(
        "PATCH",
        "/api/v1/namespaces/vision/pods/weak",
        {"metadata": {"finalizers": [MANAGED, "test.io/hold"]}},
    )
    start(world, "strong", 2, labels={QUEUE_NAME: "default", CLASS: "high"})
    world.pass_time()
    gone = pod(world, "weak")
    assert gone["metadata"]["deletionTimestamp"]
    assert gone["metadata"]["finalizers"] == ["test.io/hold"]
    why = next(
        one
        for one in gone["status"]["conditions"]
        if one["type"] == "TerminationTarget"
    )
    assert why["reason"] == "WorkloadEvicted"
    assert why["message"].startswith("Preempted to accommodate a workload")
    assert gates(world, "strong") == []
    world.send(
        "PATCH",
        "/api/v1/namespaces/vision/pods/weak",
        {"metadata": {"finalizers": None}},
    )
    assert names(world) == ["strong"]
    assert world.workload("vision", "weak") is None


def test_a_pod_whose_workload_is_deleted_goes_when_it_runs_and_is_queued_anew_when_it_waits(
    world: World,
) -> None:
    start(world, "runs", 2)
    start(world, "waits")
    world.pass_time()
    for name in ("waits", "runs"):
        known = world.workload("vision", name)["metadata"]["name"]
        world.send("DELETE", f"/apis/{KUEUE}/namespaces/vision/workloads/{known}")
    world.pass_time()
    assert names(world) == ["waits"]
    assert gates(world, "waits") == []


def test_the_pods_of_a_job_are_its_own_and_others_without_a_queue_are_let_be(
    world: World,
) -> None:
    world.job("vision", "train", 1, template={})
    start(world, "free", 1, labels={}, annotations={"test/run-for": "60"})
    world.pass_time()
    for one in world.pods("vision"):
        assert "schedulingGates" not in one["spec"]
        assert MANAGED not in (one["metadata"].get("labels") or {})
    assert queue(world)["admittedWorkloads"] == 1


def test_a_pod_of_a_namespace_that_goes_does_not_hold_it_back(world: World) -> None:
    start(world, "runs")
    world.send("DELETE", "/api/v1/namespaces/vision")
    for _ in range(5):
        world.cluster.controllers.terminate()
    found = world.send("GET", "/api/v1/namespaces")["items"]
    assert "vision" not in [one["metadata"]["name"] for one in found]


def test_a_cluster_from_a_snapshot_knows_who_waits_and_lets_them_in(
    world: World,
) -> None:
    start(world, "runs", 2)
    start(world, "waits")
    world.pass_time()
    state = json.loads(json.dumps(world.cluster.snapshot()))
    world.cluster = Cluster("dev", nodes=world.nodes, tokens=TOKENS, state=state)
    world.cluster.controllers.now = lambda: world.time
    world.pass_time()
    assert (gates(world, "runs"), gates(world, "waits")) == ([], [GATE])
    assert line(world) == [("waits", 0)]
    end(world, "runs")
    assert gates(world, "waits") == []
    world.pass_time()
    assert pod(world, "waits")["status"]["phase"] == "Running"

"""Pods of Volcano's scheduler that no job of its made: each in a group, in the queue that it or its namespace names."""

from typing import Any

import pytest

from tests.sandbox.kubernetes.volcanoes import GPU, SCHEDULING, TEAM, VolcanoWorld

QUEUE_NAME, GROUP_NAME = (
    "scheduling.volcano.sh/queue-name",
    "scheduling.k8s.io/group-name",
)


@pytest.fixture
def world() -> VolcanoWorld:
    """A team with a queue of 4 GPUs, on a cluster of 16."""
    world = VolcanoWorld()
    world.queue(gpus=4)
    return world


def pod(
    world: VolcanoWorld, name: str, annotations: dict[str, str], gpus: int = 1
) -> Any:
    container = {
        "name": "main",
        "image": "train:1",
        "resources": {"limits": {GPU: str(gpus)}},
    }
    spec = {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "containers": [container],
    }
    metadata = {"name": name, "annotations": annotations}
    return world.send(
        "POST", f"/api/v1/namespaces/{TEAM}/pods", {"metadata": metadata, "spec": spec}
    )


def test_a_pod_gets_a_group_of_its_own_and_a_node(world: VolcanoWorld) -> None:
    made = pod(world, "p", {QUEUE_NAME: TEAM, "test/run-for": "5"})
    group = world.groups()[0]
    assert group["metadata"]["name"] == f"podgroup-{made['metadata']['uid']}"
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, TEAM)
    assert group["spec"]["minResources"][GPU] == "1"
    assert (
        world.pods()[0]["metadata"]["annotations"][GROUP_NAME]
        == group["metadata"]["name"]
    )
    world.pass_time()
    assert (world.phases(), world.groups()[0]["status"]["phase"]) == (
        {"p": "Running"},
        "Running",
    )

    world.pass_time(6)

    assert (world.phases(), world.groups()[0]["status"]["phase"]) == (
        {"p": "Succeeded"},
        "Completed",
    )


def test_a_pod_without_an_annotation_is_in_the_queue_of_its_namespace(
    world: VolcanoWorld,
) -> None:
    pod(world, "first", {})
    note = {"metadata": {"annotations": {QUEUE_NAME: TEAM}}}
    world.send("PATCH", f"/api/v1/namespaces/{TEAM}", note)
    pod(world, "second", {})
    assert sorted(group["spec"]["queue"] for group in world.groups()) == [
        "default",
        TEAM,
    ]


def test_a_pod_waits_while_its_queue_is_full(world: VolcanoWorld) -> None:
    pod(world, "first", {QUEUE_NAME: TEAM}, 3)
    pod(world, "second", {QUEUE_NAME: TEAM}, 3)
    world.pass_time()
    assert world.phases() == {"first": "Running", "second": "Pending"}

    world.send("DELETE", f"/api/v1/namespaces/{TEAM}/pods/first")
    world.pass_time()

    assert world.phases() == {"second": "Running"}
    assert len(world.groups()) == 1


def test_the_pods_of_one_owner_share_a_group(world: VolcanoWorld) -> None:
    container = {
        "name": "main",
        "image": "train:1",
        "resources": {"limits": {GPU: "1"}},
    }
    template = {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "containers": [container],
    }
    marked = {"metadata": {"annotations": {QUEUE_NAME: TEAM}}, "spec": template}
    body = {
        "metadata": {"name": "many"},
        "spec": {"parallelism": 2, "completions": 2, "template": marked},
    }
    world.send("POST", f"/apis/batch/v1/namespaces/{TEAM}/jobs", body)
    world.pass_time()
    assert [
        group["metadata"]["ownerReferences"][0]["kind"] for group in world.groups()
    ] == ["Job"]
    assert set(world.phases().values()) == {"Running"}


def test_a_pod_may_bring_a_group_that_is_there(world: VolcanoWorld) -> None:
    spec = {"minMember": 2, "queue": TEAM}
    body = {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": {"name": "pair"},
        "spec": spec,
    }
    world.send("POST", f"/apis/{SCHEDULING}/namespaces/{TEAM}/podgroups", body)
    pod(world, "first", {GROUP_NAME: "pair"})
    world.pass_time()
    assert world.phases() == {"first": "Pending"}

    pod(world, "second", {GROUP_NAME: "pair"})
    world.pass_time()

    assert set(world.phases().values()) == {"Running"}
    assert [group["metadata"]["name"] for group in world.groups()] == ["pair"]


def test_a_pod_of_the_usual_scheduler_has_no_group(world: VolcanoWorld) -> None:
    container = {
        "name": "main",
        "image": "train:1",
        "resources": {"limits": {GPU: "16"}},
    }
    body = {
        "metadata": {"name": "p", "annotations": {"test/run-for": "5"}},
        "spec": {"containers": [container]},
    }
    world.send("POST", f"/api/v1/namespaces/{TEAM}/pods", body)
    assert world.groups() == []

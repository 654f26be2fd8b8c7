"""A spot node of the sandbox is announced, taken with its pods, and comes back if that was wished."""

import json
from typing import Any

import pytest

from tests.recordings.calling import call
from tests.sandbox.kubernetes.jobs import World
from tests.sandbox.kubernetes.test_cluster import HEADERS

PATH = "/sandbox/interruptions"


@pytest.fixture
def world() -> World:
    """A Job of 8 GPUs on one of two nodes."""
    made = World()
    made.queue("vision", 16)
    made.job("vision", "train", gpus=8)
    made.pass_time()
    return made


def node_of(world: World) -> str:
    return str(
        next(
            pod for pod in world.pods("vision") if pod["status"]["phase"] == "Running"
        )["spec"]["nodeName"]
    )


def nodes(world: World) -> list[str]:
    return [
        one["metadata"]["name"] for one in world.send("GET", "/api/v1/nodes")["items"]
    ]


def reasons(world: World, namespace: str) -> set[str]:
    return {
        one["reason"]
        for one in world.send("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    }


def test_a_node_is_announced_first_and_then_taken_with_its_pods(world: World) -> None:
    name = node_of(world)
    world.send("POST", PATH, {"node": name, "notice": 30})
    assert "PreemptScheduled" in reasons(world, "default")
    world.pass_time(29)
    assert name in nodes(world)
    world.pass_time(2)
    assert name not in nodes(world)
    assert "DeletingNode" in reasons(world, "default")
    assert world.get_job("vision", "train")["status"]["failed"] == 1


def test_a_job_that_may_fail_goes_on_elsewhere_and_keeps_its_quota(
    world: World,
) -> None:
    name = node_of(world)
    world.send("POST", PATH, {"node": name, "notice": 0})
    for seconds in (0.1, 10, 0.1):
        world.pass_time(seconds)
    assert node_of(world) != name
    assert world.said("vision", "train", "Admitted")[0] == "True"
    assert [pod["spec"]["nodeName"] for pod in world.pods("vision")] == [node_of(world)]


def test_a_job_may_ignore_that_its_node_was_taken(world: World) -> None:
    rule = {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    spec = {"backoffLimit": 0, "podFailurePolicy": {"rules": [rule]}}
    world.job("vision", "spot", gpus=4, spec=spec)
    world.pass_time()
    [before] = [
        one
        for one in world.pods("vision")
        if one["metadata"]["name"].startswith("spot-")
    ]
    world.send(
        "POST", PATH, {"node": before["spec"]["nodeName"], "notice": 0, "back_after": 1}
    )
    for seconds in (0.1, 1.1, 0.1):
        world.pass_time(seconds)
    status = world.get_job("vision", "spot")["status"]
    assert (status.get("failed"), status["active"], status["ready"]) == (None, 1, 1)


def test_a_node_comes_back_when_that_was_wished(world: World) -> None:
    name = node_of(world)
    world.send("POST", PATH, {"node": name, "notice": 0, "back_after": 60})
    world.pass_time(1)
    assert name not in nodes(world)
    world.pass_time(60)
    assert name in nodes(world)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"node": "none"},
        {"node": "a-0", "notice": -1},
        {"node": "a-0", "when": 1},
        {"node": "a-0", "notice": None},
    ],
    ids=[
        "nothing",
        "a list",
        "no such node",
        "in the past",
        "an unknown word",
        "no notice",
    ],
)
def test_what_makes_no_sense_is_refused(world: World, body: Any) -> None:
    answer = call(
        world.cluster.app, "POST", PATH, {}, HEADERS, json.dumps(body).encode()
    )
    assert answer.status == 400
    assert len(nodes(world)) == 2


def test_a_policy_may_end_the_job_whose_node_is_lost(world: World) -> None:
    world.end("vision", "train")
    rule = {
        "action": "FailJob",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    world.job("vision", "gang", gpus=8, spec={"podFailurePolicy": {"rules": [rule]}})
    world.pass_time()
    [pod] = world.pods("vision")
    world.send("POST", PATH, {"node": node_of(world), "notice": 0})
    world.pass_time()
    failed = world.get_job("vision", "gang")["status"]["conditions"][-1]
    assert (failed["type"], failed["reason"], failed["message"]) == (
        "Failed",
        "PodFailurePolicy",
        f"Pod vision/{pod['metadata']['name']} has condition DisruptionTarget matching FailJob rule at index 0",
    )


def test_a_node_that_its_cloud_takes_for_good_does_not_come_back(world: World) -> None:
    name = node_of(world)
    taken = world.cluster.controllers.interruptions
    taken.take(name)
    taken.take("nothing-of-this-name")
    world.pass_time(3600)
    assert name not in nodes(world)

"""A Job of the sandbox has pods that find a node, run as long as they say, and count in the namespace's quota."""

from typing import Any

import pytest

from sandbox.kubernetes import Cluster, NodeSpec
from tests.sandbox.kubernetes.jobs import GPU, World
from tests.sandbox.kubernetes.test_cluster import TOKENS


@pytest.fixture
def world() -> World:
    """A team with a queue of four GPUs."""
    made = World()
    made.queue("vision", 4)
    return made


def events(world: World, namespace: str) -> list[str]:
    found = world.send("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return sorted({one["reason"] for one in found})


def test_a_job_without_a_queue_is_left_alone_and_runs(world: World) -> None:
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "free"}})
    world.job("free", "plain", queue="")
    assert world.running() == ["plain"]
    assert world.workload("free", "plain") is None
    world.pass_time()
    assert world.phases("free") == ["Running"]


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({"container": {"command": ["sh", "-c", "echo a; sleep 90"]}}, 90.0),
        ({"container": {"command": ["sleep"], "args": ["2m"]}}, 120.0),
        (
            {
                "annotations": {"test/run-for": "7"},
                "container": {"command": ["sleep", "90"]},
            },
            7.0,
        ),
    ],
    ids=["a shell that sleeps", "minutes", "the annotation before the command"],
)
def test_pods_run_as_long_as_they_say(
    world: World, more: dict[str, Any], seconds: float
) -> None:
    world.job("vision", "train", **more)
    world.pass_time()
    world.pass_time(seconds - 1)
    assert world.phases("vision") == ["Running"]
    assert world.get_job("vision", "train")["status"]["active"] == 1
    world.pass_time(1.1)
    assert world.phases("vision") == ["Succeeded"]
    status = world.get_job("vision", "train")["status"]
    assert (status["succeeded"], "active" in status) == (1, False)
    assert world.said("vision", "train", "Finished")[:2] == ("True", "Succeeded")


def test_pods_that_say_nothing_run_until_they_are_deleted(world: World) -> None:
    world.job("vision", "notebook")
    world.pass_time()
    world.pass_time(10**6)
    assert world.phases("vision") == ["Running"]
    world.end("vision", "notebook")
    assert (world.pods("vision"), world.workload("vision", "notebook")) == ([], None)


def test_what_fails_is_tried_again_as_often_as_it_may_and_later_each_time(
    world: World,
) -> None:
    world.job(
        "vision",
        "bad",
        seconds=1,
        annotations={"test/exit-code": "3"},
        spec={"backoffLimit": 2},
    )
    for seconds in (0.1, 1.1, 9):
        world.pass_time(seconds)
    assert world.phases("vision") == ["Failed"]
    for seconds in (1.1, 0.1, 1.1, 20.1, 0.1, 1.1):
        world.pass_time(seconds)
    assert world.phases("vision") == ["Failed"] * 3
    status = world.get_job("vision", "bad")["status"]
    assert (status["failed"], status["conditions"][-1]["reason"]) == (
        3,
        "BackoffLimitExceeded",
    )
    assert world.said("vision", "bad", "Finished")[:2] == ("True", "Failed")


def test_several_pods_run_beside_and_after_each_other(world: World) -> None:
    world.job("vision", "wide", seconds=5, spec={"parallelism": 2, "completions": 3})
    world.pass_time()
    assert world.phases("vision") == ["Running"] * 2
    assert world.workload("vision", "wide")["spec"]["podSets"][0]["count"] == 2
    world.pass_time(6)
    assert sorted(world.phases("vision")) == ["Pending", "Succeeded", "Succeeded"]
    world.pass_time()
    world.pass_time(6)
    assert world.get_job("vision", "wide")["status"]["succeeded"] == 3


def test_pods_beyond_the_namespace_quota_wait_until_there_is_room(world: World) -> None:
    path = "/api/v1/namespaces/vision/resourcequotas"
    world.send(
        "POST",
        path,
        {"metadata": {"name": "small"}, "spec": {"hard": {f"requests.{GPU}": "1"}}},
    )
    world.job("vision", "blocked", 2)
    assert (world.pods("vision"), world.running()) == ([], ["blocked"])
    assert "FailedCreate" in events(world, "vision")
    assert "active" not in world.get_job("vision", "blocked")["status"]
    world.send("PATCH", f"{path}/small", {"spec": {"hard": {f"requests.{GPU}": "2"}}})
    world.pass_time()
    assert world.phases("vision") == ["Running"]
    assert world.send("GET", f"{path}/small")["status"]["used"] == {
        f"requests.{GPU}": "2"
    }
    world.end("vision", "blocked")
    assert world.send("GET", f"{path}/small")["status"]["used"] == {
        f"requests.{GPU}": "0"
    }


def test_a_limit_range_fills_in_what_pods_leave_out(world: World) -> None:
    item = {
        "type": "Container",
        "default": {"cpu": "2"},
        "defaultRequest": {"cpu": "1"},
    }
    body = {"metadata": {"name": "defaults"}, "spec": {"limits": [item]}}
    world.send("POST", "/api/v1/namespaces/vision/limitranges", body)
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "free"}})
    world.send("POST", "/api/v1/namespaces/free/limitranges", body)
    world.job("free", "plain", 0, queue="")
    [pod] = world.pods("free")
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "1"},
    }
    world.job("vision", "queued", 1)
    # Kueue counts with it too, and this queue has no processors.
    assert world.said("vision", "queued")[2] == (
        "couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue"
    )


def test_a_pod_waits_for_a_node_and_says_why() -> None:
    world = World(
        nodes=(
            NodeSpec("a-0", gpus=2, labels={"gpu": "a"}),
            NodeSpec("b-0", gpus=8, labels={"gpu": "b"}),
        )
    )
    world.queue("vision", 4)
    world.job("vision", "first", 2, seconds=60)
    world.job("vision", "second", 2)
    world.pass_time()
    assert sorted(world.phases("vision")) == ["Pending", "Running"]
    waiting = next(
        pod for pod in world.pods("vision") if pod["status"]["phase"] == "Pending"
    )
    [said] = waiting["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    assert said["message"].startswith(
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."
    )
    assert "FailedScheduling" in events(world, "vision")
    world.pass_time(61)
    world.pass_time()
    assert sorted(world.phases("vision")) == ["Running", "Succeeded"]


def test_a_cordoned_node_takes_nothing(world: World) -> None:
    for name in ("a-0", "a-1"):
        world.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    world.job("vision", "train")
    world.pass_time()
    assert world.phases("vision") == ["Pending"]
    world.send("PATCH", "/api/v1/nodes/a-1", {"spec": {"unschedulable": None}})
    world.pass_time()
    assert [pod["spec"]["nodeName"] for pod in world.pods("vision")] == ["a-1"]


def test_pods_stay_when_their_job_is_deleted_as_kubectl_would_not(world: World) -> None:
    world.job("vision", "train")
    world.pass_time()
    world.end("vision", "train", "Orphan")
    [pod] = world.pods("vision")
    assert ("ownerReferences" in pod["metadata"], "finalizers" in pod["metadata"]) == (
        False,
        False,
    )
    world.job("vision", "other", 4)
    assert world.running() == ["other"]  # the quota is free again


def test_foreground_deletion_ends_with_the_last_pod(world: World) -> None:
    world.job("vision", "train", spec={"parallelism": 2})
    world.pass_time()
    world.end("vision", "train", "Foreground")
    assert world.send("GET", "/apis/batch/v1/namespaces/vision/jobs")["items"] == []
    assert world.pods("vision") == []


def test_a_namespace_goes_with_what_runs_in_it(world: World) -> None:
    world.job("vision", "train")
    world.pass_time()
    world.send("DELETE", "/api/v1/namespaces/vision")
    for _ in range(3):
        world.cluster.controllers.terminate()
    names = [
        one["metadata"]["name"]
        for one in world.send("GET", "/api/v1/namespaces")["items"]
    ]
    assert "vision" not in names


def test_what_ran_runs_on_after_a_restart(world: World) -> None:
    world.job("vision", "train", seconds=30)
    world.job("vision", "next", 4)
    world.pass_time()
    state = world.cluster.snapshot()
    world.cluster = Cluster("dev", tokens=TOKENS, state=state)
    world.cluster.controllers.now = lambda: world.time
    world.cluster.restore(state)
    world.pass_time(31)
    assert world.get_job("vision", "train")["status"]["succeeded"] == 1
    assert world.running() == ["next", "train"]


def test_a_job_that_names_an_account_that_is_not_there_gets_no_pod_and_an_event_says_why(
    world: World,
) -> None:
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "free"}})
    world.job(
        "free", "stranger", queue="", gpus=0, pod={"serviceAccountName": "nobody"}
    )
    assert world.pods("free") == []
    said = [
        event["message"]
        for event in world.send("GET", "/api/v1/namespaces/free/events")["items"]
    ]
    refused = 'forbidden: error looking up service account free/nobody: serviceaccount "nobody" not found'
    assert any(message.endswith(refused) for message in said)


def test_pull_secrets_of_an_account_are_given_to_pods_that_bring_none(
    world: World,
) -> None:
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "free"}})
    where = "/api/v1/namespaces/free/serviceaccounts/default"
    world.send("PATCH", where, {"imagePullSecrets": [{"name": "registry"}]})
    world.job("free", "plain", queue="", gpus=0)
    assert [pod["spec"]["imagePullSecrets"] for pod in world.pods("free")] == [
        [{"name": "registry"}]
    ]


def test_a_job_that_is_active_for_too_long_fails_and_its_pods_go(world: World) -> None:
    world.job("vision", "long", spec={"activeDeadlineSeconds": 30})
    world.pass_time(0.1)
    world.pass_time(29)
    assert world.phases("vision") == ["Running"]
    world.pass_time(2)
    status = world.get_job("vision", "long")["status"]
    assert (status["conditions"][-1]["reason"], world.phases("vision")) == (
        "DeadlineExceeded",
        [],
    )
    assert {"DeadlineExceeded", "Killing", "SuccessfulDelete"} <= set(
        events(world, "vision")
    )


def test_another_deadline_of_a_job_counts_from_when_it_became_active(
    world: World,
) -> None:
    world.job("vision", "long", spec={"activeDeadlineSeconds": 30})
    world.pass_time(20)
    where = "/apis/batch/v1/namespaces/vision/jobs/long"
    for seconds, phases in ((60, ["Running"]), (45, ["Running"]), (25, [])):
        world.send("PATCH", where, {"spec": {"activeDeadlineSeconds": seconds}})
        world.pass_time(10 if seconds == 60 else 0.1)
        assert world.phases("vision") == phases
    [*_, ended] = world.get_job("vision", "long")["status"]["conditions"]
    assert ended["reason"] == "DeadlineExceeded"


def test_pods_of_an_indexed_job_have_numbers_and_each_has_to_succeed(
    world: World,
) -> None:
    world.job(
        "vision",
        "sweep",
        seconds=5,
        spec={"completionMode": "Indexed", "completions": 3, "parallelism": 2},
    )
    world.pass_time()
    assert [one["spec"]["hostname"] for one in world.pods("vision")] == [
        "sweep-0",
        "sweep-1",
    ]
    for seconds in (6, 0.1, 6):
        world.pass_time(seconds)
    assert world.get_job("vision", "sweep")["status"]["completedIndexes"] == "0-2"


def test_an_image_that_cannot_be_pulled_keeps_its_pod_waiting_and_says_so(
    world: World,
) -> None:
    world.job(
        "vision", "typo", container={"image": "registry.example.com/pull-denied:1"}
    )
    world.pass_time()
    world.pass_time(6)
    assert world.phases("vision") == ["Pending"]
    [container] = world.pods("vision")[0]["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert {"Pulling", "Failed", "BackOff"} <= set(events(world, "vision"))


@pytest.mark.parametrize("policy", ["FallbackToLogsOnError", "File"])
def test_a_pod_whose_source_is_not_found_fails_before_its_program_begins(
    world: World, policy: str
) -> None:
    fetch = {
        "name": "source",
        "image": "registry.example.com/git:2",
        "command": [
            "sh",
            "-ec",
            "git fetch",
            "fetch",
            "/src",
            "https://git.example.com/x.git",
            "no-such-ref",
        ],
        "terminationMessagePolicy": policy,
    }
    world.job(
        "vision", "typo", pod={"initContainers": [fetch]}, spec={"backoffLimit": 0}
    )
    world.pass_time()
    assert world.phases("vision") == ["Failed"]
    status = world.pods("vision")[0]["status"]
    ended = status["initContainerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 1
    said = "fatal: couldn't find remote ref no-such-ref\nNot fetched: no-such-ref of https://git.example.com/x.git\n"
    assert ended.get("message") == (said if policy == "FallbackToLogsOnError" else None)
    assert status["containerStatuses"][0]["state"] == {
        "waiting": {"reason": "PodInitializing"}
    }
    assert world.said("vision", "typo", "Finished")[:2] == ("True", "Failed")


def test_a_workload_runs_no_longer_than_its_longest_time_over_all_runs(
    world: World,
) -> None:
    world.job("vision", "limited", queue="default")
    name = world.workload("vision", "limited")["metadata"]["name"]
    world.change(
        "workloads", name, {"spec": {"maximumExecutionTimeSeconds": 30}}, "vision"
    )
    world.pass_time(20)
    world.change("workloads", name, {"spec": {"active": False}}, "vision")
    world.pass_time(100)
    world.change("workloads", name, {"spec": {"active": True}}, "vision")
    world.pass_time(9)
    assert world.running() == ["limited"]
    world.pass_time(2)
    assert world.running() == []
    assert (
        world.said("vision", "limited", "Evicted")[1]
        == "DeactivatedDueToMaximumExecutionTimeExceeded"
    )
    world.change("workloads", name, {"spec": {"active": True}}, "vision")
    assert world.running() == []

"""Kueue's line in the sandbox beyond the recordings: flavors, limits, strategies, and who stops for whom."""

from typing import Any

import pytest

from sandbox.kubernetes import NodeSpec
from tests.sandbox.kubernetes.jobs import KUEUE, World

WHY = "couldn't assign flavors to pod set main: "


@pytest.fixture
def world() -> World:
    """Two teams of one cohort with four GPUs each."""
    made = World()
    made.queue("vision", 4)
    made.queue("speech", 4)
    return made


def test_the_first_flavor_with_room_is_taken_and_decides_the_nodes() -> None:
    world = World(
        nodes=(
            NodeSpec("a-0", gpus=8, labels={"gpu": "a"}),
            NodeSpec("b-0", gpus=8, labels={"gpu": "b"}),
        )
    )
    world.make("resourceflavors", "b", {"spec": {"nodeLabels": {"gpu": "b"}}})
    world.queue("vision", 2, flavors=("a", "b"), cohortName=None)
    for name in ("first", "second", "third"):
        world.job("vision", name, 2)
    world.pass_time()
    assert world.running() == ["first", "second"]
    nodes = {
        pod["metadata"]["labels"]["job-name"]: pod["spec"]["nodeName"]
        for pod in world.pods("vision")
    }
    assert nodes == {"first": "a-0", "second": "b-0"}
    short = "insufficient unused quota for nvidia.com/gpu in flavor {}, 2 more needed"
    assert world.said("vision", "third")[2] == WHY + ", ".join(
        short.format(one) for one in "ab"
    )


def test_a_job_that_asks_for_certain_nodes_gets_their_flavor_or_none() -> None:
    world = World()
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    world.make(
        "resourceflavors",
        "b",
        {"spec": {"nodeLabels": {"gpu": "b"}, "nodeTaints": [taint]}},
    )
    world.queue("vision", 2, flavors=("a", "b"))
    world.job("vision", "picky", pod={"nodeSelector": {"gpu": "b"}})
    assert world.said("vision", "picky")[2] == (
        f"{WHY}flavor a doesn't match node affinity, untolerated taint {{spot true NoSchedule <nil>}} in flavor b"
    )
    toleration = {"key": "spot", "operator": "Exists"}
    world.job(
        "vision",
        "patient",
        pod={"nodeSelector": {"gpu": "b"}, "tolerations": [toleration]},
    )
    [assigned] = world.workload("vision", "patient")["status"]["admission"][
        "podSetAssignments"
    ]
    assert assigned["flavors"] == {"nvidia.com/gpu": "b"}


@pytest.mark.parametrize(
    ("limits", "most"),
    [({}, 8), ({"borrowingLimit": "1"}, 5), ({"borrowingLimit": "0"}, 4)],
    ids=["without a limit", "one", "none"],
)
def test_a_queue_borrows_what_others_leave_idle_up_to_its_limit(
    limits: dict[str, Any], most: int
) -> None:
    world = World()
    world.queue("vision", 4, **limits)
    world.queue("speech", 4)
    for number in range(9):
        world.job("vision", f"j{number}")
    assert len(world.running()) == most
    status = world.send("GET", f"/apis/{KUEUE}/clusterqueues/vision")["status"]
    assert status["flavorsUsage"][0]["resources"][0] == {
        "borrowed": str(most - 4),
        "name": "nvidia.com/gpu",
        "total": str(most),
    }
    assert (status["admittedWorkloads"], status["pendingWorkloads"]) == (most, 9 - most)
    local = world.send("GET", f"/apis/{KUEUE}/namespaces/vision/localqueues/default")[
        "status"
    ]
    assert (local["admittedWorkloads"], local["pendingWorkloads"]) == (most, 9 - most)


def test_what_a_queue_does_not_lend_nobody_gets() -> None:
    world = World()
    world.queue("vision", 4)
    world.queue("speech", 4, lendingLimit="1")
    world.job("vision", "six", 6)
    assert world.said("vision", "six")[2] == (
        f"{WHY}insufficient quota for nvidia.com/gpu in flavor a, previously considered podsets requests (0) + "
        "current podset request (6) > maximum capacity (5)"
    )
    world.job("vision", "five", 5)
    world.job("speech", "three", 3)
    assert world.running() == ["five", "three"]


@pytest.mark.parametrize(
    ("strategy", "running"), [("BestEffortFIFO", ["small"]), ("StrictFIFO", [])]
)
def test_who_does_not_fit_blocks_the_line_only_where_it_is_strict(
    strategy: str, running: list[str]
) -> None:
    world = World()
    world.queue("vision", 4, cohortName=None, queueingStrategy=strategy)
    world.job("vision", "first", 3, priority="high")
    world.job("vision", "large", 4, priority="high")
    world.job("vision", "small", 1, priority="low")
    assert world.running() == ["first", *running]


def test_a_lowered_quota_stops_nobody_and_the_lender_takes_back_the_least_important(
    world: World,
) -> None:
    world.job("vision", "training", 2, priority="high")
    world.job("vision", "sweep", 1, priority="low")
    world.job("vision", "notebook", 1, priority="high")
    groups = [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [
                {
                    "name": "a",
                    "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "1"}],
                }
            ],
        }
    ]
    world.change("clusterqueues", "vision", {"spec": {"resourceGroups": groups}})
    assert world.running() == ["notebook", "sweep", "training"]
    world.job("speech", "theirs", 2)
    assert world.running() == ["notebook", "theirs", "training"]
    status, reason, message = world.said("vision", "sweep", "Preempted")
    assert (status, reason) == ("True", "InCohortReclamation")
    assert message.endswith(
        "due to reclamation within the cohort; preemptor path: /all/speech; preemptee path: /all/vision"
    )
    assert world.said("vision", "sweep")[0] == "False"
    job = world.get_job("vision", "sweep")
    assert (
        "nodeSelector" in job["spec"]["template"]["spec"],
        job["spec"]["suspend"],
    ) == (False, True)


def test_nobody_is_stopped_who_need_not_be(world: World) -> None:
    world.change("clusterqueues", "speech", {"spec": {"cohortName": None}})
    for name, gpus in (("one", 1), ("three", 3)):
        world.job("vision", name, gpus, priority="low")
    world.job("vision", "urgent", 3, priority="high")
    assert world.running() == ["one", "urgent"]


def test_no_equal_is_stopped_for_an_equal(world: World) -> None:
    world.change("clusterqueues", "speech", {"spec": {"cohortName": None}})
    world.job("vision", "first", 4, priority="low")
    world.job("vision", "second", 4, priority="low")
    assert world.running() == ["first"]


@pytest.mark.parametrize(
    ("policy", "stopped"), [("Never", []), ("LowerPriority", []), ("Any", ["borrower"])]
)
def test_what_was_lent_comes_back_as_the_lender_says(
    policy: str, stopped: list[str]
) -> None:
    world = World()
    world.queue("vision", 4)
    preemption = {"withinClusterQueue": "Never", "reclaimWithinCohort": policy}
    world.queue("speech", 4, preemption=preemption)
    world.job("vision", "borrower", 8, priority="high")
    world.job("speech", "lender", 4, priority="low")
    assert world.running() == (["lender"] if stopped else ["borrower"])


def test_a_local_queue_that_is_drained_stops_its_own_and_goes_on_when_it_may(
    world: World,
) -> None:
    world.job("vision", "train", 2)
    world.change(
        "localqueues", "default", {"spec": {"stopPolicy": "HoldAndDrain"}}, "vision"
    )
    assert world.running() == []
    assert world.said("vision", "train", "Evicted")[1:] == (
        "LocalQueueStopped",
        "The LocalQueue is stopped",
    )
    assert world.said("vision", "train")[2] == "LocalQueue default is inactive"
    world.change("localqueues", "default", {"spec": {"stopPolicy": "None"}}, "vision")
    assert world.running() == ["train"]


def test_a_held_queue_lets_run_what_runs_and_nobody_else_in(world: World) -> None:
    world.job("vision", "train", 2)
    world.change("clusterqueues", "vision", {"spec": {"stopPolicy": "Hold"}})
    world.job("vision", "late")
    assert world.running() == ["train"]
    assert world.said("vision", "late")[2] == "ClusterQueue vision is inactive"
    world.change("clusterqueues", "vision", {"spec": {"stopPolicy": "HoldAndDrain"}})
    assert world.running() == []
    world.change("clusterqueues", "vision", {"spec": {"stopPolicy": "None"}})
    assert world.running() == ["late", "train"]


def test_a_queue_that_is_made_later_takes_those_who_wait_for_it(world: World) -> None:
    world.job("vision", "early", queue="later")
    assert world.said("vision", "early") == (
        "False",
        "Inadmissible",
        "LocalQueue later doesn't exist",
    )
    world.make("localqueues", "later", {"spec": {"clusterQueue": "vision"}}, "vision")
    assert world.running() == ["early"]


def test_a_priority_class_that_is_made_later_lets_its_jobs_in(world: World) -> None:
    world.job("vision", "vague", priority="missing")
    assert world.workload("vision", "vague") is None
    world.make("workloadpriorityclasses", "missing", {"value": 5})
    assert world.workload("vision", "vague")["spec"]["priority"] == 5
    assert world.running() == ["vague"]

"""Volcano's scheduler in the sandbox: all pods of a group or none, within its queue, and what is owed is taken back."""

from typing import Any

import pytest

from sandbox.kubernetes import NodePool, NodeSpec
from sandbox.kubernetes.autoscaling import GROW_SECONDS
from tests.sandbox.kubernetes.volcanoes import GPU, SCHEDULING, TEAM, VolcanoWorld

RESTART = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
FOUR = tuple(NodeSpec(f"n-{number}", gpus=2) for number in range(4))
ODD = tuple(NodeSpec(f"n-{number}", gpus=3) for number in range(4))
QUOTA = f"queue resource quota insufficient: insufficient {GPU}"


@pytest.fixture
def world() -> VolcanoWorld:
    """A team whose queue may hold all 16 GPUs."""
    world = VolcanoWorld()
    world.queue()
    return world


def nodes_of(world: VolcanoWorld, namespace: str = TEAM) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in world.pods(namespace))


def scheduled(pod: Any) -> tuple[str, str]:
    found = next(
        one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"
    )
    return found.get("reason", ""), found.get("message", "")


def test_a_group_that_fits_gets_nodes_for_all_its_pods(world: VolcanoWorld) -> None:
    world.job("train", workers=2, gpus=8)
    assert nodes_of(world) == ["n-0", "n-1"]
    assert world.said("train", "Scheduled") == (
        "tasks in gang are ready to be scheduled",
        "",
    )
    assert ("Normal", "Scheduled", "pod group is ready") in world.events("PodGroup")
    told = (
        "Normal",
        "Scheduled",
        f"Successfully assigned {TEAM}/train-worker-0 to n-0",
    )
    assert told in world.events("Pod")


def test_a_group_that_does_not_fit_gets_no_node_at_all() -> None:
    world = VolcanoWorld(FOUR)
    world.queue(gpus=8)
    world.job("holes", workers=4, gpus=1)

    world.job("gang", workers=2, gpus=2)

    pods = [pod for pod in world.pods() if pod["metadata"]["name"].startswith("gang")]
    assert [pod["spec"].get("nodeName") for pod in pods] == [None, None]
    why = f"0/4 nodes are unavailable: 4 Insufficient {GPU}."
    untried = ("Unschedulable", "all nodes are unavailable")
    assert [scheduled(pod) for pod in pods] == [("Unschedulable", why), untried]
    counts = "2 Pending, 2 minAvailable; Pending: 2 Unschedulable"
    said = f"pod group is not ready, {counts}. Origin reason is gang-worker-0: {why}"
    assert world.group("gang")["status"]["phase"] == "Inqueue"
    assert world.said("gang") == (
        "NotEnoughResources",
        f"2/2 tasks in gang unschedulable: {said}",
    )
    assert (
        "Warning",
        "Unschedulable",
        f"2/2 tasks in gang unschedulable: {said}",
    ) in world.events("PodGroup")


def test_it_is_said_how_many_pods_would_have_a_node() -> None:
    world = VolcanoWorld(ODD)
    world.queue(gpus=99)
    world.job("one", workers=1, gpus=2)

    world.job("gang", workers=4, gpus=2)

    pods = [pod for pod in world.pods() if pod["metadata"]["name"].startswith("gang")]
    assert {pod["spec"].get("nodeName") for pod in pods} == {None}
    why = f"0/4 nodes are unavailable: 4 Insufficient {GPU}."
    short = "pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable"
    said = f"{short}. Origin reason is gang-worker-3: {why}"
    assert world.said("gang")[1] == f"1/4 tasks in gang unschedulable: {said}"
    assert (
        "Warning",
        "Unschedulable",
        f"4/4 tasks in gang unschedulable: {said}",
    ) in world.events("PodGroup")
    possible = f"Pod {TEAM}/gang-worker-0 can possibly be assigned to n-1, once minAvailable is satisfied"
    assert scheduled(pods[0]) == ("Schedulable", possible)
    assert scheduled(pods[3]) == ("Unschedulable", why)
    told = (
        "Warning",
        "PodGroupPending",
        f"PodGroup {TEAM}:gang unschedule,reason: {world.said('gang')[1]}",
    )
    assert told in world.events("Job")

    world.send("DELETE", f"{world.jobs()}/one")
    world.pass_time()

    assert world.phase("gang") == "Running"


def test_what_kept_a_group_from_its_nodes_stays_written_after_it_got_them() -> None:
    world = VolcanoWorld(ODD)
    world.queue(gpus=99)
    world.job("one", workers=1, gpus=2)
    world.job("gang", workers=4, gpus=2)

    world.send("DELETE", f"{world.jobs()}/one")

    status = world.group("gang")["status"]
    assert [one["type"] for one in status["conditions"]] == [
        "Unschedulable",
        "Scheduled",
    ]
    assert {one["status"] for one in status["conditions"]} == {"True"}
    assert status["phase"] == "Running"


def test_a_queue_keeps_groups_without_pods_that_are_too_much_for_it(
    world: VolcanoWorld,
) -> None:
    world.queue("other", gpus=8)
    world.job("first", workers=1, gpus=6, namespace="other")

    world.job("second", workers=1, gpus=4, namespace="other")

    assert world.group("second", "other")["status"] == {"phase": "Pending"}
    assert [pod["metadata"]["name"] for pod in world.pods("other")] == [
        "first-worker-0"
    ]
    told = world.events("PodGroup", "other")
    assert ("Normal", "Unschedulable", QUOTA) in told
    without = "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable"
    assert ("Warning", "Unschedulable", without) in told


def test_all_that_is_lacking_is_named(world: VolcanoWorld) -> None:
    world.queue("other", capability={GPU: "1", "memory": "1Gi"}, deserved=1)
    world.job(
        "much",
        workers=2,
        gpus=1,
        namespace="other",
        pod={
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"limits": {GPU: "1", "memory": "1Gi"}},
                },
            ]
        },
    )
    said = f"queue resource quota insufficient: insufficient memory, insufficient {GPU}"
    assert ("Normal", "Unschedulable", said) in world.events("PodGroup", "other")


def test_nobody_waits_for_more_than_the_cluster_has(world: VolcanoWorld) -> None:
    world.send(
        "PATCH",
        f"/apis/{SCHEDULING}/queues/{TEAM}",
        {"spec": {"capability": {GPU: "99"}}},
    )
    world.job("huge", workers=3, gpus=8)
    assert (world.group("huge")["status"]["phase"], world.pods()) == ("Pending", [])
    assert ("Normal", "Unschedulable", QUOTA) in world.events("PodGroup")


def test_what_may_have_pods_counts_though_it_has_no_nodes_yet() -> None:
    world = VolcanoWorld(FOUR)
    world.queue(gpus=6)
    world.queue("other", gpus=4)
    world.job("holes", workers=4, gpus=1, namespace="other")
    world.job("gang", workers=2, gpus=2)
    assert world.group("gang")["status"]["phase"] == "Inqueue"

    world.job("later", workers=1, gpus=3)

    assert world.group("later")["status"]["phase"] == "Pending"


def test_more_capability_lets_the_next_in(world: VolcanoWorld) -> None:
    world.queue("other", gpus=4)
    world.job("first", workers=1, gpus=4, namespace="other")
    world.job("second", workers=1, gpus=4, namespace="other")
    assert world.phases("other") == {"first-worker-0": "Pending"}

    world.send(
        "PATCH",
        f"/apis/{SCHEDULING}/queues/other",
        {"spec": {"capability": {GPU: "8"}}},
    )

    assert set(world.phases("other")) == {"first-worker-0", "second-worker-0"}


def test_less_capability_stops_nothing_that_runs(world: VolcanoWorld) -> None:
    world.job("train", workers=2, gpus=8)
    world.pass_time()
    less = {"capability": {GPU: "1"}, "deserved": {GPU: "1"}}
    world.send("PATCH", f"/apis/{SCHEDULING}/queues/{TEAM}", {"spec": less})
    world.pass_time()
    assert set(world.phases().values()) == {"Running"}
    assert world.get_queue()["status"]["allocated"][GPU] == "16"


def test_a_group_that_lost_its_room_in_the_queue_gets_no_nodes() -> None:
    world = VolcanoWorld(FOUR)
    world.queue(gpus=8)
    world.queue("other", gpus=4)
    world.job("holes", workers=4, gpus=1, namespace="other")
    world.job("gang", workers=2, gpus=2)
    assert world.group("gang")["status"]["phase"] == "Inqueue"
    less = {"capability": {GPU: "2"}, "deserved": {GPU: "2"}}
    world.send("PATCH", f"/apis/{SCHEDULING}/queues/{TEAM}", {"spec": less})

    world.send("DELETE", f"{world.jobs('other')}/holes")

    said = "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Schedulable, 1 Unschedulable"
    assert world.said("gang")[1] == f"1/2 tasks in gang unschedulable: {said}"


@pytest.mark.parametrize("first", ["low", "high"])
def test_the_higher_priority_of_a_queue_goes_first(
    world: VolcanoWorld, first: str
) -> None:
    for name, value in (("low", 1), ("high", 100)):
        body = {"metadata": {"name": name}, "value": value}
        world.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    world.job("before", workers=2, gpus=8)
    second = "high" if first == "low" else "low"
    world.job(first, workers=2, gpus=8, priorityClassName=first)
    world.job(second, workers=2, gpus=8, priorityClassName=second)

    world.send("DELETE", f"{world.jobs()}/before")

    assert set(world.phases()) == {"high-worker-0", "high-worker-1"}
    assert world.pods()[0]["spec"]["priorityClassName"] == "high"
    assert world.group("high")["spec"]["priorityClassName"] == "high"


def test_the_older_of_two_equals_goes_first(world: VolcanoWorld) -> None:
    world.job("before", workers=2, gpus=8)
    world.job("b-first", workers=1, gpus=8)
    name = world.group("b-first")["metadata"]["name"]
    state = world.cluster.snapshot()
    for obj in state["objects"]:
        if obj["metadata"]["name"] == name:
            obj["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    world.cluster.restore(state)
    world.job("a-second", workers=2, gpus=8)

    world.send("DELETE", f"{world.jobs()}/before")

    assert set(world.phases()) == {"b-first-worker-0"}


def test_pods_beyond_the_least_get_nodes_as_there_are_any(world: VolcanoWorld) -> None:
    world.job("elastic", workers=5, gpus=4, minAvailable=2, task={"minAvailable": 2})
    assert nodes_of(world) == ["", "n-0", "n-0", "n-1", "n-1"]
    world.pass_time()
    assert world.group("elastic")["status"]["phase"] == "Running"
    assert world.phase("elastic") == "Running"


def test_each_task_of_a_group_needs_its_own_least() -> None:
    world = VolcanoWorld((NodeSpec("a", gpus=2), NodeSpec("b", labels={"kind": "cpu"})))
    world.queue(gpus=99)
    body = world.job_body("mixed", workers=2, gpus=1, minAvailable=3)
    other = world.job_body("x", 1, 1)["spec"]["tasks"][0] | {"name": "other"}
    other["template"]["spec"]["nodeSelector"] = {"kind": "tpu"}
    body["spec"]["tasks"].append(other)
    world.send(
        "PATCH",
        f"/apis/{SCHEDULING}/queues/{TEAM}",
        {"spec": {"capability": None, "deserved": None}},
    )
    world.send("POST", world.jobs(), body)
    assert nodes_of(world) == []
    assert world.group("mixed")["status"]["phase"] == "Pending"


def test_a_group_with_a_pod_that_nothing_takes_is_told_why(world: VolcanoWorld) -> None:
    world.job("picky", workers=1, gpus=1, pod={"nodeSelector": {"gpu": "z"}})
    why = "0/2 nodes are unavailable: 2 node(s) didn't match Pod's node affinity/selector."
    assert world.said("picky")[1].endswith(f"Origin reason is picky-worker-0: {why}")


def test_a_group_that_lost_a_pod_for_good_is_unknown(world: VolcanoWorld) -> None:
    world.job("train", workers=2, gpus=4)
    world.pass_time()
    world.send(
        "PATCH",
        f"/api/v1/namespaces/{TEAM}/pods/train-worker-0/status",
        {"status": {"phase": "Failed"}},
    )
    world.pass_time()
    assert world.group("train")["status"]["phase"] == "Unknown"
    said = "pod group is not ready, 1 Failed, 1 Running, 2 minAvailable"
    assert world.said("train")[1] == f"1/2 tasks in gang unschedulable: {said}"


def test_queues_say_what_they_hold_and_the_root_what_all_do(
    world: VolcanoWorld,
) -> None:
    world.queue("other", gpus=8)
    pod = {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            }
        ]
    }
    world.job("cpus", workers=2, gpus=0, pod=pod)
    world.job("gpus", workers=1, gpus=3, namespace="other")
    assert world.get_queue()["status"]["allocated"] == {
        "cpu": "1",
        "memory": "2Gi",
        "pods": "2",
    }
    assert world.get_queue("other")["status"]["allocated"] == {
        "cpu": "0",
        "memory": "0",
        GPU: "3",
        "pods": "1",
    }
    both = {"cpu": "1", "memory": "2Gi", GPU: "3", "pods": "3"}
    assert world.get_queue("root")["status"]["allocated"] == both


@pytest.mark.parametrize(("guest", "lender"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("policies", [[], RESTART], ids=["stays short", "starts anew"])
def test_what_a_queue_deserves_is_taken_back(
    guest: str, lender: str, policies: list[Any]
) -> None:
    world = VolcanoWorld()
    for name in (guest, lender):
        world.queue(name, gpus=16, deserved=8)
    world.job("guest", workers=2, gpus=8, namespace=guest, policies=policies)
    world.pass_time()
    assert set(world.phases(guest).values()) == {"Running"}

    world.job("mine", workers=2, gpus=4, namespace=lender)
    world.pass_time()

    assert set(world.phases(lender).values()) == {"Running"}
    assert world.get_queue(guest)["status"]["allocated"].get(GPU, "0") == (
        "0" if policies else "8"
    )
    assert ("Normal", "Evict", "reclaim") in world.events("PodGroup", guest)
    assert ("Normal", "Evict", "Pod is evicted, because of reclaim") in world.events(
        "Pod", guest
    )
    world.send("DELETE", f"{world.jobs(lender)}/mine")
    world.pass_time()
    world.pass_time()
    assert set(world.phases(guest).values()) == {"Running"}
    assert world.get_job("guest", guest)["status"].get("retryCount", 0) == len(policies)


def test_nothing_is_taken_back_that_a_queue_deserves(world: VolcanoWorld) -> None:
    world.queue("other", gpus=16, deserved=8)
    world.job("first", workers=2, gpus=8)
    world.pass_time()
    world.job("second", workers=2, gpus=8, namespace="other")
    world.pass_time()
    assert set(world.phases().values()) == {"Running"}
    assert nodes_of(world, "other") == ["", ""]


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has(world: VolcanoWorld) -> None:
    world.queue("lender", gpus=16, deserved=8)
    spec = {"deserved": {GPU: "8"}, "reclaimable": False}
    world.send("PATCH", f"/apis/{SCHEDULING}/queues/{TEAM}", {"spec": spec})
    world.job("guest", workers=2, gpus=8, policies=RESTART)
    world.pass_time()
    world.job("mine", workers=2, gpus=4, namespace="lender")
    world.pass_time()
    assert set(world.phases().values()) == {"Running"}
    assert nodes_of(world, "lender") == ["", ""]


def test_nothing_is_taken_where_that_would_not_do(world: VolcanoWorld) -> None:
    world.queue("lender", gpus=16, deserved=16)
    world.queue("third", gpus=8, deserved=8)
    world.job("safe", workers=1, gpus=8, namespace="third")
    world.send(
        "PATCH", f"/apis/{SCHEDULING}/queues/{TEAM}", {"spec": {"deserved": {GPU: "0"}}}
    )
    world.job("guest", workers=1, gpus=8, policies=RESTART)
    world.pass_time()

    world.job("mine", workers=2, gpus=8, namespace="lender")
    world.pass_time()

    assert set(world.phases().values()) == {"Running"}
    assert nodes_of(world, "lender") == ["", ""]


def test_a_node_is_added_for_a_group_that_waits_for_one() -> None:
    pool = NodePool(NodeSpec("pool-", gpus=8), least=0, most=1)
    world = VolcanoWorld(pools=(pool,))
    world.queue()
    world.job("holes", workers=2, gpus=5)
    world.job("large", workers=1, gpus=6)
    assert world.group("large")["status"]["phase"] == "Inqueue"

    world.pass_time(GROW_SECONDS)

    assert nodes_of(world) == ["n-0", "n-1", "pool-000000"]


def test_no_node_is_added_for_a_group_that_has_no_pods_yet() -> None:
    pool = NodePool(NodeSpec("pool-", gpus=8), least=0, most=1)
    world = VolcanoWorld((NodeSpec("n-0"),), (pool,))
    world.queue()
    world.job("waits", workers=1, gpus=8)
    world.pass_time(GROW_SECONDS)
    assert (world.group("waits")["status"]["phase"], world.pods()) == ("Pending", [])


def test_a_queue_that_is_closed_starts_nothing_more() -> None:
    world = VolcanoWorld(FOUR)
    world.queue(gpus=8)
    world.queue("other", gpus=4)
    world.job("holes", workers=4, gpus=1, namespace="other")
    world.job("gang", workers=2, gpus=2)
    world.command("Queue", TEAM, "CloseQueue")

    world.send("DELETE", f"{world.jobs('other')}/holes")

    assert nodes_of(world) == ["", ""]
    world.command("Queue", TEAM, "OpenQueue")
    assert nodes_of(world) == ["n-0", "n-1"]

"""What training runs met on a real cluster with Kueue, they meet in the sandbox, step by step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.recordings.differences import BY_CHANCE, TRAINING_NOT_ALIKE
from tests.recordings.replaying import steps_of
from tests.recordings.training import BATCH, KUEUE, TrainingPlayer, cluster_queue

Hook = Callable[[TrainingPlayer], None]
QUEUE = f"{KUEUE}/clusterqueues/qm-alpha"
BINDING = "/apis/rbac.authorization.k8s.io/v1/namespaces/qm-t-alpha/rolebindings/qm-test-training"
AWAY = "error trying to reach service: dial tcp <visibility-server>: connect: connection refused\n"


@dataclass(frozen=True)
class Scenario:
    """What was there before a recording began, and what the recorder did without writing it down."""

    queues: tuple[dict[str, Any], ...] = ()
    before: Hook = lambda _player: None
    hooks: Mapping[str, Hook] = field(default_factory=dict)


def stop(policy: str) -> Hook:
    return lambda player: player.merge(QUEUE, {"spec": {"stopPolicy": policy}})


def activate(job: str, *, active: bool) -> Hook:
    def write(player: TrainingPlayer) -> None:
        path = f"{KUEUE}/namespaces/qm-t-alpha/workloads"
        [name] = [
            one["metadata"]["name"]
            for one in player.admin("GET", path)["items"]
            if one["metadata"]["ownerReferences"][0]["name"] == job
        ]
        player.merge(f"{path}/{name}", {"spec": {"active": active}})

    return write


def both(*hooks: Hook) -> Hook:
    def run(player: TrainingPlayer) -> None:
        for hook in hooks:
            hook(player)

    return run


def no_visibility(player: TrainingPlayer) -> None:
    player.cluster.has_visibility = False


def two_more_queues(player: TrainingPlayer) -> None:
    player.cluster.has_visibility = True
    player.local_queue("qm-t-alpha", "night", "qm-alpha")
    player.local_queue("qm-t-beta", "default", "qm-alpha")


def visibility_down(player: TrainingPlayer) -> None:
    for text in (AWAY, "service unavailable\n"):
        player.cluster.faults.add(
            {"status": 503, "body": text, "match": {"path_regex": "visibility"}}
        )


def without(*names: str) -> Hook:
    def end(player: TrainingPlayer) -> None:
        for name in names:
            path = f"{BATCH}/namespaces/qm-t-alpha/jobs/{name}?propagationPolicy=Background"
            player.admin("DELETE", path)

    return end


def no_jobs(player: TrainingPlayer) -> None:
    for space in ("qm-t-alpha", "qm-t-beta"):
        player.admin(
            "DELETE", f"{BATCH}/namespaces/{space}/jobs?propagationPolicy=Background"
        )


def gone(path: str) -> Hook:
    return lambda player: player.admin("DELETE", path)


def strict(player: TrainingPlayer) -> None:
    player.merge(QUEUE, {"spec": {"queueingStrategy": "StrictFIFO"}})


def without_jobset(player: TrainingPlayer) -> None:
    """No controller of JobSet ran on the recorded cluster; its own role is in the recording."""
    player.cluster.leave_jobsets_alone()


def racks(player: TrainingPlayer) -> None:
    """Two nodes stand in rack r0 and one in r1; the queue has quota for more than the nodes have."""
    for name, rack in (("a100-0", "r0"), ("a100-1", "r0"), ("a100-2", "r1")):
        labels = {"cloud.example.com/block": "b0", "cloud.example.com/rack": rack}
        player.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})
    player.admin("DELETE", QUEUE)


def uncordoned(player: TrainingPlayer) -> None:
    player.merge("/api/v1/nodes/a100-2", {"spec": {"unschedulable": None}})


TOPOLOGY_JOBS = (
    *(
        "rack-toobig",
        "rack-preferred",
        "host-toobig",
        "block-toobig",
        "preferred-toobig",
        "unconstrained",
    ),
    *("no-annotation", "bad-level", "two-annotations", "slices", "fills"),
)
SCENARIOS: Mapping[str, Scenario] = {
    "30-jobset": Scenario(before=without_jobset, hooks={"role": gone(BINDING)}),
    "30b-jobset-child-jobs": Scenario(before=without_jobset),
    "32-visibility": Scenario(
        (cluster_queue("qm-alpha", "every"),),
        no_visibility,
        {
            "discovery-group": two_more_queues,
            "clusterqueue-held-patch": stop("Hold"),
            "a1-deactivated-clusterqueue": both(
                stop("None"), activate("a1", active=False)
            ),
            "delete-runs": activate("a1", active=True),
            "visibility-kueue-down": visibility_down,
        },
    ),
    "33-queueing-strategies": Scenario(
        hooks={"strict-clusterqueue": both(no_jobs, strict)}
    ),
    "34a-borrow-reclaim": Scenario(
        (
            cluster_queue("qm-alpha", cohortName="gpus"),
            cluster_queue("qm-beta", cohortName="gpus"),
        ),
        lambda player: player.local_queue("qm-t-beta", "default", "qm-beta"),
    ),
    "34b-priority-preemption": Scenario(
        (cluster_queue("qm-alpha", cohortName="gpus"),)
    ),
    "39a-stop-policies": Scenario(
        (cluster_queue("qm-alpha", "every"),),
        lambda player: player.local_queue("qm-t-beta", "default", "qm-alpha"),
        {"runs-again-job": without("waits", "new-in-hold")},
    ),
    "39b-inactive-and-flavors": Scenario(
        hooks={
            "clusterqueue-tainted": gone(QUEUE),
            "clusterqueue-two-flavors": no_jobs,
            "clusterqueue-flavor-missing": no_jobs,
            "clusterqueue-deleted-workload": gone(QUEUE),
            "localqueue-deleted-workload": gone(
                f"{KUEUE}/namespaces/qm-t-alpha/localqueues/default"
            ),
        },
    ),
    "37b-maximum-execution-time": Scenario(),
    "38-topology": Scenario(
        before=both(racks, without_jobset),
        hooks={
            **{f"post-{name}": no_jobs for name in TOPOLOGY_JOBS},
            "rack-fragmented-admitted-job": without("fills"),
            "cordon": no_jobs,
            "post-foreign-pod": both(no_jobs, uncordoned),
            "post-jobset": both(
                no_jobs, gone("/api/v1/namespaces/default/pods/foreign")
            ),
        },
    ),
    "40-logs-and-events": Scenario(
        hooks={"run-pod": lambda player: player.pass_time(0.2)}
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_training_runs_are_answered_as_recorded(name: str) -> None:
    scenario, steps, listed = (
        SCENARIOS[name],
        steps_of(name),
        TRAINING_NOT_ALIKE.get(name, {}),
    )
    player, hooks = TrainingPlayer(steps, *scenario.queues), dict(scenario.hooks)
    scenario.before(player)
    wrong: list[str] = []
    for number, step in enumerate(steps):
        if hook := hooks.pop(step["name"], None):
            hook(player)
        lines = player.play_at_its_time(step)
        title = f"{name}[{number}] {step['name']}"
        if lines and number not in listed:
            wrong.append("\n  ".join([title, *lines[:6]]))
        if not lines and number in listed and listed[number] not in BY_CHANCE:
            wrong.append(f"{title} matches now: take it off the list")
    assert not wrong, "\n".join(wrong)
    assert not hooks, f"hooks that never ran: {sorted(hooks)}"

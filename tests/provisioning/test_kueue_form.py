"""Volcano's objects say the same in the form of Kueue's, and nothing that they do not say."""

from typing import Any

import pytest

from provisioning.desired.kueue_form import (
    ABORTED,
    as_first_seen,
    cluster_queue_of,
    job_of,
    owners,
    workload_of,
)
from provisioning.desired.usage import gpus_used

FLAVOR_OF = {"nvidia.com/gpu": "a100", "nvidia.com/mig-1g.10gb": "slices"}
OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "train",
    "uid": "job-1",
    "controller": True,
}
BORN, LATER = "2026-11-01T10:00:00Z", "2026-11-01T10:05:00Z"
UNSCHEDULABLE = (
    "2/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable"
)


def group(phase: str = "", **changed: Any) -> dict[str, Any]:
    """A PodGroup of two pods with two GPUs each, as Volcano's controller makes it for a Job."""
    resources = {
        "count/pods": "2",
        "cpu": "16",
        "nvidia.com/gpu": "4",
        "requests.nvidia.com/gpu": "4",
    }
    status: dict[str, Any] = {"phase": phase} if phase else {}
    conditions = changed.pop("conditions", [])
    if conditions:
        status["conditions"] = conditions
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "train-job-1",
            "namespace": "qm-nlp",
            "uid": "pg-1",
            "creationTimestamp": BORN,
            "ownerReferences": [OWNER],
        }
        | changed.pop("metadata", {}),
        "spec": {
            "minMember": 2,
            "queue": "qm-nlp",
            "priorityClassName": "scheduled-training",
            "minResources": resources,
        }
        | changed.pop("spec", {}),
        "status": {**status, **changed},
    }


def said(kind: str, message: str = "", at: str = LATER) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "reason": "any",
        "message": message,
        "lastTransitionTime": at,
    }


def conditions(found: dict[str, Any]) -> dict[str, tuple[str, str, str, str]]:
    return {
        one["type"]: (
            one["status"],
            one["reason"],
            one["message"],
            one["lastTransitionTime"],
        )
        for one in found["status"]["conditions"]
    }


def test_what_waits_is_in_its_line_with_its_priority_and_has_no_flavor() -> None:
    found = workload_of(
        group("Pending", conditions=[said("Unschedulable", UNSCHEDULABLE)]), FLAVOR_OF
    )
    assert found["kind"] == "Workload"
    assert found["spec"] == {
        "active": True,
        "queueName": "qm-nlp",
        "priority": 100_000,
        "podSets": [{"name": "pods", "count": 2, "gpus": 2}],
    }
    assert found["status"]["admission"] == {
        "clusterQueue": "qm-nlp",
        "podSetAssignments": [],
    }
    assert conditions(found) == {
        "QuotaReserved": ("False", "PodGroupPending", UNSCHEDULABLE, BORN)
    }


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue"])
def test_what_has_no_nodes_holds_nothing(phase: str) -> None:
    found = conditions(workload_of(group(phase), FLAVOR_OF))
    assert found == {
        "QuotaReserved": ("False", f"PodGroup{phase or 'Pending'}", "", BORN)
    }


def test_what_runs_holds_its_gpus_by_flavor_since_it_was_scheduled() -> None:
    found = workload_of(group("Running", conditions=[said("Scheduled")]), FLAVOR_OF)
    assert conditions(found) == {
        "QuotaReserved": ("True", "PodGroupRunning", "", LATER),
        "Admitted": ("True", "PodGroupRunning", "", LATER),
    }
    assert found["status"]["admission"]["podSetAssignments"] == [
        {
            "name": "pods",
            "flavors": {"nvidia.com/gpu": "a100"},
            "resourceUsage": {"nvidia.com/gpu": "4"},
        }
    ]


def test_what_lost_a_pod_still_holds_and_recovers() -> None:
    found = conditions(
        workload_of(
            group("Unknown", conditions=[said("Unschedulable", UNSCHEDULABLE)]),
            FLAVOR_OF,
        )
    )
    assert found["Admitted"][0] == "True"
    assert found["PodsReady"][:3] == ("False", "WaitForRecovery", UNSCHEDULABLE)


def test_of_a_volcano_job_its_own_phase_says_that_it_is_over() -> None:
    """It may start its pods anew, whatever its PodGroup says."""
    assert conditions(
        workload_of(group("Completed", succeeded=2), FLAVOR_OF)
    ).keys() == {"QuotaReserved"}


@pytest.mark.parametrize(("failed", "reason"), [(0, "Succeeded"), (1, "Failed")])
def test_pods_without_such_a_job_are_over_when_their_group_is(
    failed: int, reason: str
) -> None:
    alone = group("Completed", failed=failed, metadata={"ownerReferences": []})
    assert conditions(workload_of(alone, FLAVOR_OF))["Finished"][:2] == ("True", reason)


def test_pods_that_are_not_equal_are_told_as_even_as_can_be() -> None:
    uneven = group(spec={"minMember": 3, "minResources": {"nvidia.com/gpu": "4"}})
    assert workload_of(uneven, FLAVOR_OF)["spec"]["podSets"] == [
        {"name": "larger", "count": 1, "gpus": 2},
        {"name": "pods", "count": 2, "gpus": 1},
    ]


def test_where_more_pods_run_than_it_needs_all_of_them_hold() -> None:
    elastic = group(
        "Running",
        running=3,
        spec={"minMember": 1, "minResources": {"nvidia.com/gpu": "2"}},
    )
    found = workload_of(elastic, FLAVOR_OF)
    assert found["spec"]["podSets"] == [{"name": "pods", "count": 3, "gpus": 2}]
    [assigned] = found["status"]["admission"]["podSetAssignments"]
    assert assigned["resourceUsage"] == {"nvidia.com/gpu": "6"}


def test_slices_are_told_by_their_profile() -> None:
    sliced = group("Running", spec={"minResources": {"nvidia.com/mig-1g.10gb": "4"}})
    found = workload_of(sliced, FLAVOR_OF)
    assert found["spec"]["podSets"] == [
        {"name": "pods", "count": 2, "gpus": 2, "slices": {"1g.10gb": 2}}
    ]
    assert found["status"]["admission"]["podSetAssignments"][0]["flavors"] == {
        "nvidia.com/mig-1g.10gb": "slices"
    }


def test_a_resource_without_a_flavor_is_nobodys() -> None:
    found = workload_of(group("Running"), {})
    assert found["status"]["admission"]["podSetAssignments"][0]["flavors"] == {}


def test_volcanos_job_has_a_name_of_its_own() -> None:
    plain = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "2"}
    assert [one["kind"] for one in owners({"ownerReferences": [OWNER, plain]})] == [
        "VolcanoJob",
        "Job",
    ]


def test_times_are_those_of_the_first_sight_for_volcano_renews_them() -> None:
    first = workload_of(group("Running", conditions=[said("Scheduled")]), FLAVOR_OF)
    renewed = workload_of(
        group("Running", conditions=[said("Scheduled", at="2026-11-01T11:00:00Z")]), {}
    )
    assert conditions(as_first_seen(renewed, first))["Admitted"][3] == LATER
    assert (
        conditions(as_first_seen(renewed, None))["Admitted"][3]
        == "2026-11-01T11:00:00Z"
    )
    waited = workload_of(group("Pending"), FLAVOR_OF)
    assert conditions(as_first_seen(first, waited))["QuotaReserved"][3] == LATER


def queue(
    state: str | None = "Open", allocated: Any = None, **spec: Any
) -> dict[str, Any]:
    amounts = {"cpu": "48", "memory": "320Gi", "nvidia.com/gpu": "4"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "qm-nlp", "uid": "q-1"},
        "spec": {
            "deserved": amounts,
            "capability": amounts | {"nvidia.com/gpu": "6"},
            **spec,
        },
        "status": ({"state": state} if state else {})
        | ({"allocated": allocated} if allocated else {}),
    }


def test_a_queue_guarantees_what_it_deserves_and_may_borrow_up_to_its_capability() -> (
    None
):
    found = cluster_queue_of(
        queue(allocated={"cpu": "8", "nvidia.com/gpu": "3"}), FLAVOR_OF
    )
    assert (found["kind"], found["metadata"]["name"], found["spec"]["stopPolicy"]) == (
        "ClusterQueue",
        "qm-nlp",
        "None",
    )
    [group_] = found["spec"]["resourceGroups"]
    assert group_["flavors"] == [
        {
            "name": "a100",
            "resources": [
                {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "2"}
            ],
        },
        {
            "name": "slices",
            "resources": [{"name": "nvidia.com/mig-1g.10gb", "nominalQuota": "0"}],
        },
    ]
    assert gpus_used(found) == {"a100": 3, "slices": 0}


@pytest.mark.parametrize(
    ("state", "active"),
    [("Open", "True"), (None, "True"), ("Closed", "False"), ("Closing", "False")],
)
def test_a_queue_lets_jobs_in_while_it_is_open(state: str | None, active: str) -> None:
    [condition] = cluster_queue_of(queue(state), FLAVOR_OF)["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Active", active)


def test_a_queue_that_says_nothing_of_its_use_is_not_one_that_is_idle() -> None:
    assert gpus_used(cluster_queue_of(queue(), FLAVOR_OF)) is None


def test_a_queue_of_nothing_is_held() -> None:
    held = cluster_queue_of(
        queue(capability={"cpu": "1m", "memory": "1", "nvidia.com/gpu": "0"}), FLAVOR_OF
    )
    assert held["spec"]["stopPolicy"] == "Hold"


def job(phase: str, *history: str) -> dict[str, Any]:
    state = {
        "phase": phase,
        "reason": "",
        "message": "said",
        "lastTransitionTime": LATER,
    }
    rows = [{"status": one, "lastTransitionTime": BORN} for one in history]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "uid": "job-1"},
        "spec": {"queue": "qm-nlp"},
        "status": {"state": state, "conditions": rows},
    }


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [
        ("Pending", None),
        ("Running", None),
        ("Restarting", None),
        ("Aborting", None),
        ("Aborted", None),
        ("Completing", None),
        ("Completed", "Complete"),
        ("Failed", "Failed"),
        ("Terminating", None),
        ("Terminated", "Failed"),
    ],
)
def test_a_job_is_over_in_the_phases_in_which_it_stays(
    phase: str, outcome: str | None
) -> None:
    found = job_of(job(phase, "Pending", "Running"))
    said_ = [
        (one["type"], one["message"], one["lastTransitionTime"])
        for one in found["status"]["conditions"]
    ]
    assert said_ == ([(outcome, "said", LATER)] if outcome else [])
    assert (found["kind"], found["status"]["phase"], found["status"]["startTime"]) == (
        "VolcanoJob",
        phase,
        BORN,
    )
    assert "startTime" not in job_of(job("Pending", "Pending"))["status"]


def test_a_whole_group_is_told_as_a_whole_workload() -> None:
    """Nothing of the form is left out: what reads it takes an absent field for what is not known."""
    found = group("Running", conditions=[said("Scheduled")])
    since = {
        "lastTransitionTime": LATER,
        "reason": "PodGroupRunning",
        "message": "",
        "status": "True",
    }
    assert workload_of(found, FLAVOR_OF) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Workload",
        "metadata": {
            **found["metadata"],
            "ownerReferences": [{**OWNER, "kind": "VolcanoJob"}],
        },
        "spec": {
            "active": True,
            "queueName": "qm-nlp",
            "priority": 100_000,
            "podSets": [{"name": "pods", "count": 2, "gpus": 2}],
        },
        "status": {
            "admission": {
                "clusterQueue": "qm-nlp",
                "podSetAssignments": [
                    {
                        "name": "pods",
                        "flavors": {"nvidia.com/gpu": "a100"},
                        "resourceUsage": {"nvidia.com/gpu": "4"},
                    }
                ],
            },
            "conditions": [
                {"type": "QuotaReserved", **since},
                {"type": "Admitted", **since},
            ],
        },
    }


def test_a_whole_job_is_told_as_a_whole() -> None:
    made = job("Failed", "Pending", "Running")
    made["status"]["state"] |= {"reason": "TooManyRetries"}
    made["spec"] |= {
        "priorityClassName": "exploratory",
        "tasks": [{"name": "worker", "replicas": 2}],
    }
    assert job_of(made) == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "VolcanoJob",
        "metadata": made["metadata"],
        "spec": {
            "queue": "qm-nlp",
            "priorityClassName": "exploratory",
            "tasks": [{"name": "worker", "replicas": 2}],
        },
        "status": {
            "phase": "Failed",
            "conditions": [
                {
                    "type": "Failed",
                    "status": "True",
                    "reason": "Failed",
                    "message": "TooManyRetries said",
                    "lastTransitionTime": LATER,
                }
            ],
            "startTime": BORN,
        },
    }


def test_a_whole_queue_is_told_as_a_whole() -> None:
    found = queue("Closed", allocated={"nvidia.com/gpu": "3"})
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "2"}
    used = [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": "3"}]}]
    active = {
        "type": "Active",
        "status": "False",
        "reason": "Stopped",
        "message": "Volcano says that it is Closed.",
    }
    assert cluster_queue_of(found, {"nvidia.com/gpu": "a100"}) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "ClusterQueue",
        "metadata": found["metadata"],
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": "a100", "resources": [quota]}],
                }
            ],
            "stopPolicy": "None",
        },
        "status": {
            "conditions": [active],
            "flavorsUsage": used,
            "flavorsReservation": used,
        },
    }


def test_what_is_not_there_is_not_known_and_nothing_breaks() -> None:
    bare = {"metadata": {"name": "x", "namespace": "qm-nlp", "uid": "1"}}
    found = workload_of(bare, FLAVOR_OF)
    assert (found["apiVersion"], found["metadata"]) == ("", bare["metadata"])
    assert found["spec"] == {
        "active": True,
        "queueName": "",
        "priority": 0,
        "podSets": [{"name": "pods", "count": 1, "gpus": 0}],
    }
    assert found["status"]["admission"] == {"clusterQueue": "", "podSetAssignments": []}
    [waits] = found["status"]["conditions"]
    assert (waits["reason"], waits["message"], waits["lastTransitionTime"]) == (
        "PodGroupPending",
        "",
        None,
    )
    assert job_of(bare)["spec"] == {"queue": "", "priorityClassName": "", "tasks": []}
    assert job_of(bare)["status"] == {"phase": "", "conditions": []}
    empty = cluster_queue_of(bare, FLAVOR_OF)
    assert empty["apiVersion"] == job_of(bare)["apiVersion"] == ""
    [group_] = empty["spec"]["resourceGroups"]
    assert group_["flavors"][0]["resources"] == [
        {"name": "nvidia.com/gpu", "nominalQuota": "0"}
    ]
    assert owners({}) == []


def test_without_a_time_of_its_own_what_holds_does_so_since_it_is_there() -> None:
    assert conditions(workload_of(group("Running"), FLAVOR_OF))["Admitted"][3] == BORN


def test_a_condition_that_is_false_says_nothing() -> None:
    was = {**said("Unschedulable", UNSCHEDULABLE), "status": "False"}
    assert (
        conditions(workload_of(group("Pending", conditions=[was]), FLAVOR_OF))[
            "QuotaReserved"
        ][2]
        == ""
    )


def test_of_pods_that_are_over_it_is_told_since_when() -> None:
    alone = group(
        "Completed", conditions=[said("Scheduled")], metadata={"ownerReferences": []}
    )
    assert conditions(workload_of(alone, FLAVOR_OF))["Finished"][3] == LATER
    never = group("Completed", metadata={"ownerReferences": []})
    assert conditions(workload_of(never, FLAVOR_OF))["Finished"][3] == BORN


def test_two_resources_are_spread_over_the_pods_each_by_itself() -> None:
    both = group(
        spec={"minResources": {"nvidia.com/gpu": "3", "nvidia.com/mig-1g.10gb": "2"}}
    )
    assert workload_of(both, FLAVOR_OF)["spec"]["podSets"] == [
        {"name": "larger", "count": 1, "gpus": 3, "slices": {"1g.10gb": 1}},
        {"name": "pods", "count": 1, "gpus": 2, "slices": {"1g.10gb": 1}},
    ]


def test_a_queue_that_deserves_more_than_it_may_have_borrows_nothing() -> None:
    found = cluster_queue_of(
        queue(capability={"nvidia.com/gpu": "2"}), {"nvidia.com/gpu": "a100"}
    )
    [one] = found["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert (one["nominalQuota"], one["borrowingLimit"]) == ("4", "0")


def test_what_somebody_aborted_is_known_by_its_phase() -> None:
    assert ABORTED == ("Aborting", "Aborted")

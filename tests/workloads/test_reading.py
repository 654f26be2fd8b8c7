"""Facts read from what Kubernetes answers: both versions of Kueue, both APIs of events, and fields that are absent."""

from datetime import UTC, datetime
from typing import Any

import pytest

from workloads.observed import JobKey, Quota, QuotaHolder
from workloads.reading.pods import event_of, nodes_of, pod_of
from workloads.reading.queues import (
    queue_of,
    quota_holders_of,
    team_queue_of,
)
from workloads.reading.values import gpus_of_pod, is_gpu, moment
from workloads.reading.work import job_of, read_once, workload_of

AT = "2026-11-22T15:17:09Z"
WHEN = datetime(2026, 11, 22, 15, 17, 9, tzinfo=UTC)


def container(gpus: int, **more: object) -> dict[str, Any]:
    return {
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}},
        **more,
    }


def test_a_workload_of_each_version() -> None:
    found = workload_of(
        {
            "metadata": {
                "name": "job-bert-1",
                "namespace": "team-nlp",
                "creationTimestamp": AT,
                "ownerReferences": [
                    {"kind": "Job", "name": "bert", "uid": "u", "controller": True}
                ],
            },
            "spec": {
                "active": False,
                "queueName": "default",
                "priority": 7,
                "podSets": [
                    {
                        "name": "main",
                        "count": 2,
                        "template": {"spec": {"containers": [container(4)]}},
                    }
                ],
            },
            "status": {
                "admission": {
                    "clusterQueue": "team-nlp",
                    "podSetAssignments": [
                        {"flavors": {"cpu": "a100", "nvidia.com/gpu": "a100"}}
                    ],
                },
                "conditions": [
                    {"type": "QuotaReserved", "status": "True", "reason": "x"}
                ],
                "admissionChecks": [
                    {"name": "budget", "state": "Retry", "lastTransitionTime": AT}
                ],
                "requeueState": {"count": 2, "requeueAt": AT},
            },
        }
    )
    assert (str(found.key), found.key.uid, found.gpus, found.priority) == (
        "Job bert",
        "u",
        8,
        7,
    )
    assert (found.is_active, found.cluster_queue, found.flavors) == (
        False,
        "team-nlp",
        ("a100",),
    )
    assert (found.requeues, found.requeue_at, found.checks[0].since) == (2, WHEN, WHEN)
    # A condition without a time holds since the Workload is there.
    assert found.conditions["QuotaReserved"].since == WHEN


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"metadata": None, "spec": [], "status": "x"},
        {"status": {"conditions": [1]}},
    ],
)
def test_what_is_absent_is_not_known(found: dict[str, Any]) -> None:
    assert workload_of(found).conditions == {}
    assert workload_of(found).is_active
    assert job_of(found).is_suspended is None
    assert queue_of(found).quotas == ()
    assert team_queue_of(found).stop_policy == "None"
    assert pod_of(found).phase == "Pending"
    assert event_of(found).at is None
    assert nodes_of([found], [found], {}) == ()


@pytest.mark.parametrize(
    ("spec", "suspended"),
    [({"suspend": True}, True), ({"runPolicy": {"suspend": False}}, False), ({}, None)],
)
def test_where_each_kind_says_that_it_is_suspended(
    spec: dict[str, Any], suspended: bool | None
) -> None:
    labels = {
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/priority-class": "low",
    }
    found = job_of(
        {"kind": "MPIJob", "metadata": {"name": "x", "labels": labels}, "spec": spec}
    )
    assert (found.is_suspended, found.queue, found.priority) == (
        suspended,
        "default",
        "low",
    )
    assert str(found.key) == "MPIJob x"


def test_how_each_kind_says_that_it_is_over() -> None:
    def over(kind: str, status: str = "True") -> bool:
        return (
            job_of(
                {"status": {"conditions": [{"type": kind, "status": status}]}}
            ).outcome
            is not None
        )

    assert all(over(kind) for kind in ("Complete", "Completed", "Succeeded", "Failed"))
    assert not over("Failed", "False")
    assert not over("Suspended")


def cluster_queue(**spec: object) -> dict[str, Any]:
    resources = [
        {"name": "cpu", "nominalQuota": "96"},
        {"name": "nvidia.com/gpu", "nominalQuota": "8"},
    ]
    used = [{"name": "nvidia.com/gpu", "total": "10", "borrowed": "2"}]
    return {
        "metadata": {"name": "team-nlp"},
        "spec": {
            "resourceGroups": [{"flavors": [{"name": "a100", "resources": resources}]}],
            **spec,
        },
        "status": {
            "pendingWorkloads": 3,
            "flavorsReservation": [{"name": "a100", "resources": used}],
            "conditions": [
                {
                    "type": "Active",
                    "status": "False",
                    "reason": "Stopped",
                    "lastTransitionTime": AT,
                }
            ],
        },
    }


@pytest.mark.parametrize("name", ["cohortName", "cohort"])
def test_a_queue_of_each_version(name: str) -> None:
    found = queue_of(
        cluster_queue(
            **{name: "gpus"}, queueingStrategy="StrictFIFO", stopPolicy="Hold"
        )
    )
    assert (found.cohort, found.is_strict, found.stop_policy, found.pending) == (
        "gpus",
        True,
        "Hold",
        3,
    )
    assert found.quotas == (Quota("a100", "nvidia.com/gpu", 8, None, 10, 2),)
    assert found.groups == (frozenset({"a100"}),)
    assert found.active is not None
    assert found.active.since == WHEN


def test_a_queue_without_cohort_borrows_nothing() -> None:
    assert queue_of(cluster_queue()).quotas[0].borrowing == 0


def test_what_holds_gpus_of_a_queue() -> None:
    usage = [
        {
            "flavors": {"nvidia.com/gpu": "a100"},
            "resourceUsage": {"nvidia.com/gpu": "4"},
        }
    ]
    owners = [{"kind": "JobSet", "name": "bert", "uid": "u", "controller": True}]
    found = {
        "metadata": {
            "name": "w",
            "namespace": "team-nlp",
            "uid": "x",
            "ownerReferences": owners,
        },
        "status": {
            "admission": {"podSetAssignments": usage},
            "conditions": [
                {"type": "QuotaReserved", "status": "True", "lastTransitionTime": AT}
            ],
        },
    }
    assert quota_holders_of([found, {"metadata": {}}]) == (
        QuotaHolder(JobKey("team-nlp", "bert", "JobSet", "u"), "a100", 4),
    )


def test_events_of_both_apis() -> None:
    old = {
        "involvedObject": {"kind": "Job", "name": "x"},
        "reason": "r",
        "message": "m",
        "lastTimestamp": AT,
    }
    new = {
        "regarding": {"kind": "Job", "name": "x"},
        "reason": "r",
        "note": "m",
        "eventTime": AT,
    }
    assert event_of(old) == event_of(new)
    assert event_of(old).at == WHEN
    assert event_of({**new, "type": "Warning", "lastTimestamp": None}).is_warning


def test_a_pod_with_its_events_and_containers() -> None:
    states = [
        {
            "name": "main",
            "image": "x:1",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
            "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        }
    ]
    said = [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "m",
        }
    ]
    mine = event_of({"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "r"})
    other = event_of({"involvedObject": {"kind": "Pod", "name": "q"}, "reason": "r"})
    found = pod_of(
        {
            "metadata": {"name": "p", "deletionTimestamp": AT},
            "spec": {"containers": [container(4)], "schedulingGates": [{"name": "g"}]},
            "status": {"containerStatuses": states, "conditions": said},
        },
        [mine, other],
    )
    assert (found.events, found.gates, found.gpus, found.is_stopping) == (
        (mine,),
        ("g",),
        4,
        True,
    )
    assert (found.ended_as, found.waiting[0].reason) == (
        "OOMKilled",
        "CrashLoopBackOff",
    )
    assert found.unscheduled is not None


def test_nodes_with_what_pods_on_them_use() -> None:
    node = {
        "metadata": {"name": "n", "labels": {"accelerator": "a100"}},
        "spec": {"unschedulable": True},
        "status": {
            "allocatable": {"cpu": "96", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    running = {
        "spec": {"nodeName": "n", "containers": [container(6)]},
        "status": {"phase": "Running"},
    }
    over = {**running, "status": {"phase": "Succeeded"}}
    cordoned, open_ = nodes_of(
        [node, {**node, "spec": {}}], [running, over], {"a100": {"accelerator": "a100"}}
    )
    assert (cordoned.flavor, cordoned.gpus, cordoned.used, cordoned.free) == (
        "a100",
        8,
        6,
        0,
    )
    assert open_.free == 2
    assert nodes_of([node], [], {"h100": {"accelerator": "h100"}})[0].flavor == ""


def test_gpus_of_a_pod_are_those_of_its_containers_or_of_its_greediest_init_container() -> (
    None
):
    assert (
        gpus_of_pod(
            {
                "containers": [container(2), container(1)],
                "initContainers": [container(2)],
            }
        )
        == 3
    )
    assert (
        gpus_of_pod({"containers": [container(1)], "initContainers": [container(4)]})
        == 4
    )
    assert (
        gpus_of_pod({"containers": [{"resources": {"limits": {"amd.com/gpu": "2"}}}]})
        == 2
    )


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("rdma/hca", False),
        ("cpu", False),
        ("gpu", False),
    ],
)
def test_what_counts_as_a_gpu(resource: str, expected: bool) -> None:
    assert is_gpu(resource) is expected


@pytest.mark.parametrize(
    "value", ["2026-11-22T15:17:09.000000Z", "2026-11-22T16:17:09+01:00", AT]
)
def test_moments_are_in_utc(value: str) -> None:
    assert moment(value) == WHEN


@pytest.mark.parametrize("value", [None, "", "soon", 5, "0001-01-01T00:00:00+14:00"])
def test_what_is_no_moment_is_none(value: object) -> None:
    assert moment(value) is None


def test_what_is_read_once_is_what_is_read_each_time() -> None:
    read, found = (
        read_once(),
        {"metadata": {"name": "one", "namespace": "team-nlp"}, "spec": {"priority": 3}},
    )
    assert read(found) is read(found)
    assert read(found) == workload_of(found)
    other = {**found, "spec": {"priority": 4}}
    assert read(other).priority == 4

"""What is copied of a cluster's objects: all that explains them, and nothing of what pods are given."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.workloads.known import objects
from tests.workloads.test_explaining_recordings import FILES
from workloads.grouping import pieces_of
from workloads.reading.pods import event_of, pod_of
from workloads.reading.queues import queue_of, team_queue_of
from workloads.reading.work import job_of, workload_of
from workloads.watching.kept import KINDS, copy_of, is_kept

READERS = {
    "Workload": workload_of,
    "Job": job_of,
    "Pod": pod_of,
    "ClusterQueue": queue_of,
    "LocalQueue": team_queue_of,
    "Event": event_of,
}
POD: Mapping[str, Any] = {
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "other",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"},
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "command": ["hunter2"],
                "args": ["hunter2"],
                "env": [{"name": "PASSWORD", "value": "hunter2"}],
                "resources": {"limits": {"nvidia.com/gpu": "2"}},
            }
        ]
    },
    "status": {"phase": "Running"},
}


@pytest.mark.slow
def test_whatever_was_recorded_is_read_from_its_copy_as_from_itself() -> None:
    found = [
        one
        for path in FILES
        for step in json.loads(path.read_text())
        for kind in READERS
        for one in objects(step["response"].get("body"), kind)
    ]
    assert {one["kind"] for one in found} >= {
        "Workload",
        "Job",
        "Pod",
        "ClusterQueue",
        "LocalQueue",
    }
    for one in found:
        read = READERS[one["kind"]]
        assert read(copy_of(one)) == read(one), one["metadata"]


def test_an_event_is_read_from_its_copy_as_from_itself() -> None:
    for about, message in (("involvedObject", "message"), ("regarding", "note")):
        event = {
            "kind": "Event",
            "metadata": {"name": "e", "creationTimestamp": "2026-11-20T08:00:00Z"},
            about: {"kind": "Pod", "name": "a", "fieldPath": "spec"},
            "reason": "FailedScheduling",
            message: "0/3 nodes are available",
            "type": "Warning",
            "series": {"count": 2, "lastObservedTime": "2026-11-20T09:00:00Z"},
        }
        assert event_of(copy_of(event)) == event_of(event)
        assert event_of(event).message == "0/3 nodes are available"


def test_no_environment_argument_or_annotation_of_others_is_kept() -> None:
    job = {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team"},
        "spec": {"template": {"metadata": POD["metadata"], "spec": POD["spec"]}},
    }
    sets = [{"name": "main", "count": 1, "template": {"spec": POD["spec"]}}]
    workload = {
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podSets": sets},
    }
    for one in (POD, job, workload):
        assert "hunter2" not in json.dumps(copy_of(one))
        [piece] = pieces_of(
            *(
                [copy_of(one)] if one["kind"] == kind else []
                for kind in ("Workload", "Job", "Pod")
            )
        )
        assert piece.gpus == 2


def test_of_other_namespaces_only_pods_with_gpus_are_kept_and_of_the_cluster_what_is_shared() -> (
    None
):
    assert is_kept(POD, frozenset())
    plain = {**POD, "spec": {"containers": [{"name": "c"}]}}
    assert not is_kept(plain, frozenset({"team"}))
    assert is_kept(plain, frozenset({"other"}))
    for kind in KINDS:
        shared = {"kind": kind, "metadata": {"name": "x", "namespace": "other"}}
        assert is_kept(shared, frozenset()) == (kind in {"Node", "ClusterQueue"})


def owned(kind: str, name: str, uid: str, *owner: str, **more: Any) -> dict[str, Any]:
    """An object, and its controller: kind, name, uid."""
    meta: dict[str, Any] = {"name": name, "namespace": "team", "uid": uid}
    if owner:
        of, known, by = owner
        meta["ownerReferences"] = [
            {"kind": of, "name": known, "uid": by, "controller": True}
        ]
    return {"kind": kind, "metadata": meta, **more}


def test_what_belongs_together_is_one_piece() -> None:
    spec = POD["spec"]
    workloads = [owned("Workload", "jobset-a-1", "w1", "JobSet", "a", "s1")]
    jobs = [
        owned("Job", "a-workers-0", "j1", "JobSet", "a", "s1"),
        owned(
            "Job", "alone", "j2", spec={"parallelism": 3, "template": {"spec": spec}}
        ),
    ]
    pods = [
        owned("Pod", "a-workers-0-0", "p1", "Job", "a-workers-0", "j1", spec=spec),
        owned("Pod", "alone-x", "p2", "Job", "alone", "j2", spec=spec),
        owned("Pod", "jupyter-ada", "p3", spec=spec),
        owned("Pod", "server-1", "p4", "ReplicaSet", "server", "r1", spec=spec),
        owned("Pod", "server-2", "p5", "ReplicaSet", "server", "r1", spec=spec),
        owned(
            "Pod",
            "web",
            "p6",
            "ReplicaSet",
            "web",
            "r2",
            spec={"containers": [{"name": "c"}]},
        ),
    ]
    found = {
        str(one.key): (one.gpus, [pod["metadata"]["name"] for pod in one.pods])
        for one in pieces_of(workloads, jobs, pods)
    }
    assert found == {
        "JobSet a": (0, ["a-workers-0-0"]),
        "Job alone": (6, ["alone-x"]),
        "Pod jupyter-ada": (2, ["jupyter-ada"]),
        "ReplicaSet server": (4, ["server-1", "server-2"]),
    }


def test_of_two_workloads_of_one_job_the_newer_one_counts() -> None:
    old, new = (
        owned("Workload", name, name, "Job", "a", "j1") for name in ("old", "new")
    )
    old["metadata"]["creationTimestamp"] = "2026-11-20T08:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-11-20T09:00:00Z"
    for pair in ([old, new], [new, old]):
        [piece] = pieces_of(pair, [], [])
        assert piece.workload == new

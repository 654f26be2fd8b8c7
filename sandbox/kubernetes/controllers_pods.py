"""Pods as the controllers of Jobs see them."""

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.store import Obj, Store

POD = builtin("v1", "Pod")
TRACKING = "batch.kubernetes.io/job-tracking"
ENDED = frozenset({"Succeeded", "Failed"})


def owner_of(pod: Obj) -> str:
    """The name of the Job that a pod belongs to; empty for any other pod."""
    owners = pod["metadata"].get("ownerReferences") or ()
    found = (
        one["name"] for one in owners if one.get("controller") and is_batch_job(one)
    )
    return str(next(found, ""))


def is_batch_job(reference: Obj) -> bool:
    """Whether an owner is a Job of Kubernetes, and not Volcano's."""
    return reference.get("kind") == "Job" and str(
        reference.get("apiVersion")
    ).startswith("batch/")


def pods_of(store: Store, job: Obj) -> list[Obj]:
    """The pods of a Job that are not being deleted."""
    metadata = job["metadata"]
    return [
        pod
        for pod in store.objects(POD, metadata["namespace"])
        if "deletionTimestamp" not in pod["metadata"]
        and any(
            one["uid"] == metadata["uid"]
            for one in pod["metadata"].get("ownerReferences") or ()
        )
    ]


def phase_of(pod: Obj) -> str:
    """Pending, Running, Succeeded or Failed."""
    return str((pod.get("status") or {}).get("phase") or "")


def is_over(pod: Obj) -> bool:
    """Whether a pod has ended."""
    return phase_of(pod) in ENDED


def is_ready(pod: Obj) -> bool:
    """Whether a pod is ready."""
    conditions = items(part(dict(pod), "status"), "conditions")
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

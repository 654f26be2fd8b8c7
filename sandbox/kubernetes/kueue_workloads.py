"""What Kueue does to a Workload for whatever it queues: it makes it, says whether its pods are ready, and ends it."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from sandbox.kubernetes import kueue_pods
from sandbox.kubernetes.admitting import GATED_BY
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import found, holds, status_of, told
from sandbox.kubernetes.evicting import MANAGER, WORKLOAD
from sandbox.kubernetes.job_webhook import MOST_SECONDS, queue_of
from sandbox.kubernetes.kinds import KUEUE_GROUP, Kind, builtin
from sandbox.kubernetes.statuses import write_new, write_object, write_status
from sandbox.kubernetes.store import Obj, Store

PODS_READY = "kueue-job-controller-PodsReady"
PREFIX = KUEUE_GROUP
IN_USE, JOB_UID = f"{PREFIX}/resource-in-use", f"{PREFIX}/job-uid"
CLASS_LABEL = f"{PREFIX}/priority-class"
CLASSES = builtin(f"{PREFIX}/v1beta2", "WorkloadPriorityClass")
POD_CLASSES = builtin("scheduling.k8s.io/v1", "PriorityClass")
FLAVORS = builtin(f"{PREFIX}/v1beta2", "ResourceFlavor")
LIMITS = builtin("v1", "LimitRange")
Object = dict[str, Any]


def workload_of(store: Store, owner: Obj) -> Obj | None:
    """The Workload that stands in line for an object; None where there is none."""
    metadata = owner["metadata"]
    for one in store.objects(WORKLOAD, metadata["namespace"]):
        if any(
            each["uid"] == metadata["uid"]
            for each in one["metadata"].get("ownerReferences") or ()
        ):
            return one
    return None


def workload_name(kind: Kind, job: str, uid: str) -> str:
    """The name of a job's Workload: readable, and another one for another job of the same name."""
    mark = hashlib.sha1(
        f"{kind.kind}\n{kind.group}\n{job}\n{uid}".encode(), usedforsecurity=False
    )
    return f"{kind.singular}-{job[:50]}-{mark.hexdigest()[:5]}"


def rank_of(store: Store, owner: Obj, pods: Iterable[kueue_pods.Pods]) -> Object | None:
    """Priority and where it comes from; None for a class that does not exist."""
    if name := (owner["metadata"].get("labels") or {}).get(CLASS_LABEL):
        found_ = store.get(CLASSES, "", name)
        ref = {"group": PREFIX, "kind": "WorkloadPriorityClass", "name": name}
    elif name := next(filter(None, map(_pod_class, pods)), ""):
        found_ = store.get(POD_CLASSES, "", name)
        ref = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": name}
    else:
        return {"priority": 0}
    return (
        None
        if found_ is None
        else {"priority": found_["value"], "priorityClassRef": ref}
    )


def make_workload(
    store: Store,
    kind: Kind,
    owner: Obj,
    pods: Iterable[kueue_pods.Pods],
    rank: Mapping[str, Any],
) -> str:
    """Store a Workload for something that is queued, and return its name."""
    metadata, labels = owner["metadata"], owner["metadata"].get("labels") or {}
    name = workload_name(kind, metadata["name"], metadata["uid"])
    above = {
        "apiVersion": kind.api_version,
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    made: Object = {
        "finalizers": [IN_USE],
        "generation": 1,
        "labels": {JOB_UID: metadata["uid"]},
        "name": name,
        "namespace": metadata["namespace"],
        "ownerReferences": [above],
    }
    if gates := (metadata.get("annotations") or {}).get(GATED_BY):
        made["annotations"] = {GATED_BY: gates}
    ranges = [dict(one) for one in store.objects(LIMITS, metadata["namespace"])]
    spec = {
        "active": True,
        "podSets": [kueue_pods.pod_set(one, ranges) for one in pods],
        **rank,
        "queueName": queue_of(owner),
    }
    # What is too large for the field is no limit at all.
    if 0 < int(labels.get(MOST_SECONDS) or 0) < 2**31:
        spec["maximumExecutionTimeSeconds"] = int(labels[MOST_SECONDS])
    write_new(store, WORKLOAD, {"metadata": made, "spec": spec}, MANAGER)
    return name


def started(
    store: Store, pods: Iterable[kueue_pods.Pods], workload: Obj
) -> list[Object]:
    """The templates of pods as they are started: sent to the nodes of the flavors that their Workload got."""
    templates = []
    for each, given in zip(
        pods, workload["status"]["admission"]["podSetAssignments"], strict=True
    ):
        names = dict.fromkeys(given["flavors"].values())
        flavors = [
            part(dict(store.get(FLAVORS, "", name) or {}), "spec") for name in names
        ]
        is_placed = "topologyAssignment" in given
        templates.append(
            kueue_pods.injected(
                each.name, each.template, workload, flavors, is_placed=is_placed
            )
        )
    return templates


def say_ready(
    store: Store,
    workload: Obj,
    *,
    fine: bool,
    failed: bool,
    reclaimable: list[Object] | None = None,
) -> None:
    """Write into a Workload whether its pods are ready, and how many of them are not needed any more."""
    status = status_of(workload)
    said = _readiness(workload, fine, failed)
    if said is not None and said[1] != found(workload, "PodsReady").get("reason"):
        told(status, workload, "PodsReady", *said)
    if reclaimable:
        status["reclaimablePods"] = reclaimable
    write_status(store, WORKLOAD, workload, status, PODS_READY)


def finish(store: Store, owner: Obj, reason: str, message: str) -> str:
    """End the Workload of an object that has ended, and return the words for it; it is there."""
    workload = workload_of(store, owner) or {}
    status = status_of(workload)
    told(status, workload, "Finished", True, reason, message)
    write_status(store, WORKLOAD, workload, status, MANAGER)
    workload = workload_of(store, owner) or workload
    metadata = {
        key: value for key, value in workload["metadata"].items() if key != "finalizers"
    }
    write_object(store, WORKLOAD, workload, {**workload, "metadata": metadata}, MANAGER)
    return f"Workload '{metadata['namespace']}/{metadata['name']}' is declared finished"


def _pod_class(pods: kueue_pods.Pods) -> str:
    return str(part(pods.template, "spec").get("priorityClassName") or "")


def _readiness(workload: Obj, fine: bool, failed: bool) -> tuple[bool, str, str] | None:
    """What the PodsReady condition says now; None is what it said before."""
    before, admitted = found(workload, "PodsReady"), holds(workload, "Admitted")
    if admitted and fine:
        return True, "Started", "All pods reached readiness and the workload is running"
    if admitted and before.get("status") == "True":
        return (
            (
                False,
                "WaitForRecovery",
                "At least one pod has failed, waiting for recovery",
            )
            if failed
            else None
        )
    if admitted and before.get("reason") == "WaitForRecovery":
        return None
    return False, "WaitForStart", "Not all pods are ready or succeeded"

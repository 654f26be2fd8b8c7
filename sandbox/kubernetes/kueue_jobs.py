"""Kueue's job integration: each queued Job has a Workload, starts when that is admitted and stops when it is not."""

import hashlib
from typing import Any

from sandbox.kubernetes import kueue_pods
from sandbox.kubernetes.admitting import GATED_BY
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import found, holds, status_of, told
from sandbox.kubernetes.controllers_pods import is_ready, owner_of, phase_of, pods_of
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.evicting import MANAGER, WORKLOAD
from sandbox.kubernetes.job_webhook import MOST_SECONDS, queue_of
from sandbox.kubernetes.jobs import JOB, Release, has
from sandbox.kubernetes.kinds import KUEUE_GROUP, builtin
from sandbox.kubernetes.statuses import write_new, write_object, write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store

NAME, PODS_READY = "batch/job-kueue-controller", "kueue-job-controller-PodsReady"
PREFIX = KUEUE_GROUP
IN_USE, JOB_UID = f"{PREFIX}/resource-in-use", f"{PREFIX}/job-uid"
CLASS_LABEL = f"{PREFIX}/priority-class"
CLASSES = builtin(f"{PREFIX}/v1beta2", "WorkloadPriorityClass")
POD_CLASSES = builtin("scheduling.k8s.io/v1", "PriorityClass")
FLAVORS = builtin(f"{PREFIX}/v1beta2", "ResourceFlavor")
LIMITS = builtin("v1", "LimitRange")
Object = dict[str, Any]


class QueuedJobs:
    """Keeps Jobs and their Workloads in step; `run` works through those that changed."""

    def __init__(self, store: Store, release: Release) -> None:
        self._store = store
        self._release = release
        self._due: dict[Key, None] = {}

    def react(self, change: Change) -> None:
        """Remember the Job of what changed, and let go of Workloads that are to go."""
        namespace, obj = change.key[0], change.after.obj
        match change.resource[1]:
            case "jobs":
                self._due[change.key] = None
            case "pods" if owner := owner_of(obj):
                self._due[namespace, owner] = None
            case "workloads":
                owners = obj["metadata"].get("ownerReferences") or ()
                self._due |= {(namespace, str(one["name"])): None for one in owners if one["kind"] == "Job"}
                if not change.removed:
                    self._let_go(obj, orphan=not owners)
            case "workloadpriorityclasses":
                self._due |= {_key(job): None for job in self._store.objects(JOB)}

    def _let_go(self, workload: Obj, *, orphan: bool) -> None:
        """Nobody holds a Workload back that is to go, or whose Job went without it."""
        metadata = workload["metadata"]
        if orphan and JOB_UID in (metadata.get("labels") or {}) and "deletionTimestamp" not in metadata:
            workload = {
                **workload,
                "metadata": {**metadata, "deletionTimestamp": metadata["creationTimestamp"]},
            }
        if "deletionTimestamp" in workload["metadata"] and IN_USE in (metadata.get("finalizers") or ()):
            self._release(workload)

    def run(self) -> bool:
        """Work through what changed; True when there was anything."""
        due, self._due = self._due, {}
        for key in due:
            job = self._store.get(JOB, *key)
            if job is not None and "deletionTimestamp" not in job["metadata"]:
                self._reconcile(job)
        return bool(due)

    def _reconcile(self, job: Obj) -> None:
        workload = self._workload_of(job)
        if workload is None:
            if queue_of(job) and not _end_of(job):
                self._enqueue(job)
            return
        if ended := _end_of(job):
            self._finish(job, workload, *ended)
            return
        workload = self._in_line(job, workload)
        self._say_ready(job, workload)
        suspended = bool(job["spec"].get("suspend"))
        if suspended and holds(workload, "Admitted"):
            self._start(job, workload)
        elif not suspended and not holds(workload, "Admitted"):
            self._stop(job, workload)

    def _workload_of(self, job: Obj) -> Obj | None:
        metadata = job["metadata"]
        for one in self._store.objects(WORKLOAD, metadata["namespace"]):
            if any(owner["uid"] == metadata["uid"] for owner in one["metadata"].get("ownerReferences") or ()):
                return one
        return None

    def _enqueue(self, job: Obj) -> None:
        """Make the Workload; a Job whose priority class is missing waits for it without a word."""
        metadata, labels = job["metadata"], job["metadata"].get("labels") or {}
        ranked = self._priority(job)
        if ranked is None:
            return
        name = workload_name(metadata["name"], metadata["uid"])
        owner = {
            "apiVersion": "batch/v1",
            "blockOwnerDeletion": True,
            "controller": True,
            "kind": "Job",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        made: Object = {
            "finalizers": [IN_USE],
            "generation": 1,
            "labels": {JOB_UID: metadata["uid"]},
            "name": name,
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        }
        if gates := (metadata.get("annotations") or {}).get(GATED_BY):
            made["annotations"] = {GATED_BY: gates}
        ranges = [dict(one) for one in self._store.objects(LIMITS, metadata["namespace"])]
        spec = {
            "active": True,
            "podSets": [kueue_pods.pod_set(job, ranges)],
            **ranked,
            "queueName": queue_of(job),
        }
        # What is too large for the field is no limit at all.
        if 0 < int(labels.get(MOST_SECONDS) or 0) < 2**31:
            spec["maximumExecutionTimeSeconds"] = int(labels[MOST_SECONDS])
        write_new(self._store, WORKLOAD, {"metadata": made, "spec": spec}, MANAGER)
        said = f"Created Workload: {metadata['namespace']}/{name}"
        tell(self._store, job, "CreatedWorkload", said, by=NAME, manager=MANAGER)

    def _priority(self, job: Obj) -> Object | None:
        """Priority and where it comes from; None for a class that does not exist."""
        if name := (job["metadata"].get("labels") or {}).get(CLASS_LABEL):
            found_ = self._store.get(CLASSES, "", name)
            ref = {"group": PREFIX, "kind": "WorkloadPriorityClass", "name": name}
        elif name := job["spec"]["template"]["spec"].get("priorityClassName"):
            found_ = self._store.get(POD_CLASSES, "", name)
            ref = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": name}
        else:
            return {"priority": 0}
        return None if found_ is None else {"priority": found_["value"], "priorityClassRef": ref}

    def _in_line(self, job: Obj, workload: Obj) -> Obj:
        """The Workload with the queue and the gates that its Job has now."""
        spec, metadata = dict(workload["spec"]), dict(workload["metadata"])
        if job["spec"].get("suspend") and queue_of(job):
            spec["queueName"] = queue_of(job)
        gates = (job["metadata"].get("annotations") or {}).get(GATED_BY)
        if GATED_BY in part(metadata, "annotations") and gates is None:
            kept = {k: v for k, v in metadata.pop("annotations").items() if k != GATED_BY}
            metadata |= {"annotations": kept} if kept else {}
        ranked = self._priority(job)
        if ranked is not None and "priorityClassRef" in ranked and ranked != _rank_of(spec):
            spec |= ranked
            said = f"Updated workload priority class: {metadata['namespace']}/{metadata['name']}"
            tell(self._store, job, "UpdatedWorkload", said, by=NAME, manager=MANAGER)
        write_object(
            self._store, WORKLOAD, workload, {**workload, "metadata": metadata, "spec": spec}, MANAGER
        )
        return self._store.get(WORKLOAD, metadata["namespace"], metadata["name"]) or workload

    def _start(self, job: Obj, workload: Obj) -> None:
        """Resume the Job, its pods sent to the nodes of the flavors it got."""
        admission = workload["status"]["admission"]
        names = dict.fromkeys(admission["podSetAssignments"][0]["flavors"].values())
        flavors = [part(dict(self._store.get(FLAVORS, "", name) or {}), "spec") for name in names]
        template = kueue_pods.injected(job["spec"]["template"], workload, flavors)
        changed = {**job, "spec": {**job["spec"], "suspend": False, "template": template}}
        write_object(self._store, JOB, job, changed, MANAGER)
        said = f"Admitted by clusterQueue {admission['clusterQueue']}"
        tell(self._store, job, "Started", said, by=NAME, manager=MANAGER)

    def _stop(self, job: Obj, workload: Obj) -> None:
        """Suspend the Job, and give it back the pods it was handed in with."""
        halted = {**job, "spec": {**job["spec"], "suspend": True}}
        write_object(self._store, JOB, job, halted, MANAGER)
        job = self._store.get(JOB, *_key(job)) or job
        template = kueue_pods.restored(job["spec"]["template"], workload["spec"]["podSets"][0]["template"])
        write_object(self._store, JOB, job, {**job, "spec": {**job["spec"], "template": template}}, MANAGER)
        message = str(found(workload, "Evicted").get("message") or "Not admitted by cluster queue")
        tell(self._store, job, "Stopped", message, by=NAME, manager=MANAGER)

    def _say_ready(self, job: Obj, workload: Obj) -> None:
        status = status_of(workload)
        said = _readiness(workload, pods_of(self._store, job))
        if said is not None and said[1] != found(workload, "PodsReady").get("reason"):
            told(status, workload, "PodsReady", *said)
        if reclaimable := _reclaimable(job):
            status["reclaimablePods"] = [{"count": reclaimable, "name": "main"}]
        write_status(self._store, WORKLOAD, workload, status, PODS_READY)

    def _finish(self, job: Obj, workload: Obj, reason: str, message: str) -> None:
        if holds(workload, "Finished"):
            return
        self._say_ready(job, workload)
        workload = self._workload_of(job) or workload
        status = status_of(workload)
        told(status, workload, "Finished", True, reason, message)
        write_status(self._store, WORKLOAD, workload, status, MANAGER)
        workload = self._workload_of(job) or workload
        metadata = {key: value for key, value in workload["metadata"].items() if key != "finalizers"}
        write_object(self._store, WORKLOAD, workload, {**workload, "metadata": metadata}, MANAGER)
        key = f"{metadata['namespace']}/{metadata['name']}"
        tell(
            self._store,
            job,
            "FinishedWorkload",
            f"Workload '{key}' is declared finished",
            by=NAME,
            manager=MANAGER,
        )


def workload_name(job: str, uid: str) -> str:
    """The name of a Job's Workload: readable, and another one for another Job of the same name."""
    return f"job-{job[:50]}-{hashlib.sha256(f'Job {job} {uid}'.encode()).hexdigest()[:5]}"


def _rank_of(spec: Object) -> Object:
    return {word: spec[word] for word in ("priority", "priorityClassRef") if word in spec}


def _reclaimable(job: Obj) -> int:
    """How many of the pods that were admitted are not needed any more: fewer are left to complete."""
    spec, succeeded = job["spec"], int((job.get("status") or {}).get("succeeded") or 0)
    parallelism = int(spec.get("parallelism", 1))
    if parallelism == 1 or not succeeded or spec.get("completions") is None:
        return 0
    return max(0, parallelism - (int(spec["completions"]) - succeeded))


def _readiness(workload: Obj, pods: list[Obj]) -> tuple[bool, str, str] | None:
    """What the PodsReady condition says now; None is what it said before."""
    before, admitted = found(workload, "PodsReady"), holds(workload, "Admitted")
    fine = sum(is_ready(pod) or phase_of(pod) == "Succeeded" for pod in pods)
    if admitted and fine >= int(workload["spec"]["podSets"][0]["count"]):
        return True, "Started", "All pods reached readiness and the workload is running"
    if admitted and before.get("status") == "True":
        failed = any(phase_of(pod) == "Failed" for pod in pods)
        return (
            (False, "WaitForRecovery", "At least one pod has failed, waiting for recovery")
            if failed
            else None
        )
    if admitted and before.get("reason") == "WaitForRecovery":
        return None
    return False, "WaitForStart", "Not all pods are ready or succeeded"


def _end_of(job: Obj) -> tuple[str, str] | None:
    status = dict(job.get("status") or {})
    for word, reason in (("Complete", "Succeeded"), ("Failed", "Failed")):
        if has(status, word):
            return reason, next(str(one["message"]) for one in status["conditions"] if one["type"] == word)
    return None


def _key(job: Obj) -> Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]

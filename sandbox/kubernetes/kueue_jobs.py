"""Kueue's job integrations: a queued job has a Workload, starts when that is admitted and stops when it is not.

The Jobs that a queued JobSet makes have none: they are stopped with it.
"""

import hashlib
from typing import Any

from sandbox.kubernetes import kueue_pods
from sandbox.kubernetes.admitting import GATED_BY
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import found, holds, status_of, told
from sandbox.kubernetes.controllers_pods import owner_of
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.evicting import MANAGER, WORKLOAD
from sandbox.kubernetes.job_webhook import MOST_SECONDS, owning_set, queue_of
from sandbox.kubernetes.jobs import Release
from sandbox.kubernetes.kinds import KUEUE_GROUP, Kind, builtin
from sandbox.kubernetes.kueue_kinds import BY_KIND, JOBS, JOBSETS, Integration
from sandbox.kubernetes.statuses import write_new, write_object, write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store

PODS_READY = "kueue-job-controller-PodsReady"
PREFIX = KUEUE_GROUP
IN_USE, JOB_UID = f"{PREFIX}/resource-in-use", f"{PREFIX}/job-uid"
CLASS_LABEL = f"{PREFIX}/priority-class"
CLASSES = builtin(f"{PREFIX}/v1beta2", "WorkloadPriorityClass")
POD_CLASSES = builtin("scheduling.k8s.io/v1", "PriorityClass")
FLAVORS = builtin(f"{PREFIX}/v1beta2", "ResourceFlavor")
LIMITS = builtin("v1", "LimitRange")
Object = dict[str, Any]


class QueuedJobs:
    """Keeps jobs and their Workloads in step; `run` works through those that changed."""

    def __init__(self, store: Store, release: Release) -> None:
        self._store = store
        self._release = release
        self._due: dict[tuple[Integration, Key], None] = {}

    def react(self, change: Change) -> None:
        """Remember the job of what changed, and let go of Workloads that are to go."""
        namespace, obj = change.key[0], change.after.obj
        match change.resource[1]:
            case "jobs":
                self._due[JOBS, change.key] = None
            case "jobsets":
                self._due[JOBSETS, change.key] = None
                self._due |= {
                    (JOBS, _key(job)): None
                    for job in self._store.objects(JOBS.kind, namespace)
                    if owning_set(job) == change.key[1]
                }
            case "pods" if owner := owner_of(obj):
                self._due[JOBS, (namespace, owner)] = None
            case "workloads":
                owners = obj["metadata"].get("ownerReferences") or ()
                self._due |= {
                    (BY_KIND[one["kind"]], (namespace, str(one["name"]))): None
                    for one in owners
                    if one["kind"] in BY_KIND
                }
                if not change.removed:
                    self._let_go(obj, orphan=not owners)
            case "workloadpriorityclasses":
                self._due |= {
                    (each, _key(job)): None
                    for each in BY_KIND.values()
                    for job in self._store.objects(each.kind)
                }

    def _let_go(self, workload: Obj, *, orphan: bool) -> None:
        """Nobody holds a Workload back that is to go, or whose job went without it."""
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
        for each, key in due:
            job = self._store.get(each.kind, *key)
            if job is not None and "deletionTimestamp" not in job["metadata"]:
                self._reconcile(each, job)
        return bool(due)

    def _reconcile(self, each: Integration, job: Obj) -> None:
        if each is JOBS and self._follow(job):
            return
        workload = self._workload_of(job)
        if workload is None:
            if queue_of(job) and not each.end_of(job):
                self._enqueue(job)
            return
        if ended := each.end_of(job):
            self._finish(job, workload, *ended)
            return
        workload = self._in_line(job, workload)
        self._say_ready(job, workload)
        suspended = bool(job["spec"].get("suspend"))
        if suspended and holds(workload, "Admitted"):
            self._start(job, workload)
        elif not suspended and not holds(workload, "Admitted"):
            self._stop(job, workload)

    def _follow(self, job: Obj) -> bool:
        """Stop a Job with the JobSet that it belongs to; True where it belongs to one that is queued."""
        name = owning_set(job)
        owner = self._store.get(JOBSETS.kind, job["metadata"]["namespace"], name) if name else None
        if owner is None or not queue_of(owner):
            return False
        workload = self._workload_of(owner)
        admitted = workload is not None and holds(workload, "Admitted")
        if not (job["spec"].get("suspend") or admitted or JOBSETS.end_of(owner)):
            self._write(job, {**job, "spec": {**job["spec"], "suspend": True}})
            self._tell(job, "Suspended", "Kueue managed child job suspended")
        return True

    def _write(self, job: Obj, changed: Obj) -> None:
        write_object(self._store, _kind_of(job), job, changed, MANAGER)

    def _tell(self, job: Obj, reason: str, message: str) -> None:
        by = BY_KIND[job["kind"]].controller
        tell(self._store, job, reason, message, by=by, manager=MANAGER)

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
        kind, each = _kind_of(job), BY_KIND[job["kind"]]
        name = workload_name(kind, metadata["name"], metadata["uid"])
        owner = {
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
            "ownerReferences": [owner],
        }
        if gates := (metadata.get("annotations") or {}).get(GATED_BY):
            made["annotations"] = {GATED_BY: gates}
        ranges = [dict(one) for one in self._store.objects(LIMITS, metadata["namespace"])]
        spec = {
            "active": True,
            "podSets": [kueue_pods.pod_set(one, ranges) for one in each.pods(job)],
            **ranked,
            "queueName": queue_of(job),
        }
        # What is too large for the field is no limit at all.
        if 0 < int(labels.get(MOST_SECONDS) or 0) < 2**31:
            spec["maximumExecutionTimeSeconds"] = int(labels[MOST_SECONDS])
        write_new(self._store, WORKLOAD, {"metadata": made, "spec": spec}, MANAGER)
        self._tell(job, "CreatedWorkload", f"Created Workload: {metadata['namespace']}/{name}")

    def _priority(self, job: Obj) -> Object | None:
        """Priority and where it comes from; None for a class that does not exist."""
        if name := (job["metadata"].get("labels") or {}).get(CLASS_LABEL):
            found_ = self._store.get(CLASSES, "", name)
            ref = {"group": PREFIX, "kind": "WorkloadPriorityClass", "name": name}
        elif name := next(filter(None, map(_pod_class, BY_KIND[job["kind"]].pods(job))), ""):
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
            self._tell(job, "UpdatedWorkload", said)
        write_object(
            self._store, WORKLOAD, workload, {**workload, "metadata": metadata, "spec": spec}, MANAGER
        )
        return self._store.get(WORKLOAD, metadata["namespace"], metadata["name"]) or workload

    def _start(self, job: Obj, workload: Obj) -> None:
        """Resume the job, its pods sent to the nodes of the flavors they got."""
        admission, each = workload["status"]["admission"], BY_KIND[job["kind"]]
        templates = []
        for pods, given in zip(each.pods(job), admission["podSetAssignments"], strict=True):
            names = dict.fromkeys(given["flavors"].values())
            flavors = [part(dict(self._store.get(FLAVORS, "", name) or {}), "spec") for name in names]
            is_placed = "topologyAssignment" in given
            templates.append(
                kueue_pods.injected(pods.name, pods.template, workload, flavors, is_placed=is_placed)
            )
        changed = each.with_templates(job, templates)
        self._write(job, {**changed, "spec": {**changed["spec"], "suspend": False}})
        self._tell(job, "Started", f"Admitted by clusterQueue {admission['clusterQueue']}")

    def _stop(self, job: Obj, workload: Obj) -> None:
        """Suspend the job, and give it back the pods it was handed in with."""
        each, live = BY_KIND[job["kind"]], job
        halted: Obj = {**job, "spec": {**job["spec"], "suspend": True}}
        if each.halts_first:
            self._write(job, halted)
            live = halted = self._store.get(each.kind, *_key(job)) or halted
        templates = [
            kueue_pods.restored(pods.template, asked["template"])
            for pods, asked in zip(each.pods(halted), workload["spec"]["podSets"], strict=True)
        ]
        self._write(live, each.with_templates(halted, templates))
        message = str(found(workload, "Evicted").get("message") or "Not admitted by cluster queue")
        self._tell(job, "Stopped", message)

    def _say_ready(self, job: Obj, workload: Obj) -> None:
        status, each = status_of(workload), BY_KIND[job["kind"]]
        said = _readiness(workload, *each.readiness(job, self._store))
        if said is not None and said[1] != found(workload, "PodsReady").get("reason"):
            told(status, workload, "PodsReady", *said)
        if reclaimable := each.reclaimable(job):
            status["reclaimablePods"] = reclaimable
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
        self._tell(job, "FinishedWorkload", f"Workload '{key}' is declared finished")


def workload_name(kind: Kind, job: str, uid: str) -> str:
    """The name of a job's Workload: readable, and another one for another job of the same name."""
    mark = hashlib.sha1(f"{kind.kind}\n{kind.group}\n{job}\n{uid}".encode(), usedforsecurity=False)
    return f"{kind.singular}-{job[:50]}-{mark.hexdigest()[:5]}"


def _kind_of(job: Obj) -> Kind:
    return BY_KIND[job["kind"]].kind


def _pod_class(pods: kueue_pods.Pods) -> str:
    return str(part(pods.template, "spec").get("priorityClassName") or "")


def _rank_of(spec: Object) -> Object:
    return {word: spec[word] for word in ("priority", "priorityClassRef") if word in spec}


def _readiness(workload: Obj, fine: bool, failed: bool) -> tuple[bool, str, str] | None:
    """What the PodsReady condition says now; None is what it said before."""
    before, admitted = found(workload, "PodsReady"), holds(workload, "Admitted")
    if admitted and fine:
        return True, "Started", "All pods reached readiness and the workload is running"
    if admitted and before.get("status") == "True":
        return (
            (False, "WaitForRecovery", "At least one pod has failed, waiting for recovery")
            if failed
            else None
        )
    if admitted and before.get("reason") == "WaitForRecovery":
        return None
    return False, "WaitForStart", "Not all pods are ready or succeeded"


def _key(job: Obj) -> Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]

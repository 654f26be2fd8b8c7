"""Kueue's job integrations: a queued job has a Workload, starts when that is admitted and stops when it is not.

The Jobs that a queued JobSet makes have none: they are stopped with it.
"""

from typing import Any

from sandbox.kubernetes import kueue_pods, kueue_workloads
from sandbox.kubernetes.admitting import GATED_BY
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import found, holds
from sandbox.kubernetes.controllers_pods import owner_of
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.evicting import MANAGER, WORKLOAD
from sandbox.kubernetes.job_webhook import owning_set, queue_of
from sandbox.kubernetes.jobs import Release
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.kueue_kinds import BY_KIND, JOBS, JOBSETS, Integration
from sandbox.kubernetes.statuses import write_object
from sandbox.kubernetes.store import Change, Key, Obj, Store

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
        if (
            orphan
            and kueue_workloads.JOB_UID in (metadata.get("labels") or {})
            and "deletionTimestamp" not in metadata
        ):
            workload = {
                **workload,
                "metadata": {
                    **metadata,
                    "deletionTimestamp": metadata["creationTimestamp"],
                },
            }
        if "deletionTimestamp" in workload["metadata"] and kueue_workloads.IN_USE in (
            metadata.get("finalizers") or ()
        ):
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
        owner = (
            self._store.get(JOBSETS.kind, job["metadata"]["namespace"], name)
            if name
            else None
        )
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
        return kueue_workloads.workload_of(self._store, job)

    def _enqueue(self, job: Obj) -> None:
        """Make the Workload; a Job whose priority class is missing waits for it without a word."""
        ranked = self._priority(job)
        if ranked is None:
            return
        kind, pods = _kind_of(job), BY_KIND[job["kind"]].pods(job)
        name = kueue_workloads.make_workload(self._store, kind, job, pods, ranked)
        self._tell(
            job,
            "CreatedWorkload",
            f"Created Workload: {job['metadata']['namespace']}/{name}",
        )

    def _priority(self, job: Obj) -> Object | None:
        """Priority and where it comes from; None for a class that does not exist."""
        return kueue_workloads.rank_of(self._store, job, BY_KIND[job["kind"]].pods(job))

    def _in_line(self, job: Obj, workload: Obj) -> Obj:
        """The Workload with the queue and the gates that its Job has now."""
        spec, metadata = dict(workload["spec"]), dict(workload["metadata"])
        if job["spec"].get("suspend") and queue_of(job):
            spec["queueName"] = queue_of(job)
        gates = (job["metadata"].get("annotations") or {}).get(GATED_BY)
        if GATED_BY in part(metadata, "annotations") and gates is None:
            kept = {
                k: v for k, v in metadata.pop("annotations").items() if k != GATED_BY
            }
            metadata |= {"annotations": kept} if kept else {}
        ranked = self._priority(job)
        if (
            ranked is not None
            and "priorityClassRef" in ranked
            and ranked != _rank_of(spec)
        ):
            spec |= ranked
            said = f"Updated workload priority class: {metadata['namespace']}/{metadata['name']}"
            self._tell(job, "UpdatedWorkload", said)
        write_object(
            self._store,
            WORKLOAD,
            workload,
            {**workload, "metadata": metadata, "spec": spec},
            MANAGER,
        )
        return (
            self._store.get(WORKLOAD, metadata["namespace"], metadata["name"])
            or workload
        )

    def _start(self, job: Obj, workload: Obj) -> None:
        """Resume the job, its pods sent to the nodes of the flavors they got."""
        admission, each = workload["status"]["admission"], BY_KIND[job["kind"]]
        templates = kueue_workloads.started(self._store, each.pods(job), workload)
        changed = each.with_templates(job, templates)
        self._write(job, {**changed, "spec": {**changed["spec"], "suspend": False}})
        self._tell(
            job, "Started", f"Admitted by clusterQueue {admission['clusterQueue']}"
        )

    def _stop(self, job: Obj, workload: Obj) -> None:
        """Suspend the job, and give it back the pods it was handed in with."""
        each, live = BY_KIND[job["kind"]], job
        halted: Obj = {**job, "spec": {**job["spec"], "suspend": True}}
        if each.halts_first:
            self._write(job, halted)
            live = halted = self._store.get(each.kind, *_key(job)) or halted
        templates = [
            kueue_pods.restored(pods.template, asked["template"])
            for pods, asked in zip(
                each.pods(halted), workload["spec"]["podSets"], strict=True
            )
        ]
        self._write(live, each.with_templates(halted, templates))
        message = str(
            found(workload, "Evicted").get("message") or "Not admitted by cluster queue"
        )
        self._tell(job, "Stopped", message)

    def _say_ready(self, job: Obj, workload: Obj) -> None:
        each = BY_KIND[job["kind"]]
        fine, failed = each.readiness(job, self._store)
        reclaimable = each.reclaimable(job)
        kueue_workloads.say_ready(
            self._store, workload, fine=fine, failed=failed, reclaimable=reclaimable
        )

    def _finish(self, job: Obj, workload: Obj, reason: str, message: str) -> None:
        if holds(workload, "Finished"):
            return
        self._say_ready(job, workload)
        said = kueue_workloads.finish(self._store, job, reason, message)
        self._tell(job, "FinishedWorkload", said)


def _kind_of(job: Obj) -> Kind:
    return BY_KIND[job["kind"]].kind


def _rank_of(spec: Object) -> Object:
    return {
        word: spec[word] for word in ("priority", "priorityClassRef") if word in spec
    }


def _key(job: Obj) -> Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]

"""What Kueue has to know of each kind of job that it queues: its pods, how they do, and how it ended."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.conditions import found, holds
from sandbox.kubernetes.controllers_pods import is_ready, phase_of, pods_of
from sandbox.kubernetes.job_webhook import JOBSET
from sandbox.kubernetes.jobs import JOB
from sandbox.kubernetes.jobset_children import JOB_INDEX
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.kueue_pods import Pods, count_of
from sandbox.kubernetes.store import Obj, Store

Object = dict[str, Any]


class Integration(ABC):
    """One kind of job in Kueue's eyes."""

    kind: Kind
    # Who says what happened to such a job.
    controller: str
    # How its end is called, good and bad.
    ends: tuple[str, str]
    # Whether its pods may be changed only once it is suspended.
    halts_first = False

    @abstractmethod
    def pods(self, job: Obj) -> list[Pods]:
        """The pods that it starts, in one entry for each template."""

    @abstractmethod
    def with_templates(self, job: Obj, templates: Sequence[Object]) -> Object:
        """The job with other templates, in the order of its pods."""

    @abstractmethod
    def readiness(self, job: Obj, store: Store) -> tuple[bool, bool]:
        """Whether all its pods are ready or have succeeded, and whether any failed."""

    @abstractmethod
    def reclaimable(self, job: Obj) -> list[Object]:
        """How many of the pods that were admitted are not needed any more."""

    def end_of(self, job: Obj) -> tuple[str, str] | None:
        """How it ended and in what words; None while it goes on."""
        for word, reason in zip(self.ends, ("Succeeded", "Failed"), strict=True):
            if holds(job, word):
                return reason, str(found(job, word)["message"])
        return None


class _Jobs(Integration):
    kind, controller, ends, halts_first = (
        JOB,
        "batch/job-kueue-controller",
        ("Complete", "Failed"),
        True,
    )

    def pods(self, job: Obj) -> list[Pods]:
        return [Pods("main", count_of(job["spec"]), job["spec"]["template"], {})]

    def with_templates(self, job: Obj, templates: Sequence[Object]) -> Object:
        return {**job, "spec": {**job["spec"], "template": templates[0]}}

    def readiness(self, job: Obj, store: Store) -> tuple[bool, bool]:
        pods = pods_of(store, job)
        fine = sum(is_ready(pod) or phase_of(pod) == "Succeeded" for pod in pods)
        return fine >= count_of(job["spec"]), any(
            phase_of(pod) == "Failed" for pod in pods
        )

    def reclaimable(self, job: Obj) -> list[Object]:
        spec, succeeded = (
            job["spec"],
            int((job.get("status") or {}).get("succeeded") or 0),
        )
        parallelism = int(spec.get("parallelism", 1))
        if parallelism == 1 or not succeeded or spec.get("completions") is None:
            return []
        count = max(0, parallelism - (int(spec["completions"]) - succeeded))
        return [{"count": count, "name": "main"}] if count else []


class _JobSets(Integration):
    kind, controller = JOBSET, "jobset.x-k8s.io/jobset-kueue-controller"
    ends = ("Completed", "Failed")

    def pods(self, job: Obj) -> list[Pods]:
        return [_pods(one) for one in _replicated(job)]

    def with_templates(self, job: Obj, templates: Sequence[Object]) -> Object:
        replicated = []
        for one, template in zip(_replicated(job), templates, strict=True):
            whole = part(one, "template")
            spec = {**part(whole, "spec"), "template": template}
            replicated.append(
                {**one, "template": {"metadata": {}, **whole, "spec": spec}}
            )
        return {**job, "spec": {**job["spec"], "replicatedJobs": replicated}}

    def readiness(self, job: Obj, store: Store) -> tuple[bool, bool]:
        wanted = sum(int(one.get("replicas", 1)) for one in _replicated(job))
        fine = sum(one["ready"] + one["succeeded"] for one in _statuses(job))
        return fine == wanted, fine != wanted

    def reclaimable(self, job: Obj) -> list[Object]:
        succeeded = {one["name"]: int(one["succeeded"]) for one in _statuses(job)}
        found_ = [
            {
                "count": succeeded.get(one["name"], 0) * _per_job(one),
                "name": one["name"],
            }
            for one in _replicated(job)
        ]
        return [one for one in found_ if one["count"]]


def _replicated(jobset: Obj) -> list[Object]:
    return items(jobset["spec"], "replicatedJobs")


def _statuses(jobset: Obj) -> Iterator[Object]:
    return iter(items(part(dict(jobset), "status"), "replicatedJobsStatus"))


def _per_job(replicated: Object) -> int:
    return count_of(part(part(replicated, "template"), "spec"))


def _pods(replicated: Object) -> Pods:
    replicas = int(replicated.get("replicas", 1))
    template = part(part(part(replicated, "template"), "spec"), "template")
    levels = {"subGroupCount": replicas, "subGroupIndexLabel": JOB_INDEX}
    return Pods(
        str(replicated["name"]), replicas * _per_job(replicated), template, levels
    )


JOBS, JOBSETS = _Jobs(), _JobSets()
BY_KIND = {one.kind.kind: one for one in (JOBS, JOBSETS)}

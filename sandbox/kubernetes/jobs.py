"""The Job controller: a Job's pods, what became of them, and its status. Time to live is not kept."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.causes import items
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import (
    POD,
    TRACKING,
    is_over,
    is_ready,
    owner_of,
    pods_of,
)
from sandbox.kubernetes.creating import create, owned_by
from sandbox.kubernetes.disruptions import fatal, is_ignored
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.indexed import (
    compressed,
    indexes_of,
    is_indexed,
    parsed,
    template_of,
)
from sandbox.kubernetes.job_times import JobTimes
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store

MANAGER, NAME = "kube-controller-manager", "job-controller"
JOB = builtin("batch/v1", "Job")
CONTROLLER = Identity(
    "system:serviceaccount:kube-system:job-controller",
    ("system:serviceaccounts", "system:serviceaccounts:kube-system"),
)
_TOO_OFTEN = "Job has reached the specified backoff limit"
_TOO_LONG = "Job was active longer than specified deadline"
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
Status = dict[str, Any]
# A pod is let go of by its name; what is being deleted then disappears.
Release = Callable[[Obj], None]
Remove = Callable[[Obj], None]


class Jobs:
    """Keeps the Jobs of one store going; `run` works through those that changed."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        now: Callable[[], float],
        *,
        release: Release,
        remove: Remove,
    ) -> None:
        self._store = store
        self._times = JobTimes(now)
        self._admission = admission
        self._release = release
        self._remove = remove
        self._due: dict[Key, None] = {}
        self._blocked: set[Key] = set()

    @property
    def next_due(self) -> float | None:
        """When a Job has something to do by itself next."""
        return self._times.next_due

    def react(self, change: Change) -> None:
        """Remember a Job that changed, or whose pods did, or that may make pods again: with room, or Kueue back."""
        match change.resource:
            case ("batch", "jobs") if change.removed:
                self._times.stop(change.key)
            case ("batch", "jobs"):
                self._due[change.key] = None
            case ("", "pods"):
                self._pod(change)
            case ("", "resourcequotas" | "limitranges"):
                self._due |= dict.fromkeys(
                    key for key in self._blocked if key[0] == change.key[0]
                )
            case ("apps", "deployments"):
                self._due |= dict.fromkeys(self._blocked)

    def _pod(self, change: Change) -> None:
        pod, owner = change.after.obj, owner_of(change.after.obj)
        if owner:
            self._due[change.key[0], owner] = None
        tracked = TRACKING in (pod["metadata"].get("finalizers") or ())
        if (
            tracked
            and not change.removed
            and (not owner or "deletionTimestamp" in pod["metadata"])
        ):
            self._release(pod)

    def run(self) -> bool:
        """Work through what changed; True when there was anything."""
        due, self._due = self._due | dict.fromkeys(self._times.due()), {}
        for key in due:
            job = self._store.get(JOB, *key)
            if job is not None and "deletionTimestamp" not in job["metadata"]:
                self._blocked.discard(key)
                self._reconcile(key, job)
        return bool(due)

    def _reconcile(self, key: Key, job: Obj) -> None:
        status: Status = dict(job.get("status") or {})
        if has(status, "Complete") or has(status, "Failed"):
            self._times.stop(key)
            return
        pods = pods_of(self._store, job)
        why = self._count(key, job, status, pods)
        active = [pod for pod in pods if not is_over(pod)]
        if job["spec"].get("suspend"):
            self._times.stop(key)
            active = self._suspend(job, status, active)
        else:
            self._resume(job, status)
            self._times.start(key, job)
            active = (
                self._fail(job, status, active, "PodFailurePolicy", why)
                if why
                else self._go_on(key, job, status, active)
            )
        _sum_up(status, active)
        current = self._store.get(JOB, *key)
        if current is not None:
            write_status(self._store, JOB, current, status, MANAGER)
        for pod in pods:
            if is_over(pod) and TRACKING in (pod["metadata"].get("finalizers") or ()):
                self._release(pod)

    def _count(self, key: Key, job: Obj, status: Status, pods: list[Obj]) -> str:
        """Count the pods that ended since the last look, and say why one of them ends the Job.

        Those that were counted are not tracked any more.
        """
        why = ""
        for pod in pods:
            tracked = TRACKING in (pod["metadata"].get("finalizers") or ())
            if is_over(pod) and tracked and not is_ignored(job, pod):
                word = str(pod["status"]["phase"]).lower()
                status[word] = int(status.get(word) or 0) + 1
                if word == "failed":
                    self._times.failed(key, status[word])
                    why = why or fatal(job, pod)
                elif is_indexed(job):
                    done = parsed(
                        str(status.get("completedIndexes") or "")
                    ) | indexes_of([pod])
                    status["completedIndexes"] = compressed(done)
        return why

    def _suspend(self, job: Obj, status: Status, active: list[Obj]) -> list[Obj]:
        for pod in active:
            self._delete(job, pod)
        status.pop("startTime", None)
        if say(status, "Suspended", "JobSuspended", "Job suspended"):
            tell(self._store, job, "Suspended", "Job suspended", by=NAME)
        return []

    def _resume(self, job: Obj, status: Status) -> None:
        if has(status, "Suspended"):
            say(status, "Suspended", "JobResumed", "Job resumed", true=False)
            tell(self._store, job, "Resumed", "Job resumed", by=NAME)
        status.setdefault("startTime", timestamp())

    def _go_on(
        self, key: Key, job: Obj, status: Status, active: list[Obj]
    ) -> list[Obj]:
        """Finish the Job, or give it the pods that it lacks; returns those that are at work then."""
        spec, succeeded = job["spec"], int(status.get("succeeded") or 0)
        if int(status.get("failed") or 0) > int(spec.get("backoffLimit", 6)):
            return self._fail(job, status, active, "BackoffLimitExceeded", _TOO_OFTEN)
        if self._times.is_over(key):
            status["failed"] = int(status.get("failed") or 0) + len(active)
            return self._fail(job, status, active, "DeadlineExceeded", _TOO_LONG)
        completions = spec.get("completions")
        if (
            succeeded >= int(completions)
            if completions is not None
            else succeeded > 0 and not active
        ):
            message = "Reached expected number of succeeded pods"
            for word in ("SuccessCriteriaMet", "Complete"):
                say(status, word, "CompletionsReached", message)
            status["completionTime"] = timestamp()
            tell(self._store, job, "Completed", "Job completed", by=NAME)
            return []
        wanted = _wanted(spec, succeeded, active)
        for pod in active[wanted:]:
            self._delete(job, pod)
        kept = active[:wanted]
        if self._times.waits(key):
            return kept
        return [
            *kept,
            *self._create(key, job, _numbers(job, status, kept, wanted - len(kept))),
        ]

    def _fail(
        self, job: Obj, status: Status, active: list[Obj], reason: str, message: str
    ) -> list[Obj]:
        for pod in active:
            self._delete(job, pod)
        for word in ("FailureTarget", "Failed"):
            say(status, word, reason, message)
        tell(self._store, job, reason, message, by=NAME, warning=True)
        return []

    def _create(self, key: Key, job: Obj, numbers: Sequence[int | None]) -> list[Obj]:
        """Make pods, each with its number where the Job has any."""
        made: list[Obj] = []
        for number in numbers:
            stem = job["metadata"]["name"] + ("" if number is None else f"-{number}")
            name = f"{stem}-{''.join(secrets.choice(LETTERS) for _ in range(5))}"
            try:
                pod = self._born(job, key[0], name, number)
            except Refusal as refusal:
                self._blocked.add(key)
                said = f"Error creating: {refusal.message}"
                tell(self._store, job, "FailedCreate", said, by=NAME, warning=True)
                break
            made.append(pod)
            tell(self._store, job, "SuccessfulCreate", f"Created pod: {name}", by=NAME)
        return made

    def _born(self, job: Obj, namespace: str, name: str, number: int | None) -> Obj:
        """A pod of the Job, admitted as any other; raises Refusal as the API server would."""
        template = (
            job["spec"]["template"] if number is None else template_of(job, number)
        )
        below = {
            **(template.get("metadata") or {}),
            "name": name,
            "namespace": namespace,
            "generation": 1,
            "generateName": f"{name.rpartition('-')[0]}-",
            "ownerReferences": [owned_by(job)],
            "finalizers": [TRACKING],
        }
        body = {"spec": template["spec"]}
        return create(
            self._store, self._admission, POD, below, body, CONTROLLER, MANAGER
        )

    def _delete(self, job: Obj, pod: Obj) -> None:
        self._remove(pod)
        tell(
            self._store,
            job,
            "SuccessfulDelete",
            f"Deleted pod: {pod['metadata']['name']}",
            by=NAME,
        )


def _wanted(spec: dict[str, Any], succeeded: int, active: list[Obj]) -> int:
    """How many pods are to be at work."""
    wanted = int(spec.get("parallelism", 1))
    if spec.get("completions") is not None:
        return min(wanted, int(spec["completions"]) - succeeded)
    return len(active) if succeeded else wanted


def _numbers(
    job: Obj, status: Status, active: list[Obj], count: int
) -> Sequence[int | None]:
    """The numbers of as many new pods; None for each where a Job numbers none."""
    if not is_indexed(job):
        return [None] * count
    taken = parsed(str(status.get("completedIndexes") or "")) | indexes_of(active)
    return [one for one in range(int(job["spec"]["completions"])) if one not in taken][
        : max(0, count)
    ]


def has(status: Status, word: str) -> bool:
    """Whether a condition of a Job is True."""
    return any(
        one["type"] == word and one["status"] == "True"
        for one in items(status, "conditions")
    )


def say(
    status: Status, word: str, reason: str, message: str, *, true: bool = True
) -> bool:
    """Set a condition of a Job in place; True when that is news."""
    if true and has(status, word):
        return False
    now = timestamp()
    new = {
        "type": word,
        "status": "True" if true else "False",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    listed = items(status, "conditions")
    known = any(one["type"] == word for one in listed)
    status["conditions"] = [new if one["type"] == word else one for one in listed] + (
        [] if known else [new]
    )
    return True


def _sum_up(status: Status, active: list[Obj]) -> None:
    status.pop("active", None)
    if active:
        status["active"] = len(active)
    status |= {
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "ready": sum(map(is_ready, active)),
    }

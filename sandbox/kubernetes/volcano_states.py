"""What becomes of a Volcano job: the action that an event asks for, and the phase that follows. Pure.

After applyPolicies in pkg/controllers/job/job_controller_util.go and pkg/controllers/job/state/*.go of
volcano-sh/volcano 1.15. RestartTask, RestartPod and RestartPartition are kept as no more than a look at the job.
"""

from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.store import Key, Obj
from sandbox.kubernetes.volcano_job_rules import events_of, least_of
from sandbox.kubernetes.volcano_webhook import tasks_of

SYNC, RESTART, RESUME = "SyncJob", "RestartJob", "ResumeJob"
PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
ABORTING, ABORTED = "Aborting", "Aborted"
# What an action leads to, besides a restart.
ENDS = {
    "AbortJob": ABORTING,
    "CompleteJob": "Completing",
    "TerminateJob": "Terminating",
}
ENDED = {"Completing": "Completed", "Terminating": "Terminated", ABORTING: ABORTED}
FINISHED = frozenset({"Completed", "Failed", "Terminated"})
# The phases of pods that a job keeps when its other pods are taken away.
KEPT = frozenset({"Succeeded", "Failed"})
Status = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """Something to look at a job for: an event of a pod, or an action that somebody asks for."""

    key: Key
    uid: str = ""
    event: str = ""
    task: str = ""
    code: int = 0
    version: int = 0
    action: str = ""


def action_of(job: Obj, request: Request) -> str:
    """The action that a job's policies give for a request; those of a task come before those of the job."""
    if request.action or not request.event:
        return request.action or SYNC
    status = part(dict(job), "status")
    if request.uid != job["metadata"]["uid"] or request.version < int(
        status.get("version", 0)
    ):
        return SYNC
    mine = [one for one in tasks_of(job) if one["name"] == request.task]
    for owner in (*mine[:1], dict(job["spec"])):
        for policy in items(owner, "policies"):
            if {request.event, "*"} & set(events_of(policy)) or _is_of_code(
                policy, request.code
            ):
                return str(policy.get("action") or SYNC)
    return SYNC


def _is_of_code(policy: dict[str, Any], code: int) -> bool:
    """Whether a policy answers what a pod's container ended with; 0 is no code."""
    return code != 0 and policy.get("exitCode") == code


def phase_of_job(job: Obj) -> str:
    """The phase of a job."""
    return str(part(part(dict(job), "status"), "state").get("phase") or "")


def after_pending(job: Obj, status: Status) -> str:
    """The phase of a job that waits, once it was looked at."""
    begun = sum(int(status.get(word, 0)) for word in ("running", "succeeded", "failed"))
    return RUNNING if int(job["spec"].get("minAvailable", 0)) <= begun else PENDING


def after_running(job: Obj, status: Status) -> str:
    """The phase of a job that runs, once it was looked at."""
    spec, replicas = (
        job["spec"],
        sum(int(one.get("replicas", 0)) for one in tasks_of(job)),
    )
    succeeded, wanted = int(status.get("succeeded", 0)), spec.get("minSuccess")
    if replicas == 0:
        return RUNNING
    if wanted is not None and succeeded >= int(wanted):
        return "Completed"
    if succeeded + int(status.get("failed", 0)) < replicas:
        return RUNNING
    least = int(spec.get("minAvailable", 0))
    each = sum(least_of(one) for one in tasks_of(job))
    if least >= each and any(_is_short(one, status) for one in tasks_of(job)):
        return "Failed"
    return "Completed" if wanted is None and succeeded >= least else "Failed"


def _is_short(task: dict[str, Any], status: Status) -> bool:
    counted, least = (
        part(part(status, "taskStatusCount"), str(task["name"])),
        task.get("minAvailable"),
    )
    return (
        bool(counted)
        and least is not None
        and int(part(counted, "phase").get("Succeeded", 0)) < least
    )


def after_restarting(job: Obj, status: Status) -> str:
    """The phase of a job that starts anew, once its pods were taken away."""
    if int(status.get("retryCount", 0)) >= int(job["spec"].get("maxRetry", 0)):
        return "Failed"
    total = sum(int(one.get("replicas", 0)) for one in tasks_of(job))
    left = total - int(status.get("terminating", 0))
    return PENDING if left >= int(status.get("minAvailable", 0)) else RESTARTING


def after_ending(phase: str, status: Status) -> str:
    """The phase of a job that comes to an end, once its pods were taken away."""
    busy = any(
        int(status.get(word, 0)) for word in ("terminating", "pending", "running")
    )
    return phase if busy else ENDED[phase]

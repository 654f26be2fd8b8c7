"""When a JobSet has succeeded, has failed or starts anew, and which of its Jobs may start yet. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.conditions import found
from sandbox.kubernetes.jobset_children import (
    Family,
    replicas_of,
    replicated_jobs,
    replicated_of,
)
from sandbox.kubernetes.store import Obj

COMPLETED, FAILED, RESTART = "Completed", "Failed", "Restart"
IGNORING = "RestartJobSetAndIgnoreMaxRestarts"
Object = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What becomes of a JobSet, and in what words; `counts` is whether a restart counts towards the most."""

    outcome: str
    reason: str
    message: str
    counts: bool = False


def decide(jobset: Obj, family: Family) -> Decision | None:
    """What the Jobs that ended mean for the whole; None while it goes on."""
    if family.failed:
        return _after_failure(jobset, family.failed)
    policy = part(dict(jobset["spec"]), "successPolicy")
    targets = policy.get("targetReplicatedJobs") or [
        str(one["name"]) for one in replicated_jobs(jobset)
    ]
    wanted = sum(
        replicas_of(one) for one in replicated_jobs(jobset) if one["name"] in targets
    )
    if policy.get("operator") == "Any":
        wanted = 1
    done = sum(replicated_of(job) in targets for job in family.succeeded)
    if not family.succeeded or done < wanted:
        return None
    return Decision(COMPLETED, "AllJobsCompleted", "jobset completed successfully")


def is_in_order(jobset: Obj) -> bool:
    """Whether the entries start one after the other."""
    return (
        part(dict(jobset["spec"]), "startupPolicy").get("startupPolicyOrder")
        == "InOrder"
    )


def has_started(replicated: Object, statuses: Sequence[Object]) -> bool:
    """Whether all Jobs of an entry are ready or over."""
    status = _status(statuses, str(replicated["name"]))
    return int(status["failed"] + status["ready"] + status["succeeded"]) == replicas_of(
        replicated
    )


def may_start(jobset: Obj, replicated: Object, statuses: Sequence[Object]) -> bool:
    """Whether the entries that this one depends on are as far as it wants them."""
    by_name = {one["name"]: one for one in replicated_jobs(jobset)}
    for one in items(replicated, "dependsOn"):
        before = by_name[one["name"]]
        complete = _status(statuses, one["name"])["succeeded"] == replicas_of(before)
        if not (
            complete if one["status"] == "Complete" else has_started(before, statuses)
        ):
            return False
    return True


def _status(statuses: Sequence[Object], name: str) -> Object:
    return next(one for one in statuses if one["name"] == name)


def _after_failure(jobset: Obj, failed: Sequence[Obj]) -> Decision:
    policy = part(dict(jobset["spec"]), "failurePolicy")
    in_time = sorted(
        failed, key=lambda job: str(found(job, "Failed")["lastTransitionTime"])
    )
    if not policy:
        why = "jobset failed due to one or more job failures"
        return Decision(FAILED, "FailedJobs", _first(why, in_time[0]))
    action, job = _rule(policy, in_time)
    message = _first(f"applying {action} failure policy action", job)
    if action == "FailJobSet":
        return Decision(FAILED, "FailJobSetFailurePolicyAction", message)
    counted = int((jobset.get("status") or {}).get("restartsCountTowardsMax") or 0)
    if action != IGNORING and counted >= int(policy.get("maxRestarts") or 0):
        why = "jobset failed due to reaching max number of restarts"
        return Decision(FAILED, "ReachedMaxRestarts", _first(why, job))
    return Decision(
        RESTART, f"{action}FailurePolicyAction", message, action != IGNORING
    )


def _rule(policy: Mapping[str, Any], failed: Sequence[Obj]) -> tuple[str, Obj]:
    """The action of the first rule that speaks of a Job that failed, and that Job."""
    for rule in items(policy, "rules"):
        for job in failed:
            reasons, targets = (
                rule.get("onJobFailureReasons"),
                rule.get("targetReplicatedJobs"),
            )
            meant = not reasons or found(job, "Failed")["reason"] in reasons
            if meant and (not targets or replicated_of(job) in targets):
                return str(rule["action"]), job
    return "RestartJobSet", failed[0]


def _first(message: str, job: Obj) -> str:
    return f"{message} (first failed job: {job['metadata']['name']})"

"""What Kueue does when a Workload loses its quota, and when it gets some."""

from datetime import UTC, datetime
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.conditions import Status, found, holds, status_of, told
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.kinds import KUEUE_GROUP, builtin
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Obj, Store

MANAGER = "kueue"
ADMISSION, WORKLOADS = "kueue-admission", "kueue-workload-controller"
WORKLOAD = builtin(f"{KUEUE_GROUP}/v1beta2", "Workload")
# How the reasons begin with which Kueue makes a Workload inactive.
GIVEN_UP = "DeactivatedDueTo"
DEACTIVATED = "The workload is deactivated"
STOPPED = {
    "ClusterQueueStopped": "The ClusterQueue is stopped",
    "LocalQueueStopped": "The LocalQueue is stopped",
}


def evict(
    store: Store,
    workload: Obj,
    reason: str,
    message: str,
    *,
    rule: str = "",
    cause: str = "",
) -> None:
    """Take the quota from a Workload; its job is suspended by whoever keeps jobs and Workloads in step.

    `rule` is that of a preemption; only a preempted Workload stands in line again at once. `cause` is why Kueue itself
    made it inactive.
    """
    status = status_of(workload)
    if holds(workload, "Admitted"):
        status["accumulatedPastExecutionTimeSeconds"] = _ran(workload, status)
    status.pop("admission", None)
    status.pop("admissionChecks", None)
    told(status, workload, "QuotaReserved", False, "Pending", message)
    told(status, workload, "Evicted", True, reason, message)
    told(
        status,
        workload,
        "Admitted",
        False,
        "NoReservation",
        "The workload has no reservation",
    )
    if rule:
        told(status, workload, "Preempted", True, rule, message, observed=False)
    told(status, workload, "Requeued", bool(rule), reason, message)
    status["schedulingStats"] = _counted(
        status, "Deactivated" if cause else reason, cause
    )
    write_status(store, WORKLOAD, workload, status, MANAGER)
    by = ADMISSION if rule else WORKLOADS
    tell(store, workload, f"EvictedDueTo{reason}", message, by=by, manager=MANAGER)


def evict_inactive(store: Store, workload: Obj) -> bool:
    """Take the quota from a Workload that somebody made inactive, and let one in line again that is active again."""
    active = part(dict(workload), "spec").get("active") is not False
    if not active and "admission" in (workload.get("status") or {}):
        evict(store, workload, "Deactivated", DEACTIVATED)
        return True
    if active and found(workload, "Requeued").get("reason") == "Deactivated":
        status = status_of(workload)
        told(
            status,
            workload,
            "Requeued",
            True,
            "Reactivated",
            "The workload was reactivated",
        )
        write_status(store, WORKLOAD, workload, status, MANAGER)
        return True
    return False


def is_drained(workload: Obj, kind: str = "") -> bool:
    """Whether a Workload was stopped with its queue, of this kind, and does not stand in line again yet."""
    requeued = found(workload, "Requeued")
    stopped = {f"{kind}Stopped"} if kind else set(STOPPED)
    return requeued.get("status") == "False" and requeued.get("reason") in stopped


def is_given_up(workload: Obj) -> bool:
    """Whether Kueue made a Workload inactive itself: it does not stand in line again, active or not."""
    requeued = found(workload, "Requeued")
    return requeued.get("status") == "False" and str(requeued.get("reason")).startswith(
        GIVEN_UP
    )


def requeue(store: Store, workload: Obj) -> None:
    """Let one in line again whose queue goes on."""
    queue = str(found(workload, "Requeued")["reason"]).removesuffix("Stopped")
    status = status_of(workload)
    message = f"The {queue} was restarted after being stopped"
    told(status, workload, "Requeued", True, f"{queue}Restarted", message)
    write_status(store, WORKLOAD, workload, status, MANAGER)


def reserve(
    store: Store,
    workload: Obj,
    admission: dict[str, Any],
    checks: list[str],
    considered: str = "",
) -> None:
    """Give a Workload quota; it is admitted too, unless checks have to agree first."""
    status = status_of(workload)
    queue = admission["clusterQueue"]
    status.pop("resourceRequests", None)
    status["admission"] = admission
    told(
        status,
        workload,
        "QuotaReserved",
        True,
        "QuotaReserved",
        f"Quota reserved in ClusterQueue {queue}",
    )
    for name in ("Evicted", "Preempted"):
        before = found(workload, name)
        if before.get("status") == "True":
            told(
                status,
                workload,
                name,
                False,
                "QuotaReserved",
                f"Previously: {before['message']}",
            )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if checks:
        blank = {"lastTransitionTime": now, "message": "", "state": "Pending"}
        status["admissionChecks"] = [{**blank, "name": name} for name in checks]
    else:
        _admit(status, workload)
    write_status(store, WORKLOAD, workload, status, ADMISSION)
    said = f"Quota reserved in ClusterQueue {queue}, wait time since queued was {_waited(workload)}s{considered}"
    tell(store, workload, "QuotaReserved", said, by=ADMISSION, manager=MANAGER)
    if not checks:
        _tell_admitted(store, workload, queue)


def admit_checked(store: Store, workload: Obj) -> bool:
    """Admit a Workload that has quota and whose checks are all ready."""
    checks = items(part(dict(workload), "status"), "admissionChecks")
    if (
        not holds(workload, "QuotaReserved")
        or holds(workload, "Admitted")
        or not checks
    ):
        return False
    if any(one.get("state") != "Ready" for one in checks):
        return False
    status = status_of(workload)
    _admit(status, workload)
    write_status(store, WORKLOAD, workload, status, ADMISSION)
    _tell_admitted(store, workload, status["admission"]["clusterQueue"])
    return True


def refuse(
    store: Store,
    workload: Obj,
    reason: str,
    message: str,
    requests: list[dict[str, Any]],
) -> None:
    """Say why a Workload gets no quota now; what is said already is not said again."""
    status = status_of(workload)
    told(status, workload, "QuotaReserved", False, reason, message)
    if requests:
        status["resourceRequests"] = requests
    if status == workload.get("status"):
        return
    write_status(store, WORKLOAD, workload, status, ADMISSION)
    if reason == "Pending":
        tell(
            store,
            workload,
            "Pending",
            message,
            by=ADMISSION,
            manager=MANAGER,
            warning=True,
        )
    elif reason == "AdmissionGated":
        tell(
            store,
            workload,
            reason,
            f"Workload a{message[1:]}",
            by=WORKLOADS,
            manager=MANAGER,
        )


def _admit(status: Status, workload: Obj) -> None:
    told(status, workload, "Admitted", True, "Admitted", "The workload is admitted")


def _tell_admitted(store: Store, workload: Obj, queue: str) -> None:
    said = f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s"
    tell(store, workload, "Admitted", said, by=ADMISSION, manager=MANAGER)


def _ran(workload: Obj, status: Status) -> int:
    before = int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    return before + _age(str(found(workload, "Admitted")["lastTransitionTime"]))


def _waited(workload: Obj) -> int:
    evicted = found(workload, "Evicted")
    return _age(
        str(
            evicted.get("lastTransitionTime")
            or workload["metadata"]["creationTimestamp"]
        )
    )


def _age(since: str) -> int:
    return max(
        0, int((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds())
    )


def _counted(status: Status, reason: str, cause: str) -> dict[str, Any]:
    evictions = list(items(part(status, "schedulingStats"), "evictions"))
    same = [
        one
        for one in evictions
        if (one.get("reason"), one.get("underlyingCause")) == (reason, cause)
    ]
    count = 1 + sum(int(one.get("count", 0)) for one in same)
    rest = [one for one in evictions if one not in same]
    return {
        "evictions": [
            *rest,
            {"count": count, "reason": reason, "underlyingCause": cause},
        ]
    }

"""Conditions of a Workload as Kueue writes them."""

from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.store import Obj

Status = dict[str, Any]


def found(workload: Obj, name: str) -> dict[str, Any]:
    """A condition of a Workload, empty where there is none."""
    listed = items(part(dict(workload), "status"), "conditions")
    return next((one for one in listed if one.get("type") == name), {})


def holds(workload: Obj, name: str) -> bool:
    """Whether a condition is True."""
    return found(workload, name).get("status") == "True"


def told(
    status: Status,
    workload: Obj,
    name: str,
    said: bool,
    reason: str,
    message: str,
    *,
    observed: bool = True,
) -> None:
    """Set a condition in place; its time changes with its status only."""
    listed = items(status, "conditions")
    before = next((one for one in listed if one["type"] == name), {})
    word = "True" if said else "False"
    new: dict[str, Any] = {
        "lastTransitionTime": before["lastTransitionTime"]
        if before.get("status") == word
        else timestamp(),
        "message": message,
        "reason": reason,
        "status": word,
        "type": name,
    }
    if observed:
        new["observedGeneration"] = workload["metadata"].get("generation", 1)
    kept = [new if one is before else one for one in listed]
    status["conditions"] = kept if before else [*kept, new]


def status_of(workload: Obj) -> Status:
    """A copy of a Workload's status to work on."""
    return dict(workload.get("status") or {})

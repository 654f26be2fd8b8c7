"""Failures of pods that a Job's policy speaks of: those it does not count, and those that end it. Pure."""

from typing import Any, NamedTuple

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.store import Obj

Object = dict[str, Any]


class _Match(NamedTuple):
    action: str
    place: int
    condition: str


def is_ignored(job: Obj, pod: Obj) -> bool:
    """Whether the first rule of a Job's policy that speaks of a condition of this pod is to ignore its failure."""
    found = _match(job, pod)
    return found is not None and found.action == "Ignore"


def fatal(job: Obj, pod: Obj) -> str:
    """Why the failure of this pod ends its Job at once; empty where it does not."""
    found = _match(job, pod)
    if found is None or found.action != "FailJob":
        return ""
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return f"Pod {name} has condition {found.condition} matching FailJob rule at index {found.place}"


def _match(job: Obj, pod: Obj) -> _Match | None:
    conditions = items(part(dict(pod), "status"), "conditions")
    for place, rule in enumerate(
        items(part(dict(job["spec"]), "podFailurePolicy"), "rules")
    ):
        for pattern in items(rule, "onPodConditions"):
            if _holds(pattern, conditions):
                return _Match(str(rule.get("action")), place, str(pattern.get("type")))
    return None


def _holds(pattern: Object, conditions: list[Object]) -> bool:
    wanted = pattern.get("type"), pattern.get("status", "True")
    return any((one.get("type"), one.get("status")) == wanted for one in conditions)

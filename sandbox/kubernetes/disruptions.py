"""Failures of pods that their Job does not count: those of a disruption that its policy ignores. Pure."""

from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.store import Obj

Object = dict[str, Any]


def is_ignored(job: Obj, pod: Obj) -> bool:
    """Whether the first rule of a Job's policy that speaks of a condition of this pod is to ignore its failure."""
    conditions = items(part(dict(pod), "status"), "conditions")
    for rule in items(part(dict(job["spec"]), "podFailurePolicy"), "rules"):
        if any(_holds(pattern, conditions) for pattern in items(rule, "onPodConditions")):
            return rule.get("action") == "Ignore"
    return False


def _holds(pattern: Object, conditions: list[Object]) -> bool:
    wanted = pattern.get("type"), pattern.get("status", "True")
    return any((one.get("type"), one.get("status")) == wanted for one in conditions)

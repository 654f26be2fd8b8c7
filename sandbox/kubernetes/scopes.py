"""The scopes of ResourceQuotas: of which pods a quota counts anything at all."""

from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    invalid_value,
    items,
    part,
    required,
    unsupported,
)
from sandbox.kubernetes.kinds import Kind

PRIORITY_CLASS = "PriorityClass"
SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
# What a quota of pods of some priorities may limit.
OF_PODS = ("pods", "cpu", "memory", "requests.", "limits.", "count/pods")


def covers(quota: Mapping[str, Any], kind: Kind, obj: Mapping[str, Any]) -> bool:
    """Whether a quota counts this object: one without scopes counts everything, one with them only pods."""
    wanted = requirements(quota)
    if not wanted:
        return True
    return kind.kind == "Pod" and all(
        _matches(one, part(dict(obj), "spec")) for one in wanted
    )


def requirements(quota: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scopes of a quota, the short form written out."""
    spec = part(dict(quota), "spec")
    short = [
        {"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()
    ]
    return [*short, *items(part(spec, "scopeSelector"), "matchExpressions")]


def _matches(requirement: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    match requirement.get("scopeName"):
        case "PriorityClass":
            return _of_class(requirement, str(spec.get("priorityClassName") or ""))
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
    # The other scopes are accepted and counted for every pod: nothing here asks for them.
    return True


def _of_class(requirement: Mapping[str, Any], name: str) -> bool:
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            # As every label selector: what has no class is not in the list.
            return name not in values
        case "Exists":
            return bool(name)
    return not name


def validate(quota: Mapping[str, Any]) -> list[Cause]:
    """Causes for the scopes of a ResourceQuota."""
    found: list[Cause] = []
    for index, one in enumerate(
        items(part(part(dict(quota), "spec"), "scopeSelector"), "matchExpressions")
    ):
        found += _requirement(one, f"spec.scopeSelector.matchExpressions[{index}]")
    if found or all(
        one.get("scopeName") != PRIORITY_CLASS for one in requirements(quota)
    ):
        return found
    for resource in part(part(dict(quota), "spec"), "hard"):
        if not resource.startswith(OF_PODS):
            found.append(
                invalid_value(
                    "spec.scopeSelector",
                    resource,
                    "unsupported scope applied to resource",
                )
            )
    return found


def _requirement(one: Mapping[str, Any], path: str) -> list[Cause]:
    scope, operator, values = (
        one.get(name) for name in ("scopeName", "operator", "values")
    )
    if scope not in SCOPES:
        return [invalid_value(f"{path}.scopeName", scope, "unsupported scope")]
    if operator not in OPERATORS:
        return [unsupported(f"{path}.operator", operator or "", OPERATORS)]
    if scope != PRIORITY_CLASS and operator != "Exists":
        text = f'must be "Exist" when scope is any of {", ".join(SCOPES)}'
        return [invalid_value(f"{path}.operator", operator, text)]
    if operator in ("In", "NotIn") and not values:
        return [
            required(
                f"{path}.values",
                "must be at least one value when `operator` is 'In' or 'NotIn'",
            )
        ]
    if operator in ("Exists", "DoesNotExist") and values:
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [invalid_value(f"{path}.values", values, text)]
    return []

"""What is wrong with quotas, limit ranges, claims, config maps and priority classes."""

import difflib
import json
from typing import Any

from sandbox.kubernetes import scopes
from sandbox.kubernetes.causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    items,
    part,
    required,
    unsupported,
)
from sandbox.kubernetes.names import config_key, qualified_name
from sandbox.kubernetes.quantities import compare, is_whole, stored
from sandbox.kubernetes.resources import (
    COUNTED,
    container_resource,
    may_be_overcommitted,
    quota_resource,
)

NOT_NEGATIVE = "must be greater than or equal to 0"
HIGHEST_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
LIMIT_TYPES = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests "
    "and volumeAttributesClassName for bound claims"
)


def validate_quota(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the hard limits of a ResourceQuota."""
    found: list[Cause] = []
    for resource, amount in part(part(obj, "spec"), "hard").items():
        field = f"spec.hard[{resource}]"
        found += quota_resource(resource, field)
        if compare(amount, 0) < 0:
            found.append(invalid_value(field, stored(amount), NOT_NEGATIVE))
        if (resource in COUNTED or resource.startswith("count/")) and not is_whole(
            amount
        ):
            found.append(invalid_value(field, stored(amount), "must be an integer"))
    return [*found, *scopes.validate(obj)]


def validate_limit_range(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the items of a LimitRange, after defaulting."""
    found: list[Cause] = []
    seen: set[str] = set()
    for index, item in enumerate(items(part(obj, "spec"), "limits")):
        path, kind = f"spec.limits[{index}]", str(item.get("type") or "")
        found += _limit_type(kind, f"{path}.type")
        if kind in seen:
            found.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        found += _limit_item(item, kind, path)
    return found


def _limit_type(kind: str, field: str) -> list[Cause]:
    found = [invalid_value(field, kind, text) for text in qualified_name(kind)]
    if not found and "/" not in kind and kind not in LIMIT_TYPES:
        found.append(
            invalid_value(
                field, kind, "must be a standard limit type or fully qualified"
            )
        )
    return found


def _limit_item(item: dict[str, Any], kind: str, path: str) -> list[Cause]:
    groups = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
    found: list[Cause] = []
    if kind == "Pod":
        for group in ("default", "defaultRequest"):
            if part(item, group):
                found.append(
                    forbidden_field(
                        f"{path}.{group}", "may not be specified when `type` is 'Pod'"
                    )
                )
            groups.remove(group)
    for group in groups:
        for resource in part(item, group):
            if kind in {"Pod", "Container"}:
                found += container_resource(resource, f"{path}.{group}[{resource}]")
    if kind == "PersistentVolumeClaim" and not {"storage"} & {
        *part(item, "min"),
        *part(item, "max"),
    }:
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{path}.limits", text))
    for resource in dict.fromkeys(
        resource for group in groups for resource in part(item, group)
    ):
        found += _limit_order(
            {group: part(item, group).get(resource) for group in groups}, resource, path
        )
    return found


# lower group, upper group, field blamed, value shown, words: what the server compares, in its order.
_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    (
        "min",
        "default",
        "default",
        "min",
        "min value {} is greater than default value {}",
    ),
    (
        "default",
        "max",
        "default",
        "max",
        "default value {} is greater than max value {}",
    ),
)


def _limit_order(values: dict[str, Any], resource: str, path: str) -> list[Cause]:
    found: list[Cause] = []
    given = {
        group: stored(amount) for group, amount in values.items() if amount is not None
    }
    for lower, upper, blamed, shown, words in _ORDER:
        if (
            lower in given
            and upper in given
            and compare(given[lower], given[upper]) > 0
        ):
            text = words.format(given[lower], given[upper])
            found.append(
                invalid_value(f"{path}.{blamed}[{resource}]", given[shown], text)
            )
    ratio = given.get("maxLimitRequestRatio")
    if ratio is not None and compare(ratio, 1) < 0:
        found.append(
            invalid_value(
                f"{path}.maxLimitRequestRatio[{resource}]",
                ratio,
                f"ratio {ratio} is less than 1",
            )
        )
    default, request = given.get("default"), given.get("defaultRequest")
    strict = (
        default is not None
        and request is not None
        and not may_be_overcommitted(resource)
    )
    if strict and compare(default, request) != 0:
        text = f"default value {default} must equal to defaultRequest value {request} in {resource}"
        found.append(invalid_value(f"{path}.defaultRequest[{resource}]", request, text))
    return found


def validate_claim(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a PersistentVolumeClaim."""
    spec = part(obj, "spec")
    found: list[Cause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(required("spec.accessModes", "at least 1 access mode is required"))
    found += [
        unsupported("spec.accessModes", mode, ACCESS_MODES)
        for mode in modes
        if mode not in ACCESS_MODES
    ]
    size = part(part(spec, "resources"), "requests").get("storage")
    if size is None:
        found.append(required("spec.resources[storage]"))
    elif compare(size, 0) <= 0:
        found.append(
            invalid_value(
                "spec.resources[storage]", stored(size), "must be greater than zero"
            )
        )
    return found


def _claim_lines(obj: dict[str, Any]) -> list[str]:
    spec = part(obj, "spec")
    resources = part(spec, "resources")
    shown = {
        "AccessModes": spec.get("accessModes"),
        "Selector": spec.get("selector"),
        "Resources": {
            "Limits": resources.get("limits"),
            "Requests": resources.get("requests"),
        },
        "VolumeName": spec.get("volumeName", ""),
        "StorageClassName": spec.get("storageClassName"),
        "VolumeMode": spec.get("volumeMode"),
        "DataSource": spec.get("dataSource"),
        "DataSourceRef": spec.get("dataSourceRef"),
        "VolumeAttributesClassName": spec.get("volumeAttributesClassName"),
    }
    return json.dumps(shown, indent=1).splitlines(keepends=True)


def validate_claim_update(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Causes for changing a claim: nothing may change before it is bound, afterwards it may only grow."""
    before, after = _claim_lines(old), _claim_lines(new)
    bound = part(old, "status").get("phase") == "Bound"
    if before == after or (bound and _grown(new, old)):
        return []
    diff = "".join(list(difflib.unified_diff(before, after))[2:])
    return [forbidden_field("spec", f"{CLAIM_FIXED}\n{diff}")]


def _grown(new: dict[str, Any], old: dict[str, Any]) -> bool:
    now, before = part(new, "spec"), part(old, "spec")
    same = {**now, "resources": None, "volumeName": None} == {
        **before,
        "resources": None,
        "volumeName": None,
    }
    sizes = [
        part(part(spec, "resources"), "requests").get("storage")
        for spec in (now, before)
    ]
    return same and compare(sizes[0], sizes[1]) >= 0


def validate_config_map(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the keys of a ConfigMap or Secret."""
    found: list[Cause] = []
    for group in ("data", "binaryData"):
        for key in part(obj, group):
            found += [
                invalid_value(f"{group}[{key}]", key, text) for text in config_key(key)
            ]
    return found


def validate_config_map_update(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Causes for changing a ConfigMap or Secret that was declared immutable."""
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    changed = [
        name
        for name in ("data", "binaryData")
        if (new.get(name) or {}) != (old.get(name) or {})
    ]
    fixed = [] if new.get("immutable") else ["immutable"]
    return [forbidden_field(name, text) for name in fixed + changed]


def validate_priority_class(obj: dict[str, Any]) -> list[Cause]:
    """Causes for a PriorityClass: reserved names and priorities."""
    name = str(part(obj, "metadata").get("name") or "")
    value = obj.get("value") or 0
    if name.startswith("system-") and name not in SYSTEM_CLASSES:
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        return [
            forbidden_field(
                "metadata.name", f"{text}{name} is not a known system priority class"
            )
        ]
    if not name.startswith("system-") and value > HIGHEST_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"
        return [forbidden_field("value", text)]
    return []


def validate_priority_class_update(
    new: dict[str, Any], old: dict[str, Any]
) -> list[Cause]:
    """Causes for changing the value of a PriorityClass, or whom it preempts."""
    found: list[Cause] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        found.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        found.append(
            invalid_value(
                "preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"
            )
        )
    return found

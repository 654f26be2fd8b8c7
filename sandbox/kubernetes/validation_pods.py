"""What is wrong with pods and jobs."""

from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    invalid_value,
    items,
    part,
    required,
    unsupported,
)
from sandbox.kubernetes.names import LABEL_MAX, dns_label
from sandbox.kubernetes.quantities import QuantityError, compare, is_whole, stored
from sandbox.kubernetes.resources import (
    container_resource,
    is_extended,
    may_be_overcommitted,
)

NOT_NEGATIVE = "must be greater than or equal to 0"
WHOLE = "must be an integer"
RESTART_POLICIES = ("Always", "Never", "OnFailure")
JOB_RESTART_POLICIES = ("OnFailure", "Never")
IMMUTABLE = "field is immutable"


def validate_pod(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a Pod, after defaulting."""
    return validate_pod_spec(part(obj, "spec"), "spec", RESTART_POLICIES)


def validate_pod_spec(
    spec: dict[str, Any], path: str, policies: tuple[str, ...]
) -> list[Cause]:
    """Causes for a pod spec found at the path; policies are the restart policies allowed there."""
    found: list[Cause] = []
    names: set[str] = set()
    if not items(spec, "containers"):
        found.append(required(f"{path}.containers"))
    for group in ("containers", "initContainers"):
        for index, container in enumerate(items(spec, group)):
            found += _container(container, f"{path}.{group}[{index}]", names)
    policy = spec.get("restartPolicy") or ""
    if policy not in policies:
        found.append(unsupported(f"{path}.restartPolicy", policy, policies))
    return found


def _container(container: dict[str, Any], path: str, names: set[str]) -> list[Cause]:
    name = container.get("name") or ""
    found: list[Cause] = []
    if not name:
        found.append(required(f"{path}.name"))
    elif name in names:
        field = {
            "reason": "FieldValueDuplicate",
            "message": f'Duplicate value: "{name}"',
        }
        found.append({**field, "field": f"{path}.name"})
    else:
        found += [invalid_value(f"{path}.name", name, text) for text in dns_label(name)]
    names.add(name)
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    return found + _resources(part(container, "resources"), f"{path}.resources")


def _resources(resources: dict[str, Any], path: str) -> list[Cause]:
    limits, requests = part(resources, "limits"), part(resources, "requests")
    found: list[Cause] = []
    for resource, amount in limits.items():
        found += _amount(resource, amount, f"{path}.limits[{resource}]")
    for resource, amount in requests.items():
        found += _amount(resource, amount, f"{path}.requests[{resource}]")
        if resource in limits:
            found += _against_limit(
                resource, amount, limits[resource], f"{path}.requests"
            )
        elif not may_be_overcommitted(resource):
            text = "Limit must be set for non overcommitable resources"
            found.append(required(f"{path}.limits", text))
    return found


def _amount(resource: str, amount: Any, path: str) -> list[Cause]:
    found = container_resource(resource, path)
    try:
        if compare(amount, 0) < 0:
            found.append(invalid_value(path, stored(amount), NOT_NEGATIVE))
        if is_extended(resource) and not is_whole(amount):
            found.append(invalid_value(path, stored(amount), WHOLE))
    except QuantityError as error:
        found.append(invalid_value(path, amount, str(error)))
    return found


def _against_limit(resource: str, amount: Any, limit: Any, path: str) -> list[Cause]:
    try:
        order = compare(amount, limit)
    except QuantityError:
        return []
    if order != 0 and not may_be_overcommitted(resource):
        return [
            invalid_value(
                path,
                stored(amount),
                f"must be equal to {resource} limit of {stored(limit)}",
            )
        ]
    if order > 0:
        text = f"must be less than or equal to {resource} limit of {stored(limit)}"
        return [invalid_value(path, stored(amount), text)]
    return []


def validate_job(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a Job, after defaulting."""
    spec, name = part(obj, "spec"), str(part(obj, "metadata").get("name") or "")
    found: list[Cause] = []
    for field in (
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ):
        amount = spec.get(field)
        if isinstance(amount, int) and amount < 0:
            found.append(invalid_value(f"spec.{field}", amount, NOT_NEGATIVE))
    if len(name) > LABEL_MAX:
        found.append(
            invalid_value(
                "spec.template.labels", name, f"must be no more than {LABEL_MAX} bytes"
            )
        )
    pod = part(part(spec, "template"), "spec")
    return found + validate_pod_spec(pod, "spec.template.spec", JOB_RESTART_POLICIES)


def validate_job_update(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Causes for changing what a Job fixes at its creation; a suspended Job that never started may be retuned."""
    now, before = part(new, "spec"), part(old, "spec")
    found: list[Cause] = []
    tunable = bool(before.get("suspend")) and not part(old, "status").get("startTime")
    for field in (
        "completions",
        "selector",
        "template",
        "completionMode",
        "podFailurePolicy",
    ):
        if now.get(field) == before.get(field) or (field == "template" and tunable):
            continue
        found.append(invalid_value(f"spec.{field}", now.get(field), IMMUTABLE))
    return found


def validate_pod_update(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Causes for changing a pod's spec beyond images, deadline, tolerations added and scheduling gates lifted."""
    now, before = dict(part(new, "spec")), dict(part(old, "spec"))
    for spec in (now, before):
        for field in (
            "activeDeadlineSeconds",
            "terminationGracePeriodSeconds",
            "tolerations",
            "schedulingGates",
        ):
            spec.pop(field, None)
        for group in ("containers", "initContainers"):
            if group in spec:
                spec[group] = [{**one, "image": ""} for one in items(spec, group)]
    if part(old, "spec").get("schedulingGates"):
        for spec in (now, before):
            spec.pop("nodeSelector", None)
            spec.pop("affinity", None)
    if now == before:
        return []
    text = (
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
        "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
        "(allow it to be set to 1 if it was previously negative)"
    )
    return [
        {
            "reason": "FieldValueForbidden",
            "message": f"Forbidden: {text}",
            "field": "spec",
        }
    ]

"""ResourceQuotas at work: what objects count for, what is used, and which objects are one too many."""

from collections.abc import Iterable, Sequence
from typing import Any

from sandbox.kubernetes import scopes, status
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.kinds import KINDS, Kind
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import add, compare, subtract
from sandbox.kubernetes.resources import COMPUTE_RESOURCES, COUNTED, is_extended

OF_CLASS = ".storageclass.storage.k8s.io/"
COUNT = "count/"
TERMINAL = frozenset({"Succeeded", "Failed"})
Amounts = dict[str, str]


def usage_of(kind: Kind, obj: dict[str, Any]) -> Amounts:
    """What one object counts for, by every quota key it could count for."""
    usage = {f"{COUNT}{kind.qualified_plural}": "1"}
    if kind.kind == "Pod":
        return usage | _pod_usage(obj)
    if kind.kind == "PersistentVolumeClaim":
        usage |= _claim_usage(obj)
    if kind.kind == "Service":
        usage |= _service_usage(obj)
    if not kind.group and kind.plural in COUNTED:
        usage[kind.plural] = "1"
    return usage


def _pod_usage(obj: dict[str, Any]) -> Amounts:
    # A pod that has ended holds nothing any more, but it is still an object.
    if part(obj, "status").get("phase") in TERMINAL:
        return {}
    spec, usage = part(obj, "spec"), {"pods": "1"}
    for resource, amount in pod_amounts(spec, "requests").items():
        if resource in COMPUTE_RESOURCES or resource.startswith("hugepages-"):
            usage[resource] = usage[f"requests.{resource}"] = amount
        elif is_extended(resource):
            usage[f"requests.{resource}"] = amount
    for resource, amount in pod_amounts(spec, "limits").items():
        if resource in COMPUTE_RESOURCES:
            usage[f"limits.{resource}"] = amount
    return usage


def _claim_usage(obj: dict[str, Any]) -> Amounts:
    spec = part(obj, "spec")
    size = add(part(part(spec, "resources"), "requests").get("storage"))
    usage = {"requests.storage": size}
    if spec.get("storageClassName"):
        head = f"{spec['storageClassName']}{OF_CLASS}"
        usage |= {f"{head}requests.storage": size, f"{head}persistentvolumeclaims": "1"}
    return usage


def _service_usage(obj: dict[str, Any]) -> Amounts:
    spec = part(obj, "spec")
    ports = len(items(spec, "ports"))
    if spec.get("type") == "NodePort":
        return {"services.nodeports": str(ports)}
    if spec.get("type") == "LoadBalancer":
        return {"services.loadbalancers": "1", "services.nodeports": str(ports)}
    return {}


def is_tracked(key: str) -> bool:
    """Whether the server fills in ``used`` for a quota key; limits of extended resources it does not."""
    if key.startswith(COUNT):
        return key.removeprefix(COUNT) in {kind.qualified_plural for kind in KINDS}
    side, _, resource = key.partition(".")
    if side == "requests" and (
        is_extended(resource) or resource.startswith("hugepages-")
    ):
        return True
    compute = resource in COMPUTE_RESOURCES and side in {"requests", "limits"}
    return (
        compute
        or key in {*COMPUTE_RESOURCES, *COUNTED, "requests.storage"}
        or OF_CLASS in key
    )


def used(
    hard: dict[str, Any], objects: Iterable[tuple[Kind, dict[str, Any]]]
) -> Amounts:
    """The status.used of a quota over the objects of its namespace, keys sorted."""
    totals = {key: "0" for key in sorted(hard) if is_tracked(key)}
    for kind, obj in objects:
        for key, amount in usage_of(kind, obj).items():
            if key in totals:
                totals[key] = add(totals[key], amount)
    return totals


def refusal(
    kind: Kind,
    obj: dict[str, Any],
    quotas: Sequence[dict[str, Any]],
    old: dict[str, Any] | None = None,
) -> status.Refusal | None:
    """The HTTP 403 for a write that a quota of the namespace does not allow, or None.

    Quotas are judged by the status they carry (spec.hard where it is still empty); for an update, give the
    old object: only growth is charged.
    """
    name = str(part(obj, "metadata").get("name") or "")
    covering = [one for one in quotas if scopes.covers(one, kind, obj)]
    ordered = sorted(
        covering, key=lambda quota: str(part(quota, "metadata").get("name"))
    )
    if kind.kind == "Pod" and old is None:
        for quota in ordered:
            missing = _unspecified(obj, _hard(quota))
            if missing:
                text = (
                    f"failed quota: {quota['metadata']['name']}: must specify {missing}"
                )
                return status.forbidden(kind, name, text)
    growth = _growth(kind, obj, old)
    for quota in ordered:
        text = _exceeded(quota, growth)
        if text:
            return status.forbidden(kind, name, text)
    return None


def _hard(quota: dict[str, Any]) -> dict[str, Any]:
    return part(part(quota, "status"), "hard") or part(part(quota, "spec"), "hard")


def _growth(kind: Kind, obj: dict[str, Any], old: dict[str, Any] | None) -> Amounts:
    usage = usage_of(kind, obj)
    if old is None:
        return usage
    before = usage_of(kind, old)
    return {key: subtract(amount, before.get(key)) for key, amount in usage.items()}


def _unspecified(pod: dict[str, Any], hard: dict[str, Any]) -> str:
    spec = part(pod, "spec")
    found: dict[str, list[str]] = {}
    for key in sorted(hard):
        side, _, resource = key.partition(".") if "." in key else ("requests", "", key)
        if resource not in COMPUTE_RESOURCES or side not in {"requests", "limits"}:
            continue
        for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
            if resource not in part(part(container, "resources"), side):
                found.setdefault(key, []).append(str(container.get("name")))
    return "; ".join(
        f"{key} for: {','.join(sorted(set(names)))}" for key, names in found.items()
    )


def _exceeded(quota: dict[str, Any], growth: Amounts) -> str:
    hard, spent = _hard(quota), part(part(quota, "status"), "used")
    over = [
        key
        for key in sorted(growth)
        if key in hard
        and compare(growth[key], 0) > 0
        and compare(add(spent.get(key), growth[key]), hard[key]) > 0
    ]
    if not over:
        return ""
    asked = ",".join(f"{key}={growth[key]}" for key in over)
    taken = ",".join(f"{key}={add(spent.get(key))}" for key in over)
    limit = ",".join(f"{key}={hard[key]}" for key in over)
    return f"exceeded quota: {quota['metadata']['name']}, requested: {asked}, used: {taken}, limited: {limit}"

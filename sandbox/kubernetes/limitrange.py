"""LimitRanges at work: what they fill in for pods, and which pods and claims they refuse."""

from collections.abc import Iterator, Sequence
from typing import Any

from sandbox.kubernetes import status
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import compare, parse

ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, Any]


def fill_in(pod: dict[str, Any], ranges: Sequence[dict[str, Any]]) -> None:
    """Give the containers of a new Pod, in place, the defaults of the namespace's LimitRanges."""
    for limit_range in ranges:
        limits, requests = _defaults(limit_range)
        said: list[str] = []
        for group, word in (
            ("containers", "container"),
            ("initContainers", "init container"),
        ):
            for container in items(part(pod, "spec"), group):
                said += _merge(container, limits, requests, word)
        if said:
            meta = pod.setdefault("metadata", {})
            text = "LimitRanger plugin set: " + "; ".join(said)
            meta["annotations"] = {**part(meta, "annotations"), ANNOTATION: text}


def _defaults(limit_range: dict[str, Any]) -> tuple[Amounts, Amounts]:
    limits: Amounts = {}
    requests: Amounts = {}
    for item in items(part(limit_range, "spec"), "limits"):
        if item.get("type") == "Container":
            limits |= part(item, "default")
            requests |= part(item, "defaultRequest")
    return limits, requests


def _merge(
    container: dict[str, Any], limits: Amounts, requests: Amounts, word: str
) -> list[str]:
    resources = container.setdefault("resources", {})
    said: list[str] = []
    for side, name, defaults in (
        ("requests", "request", requests),
        ("limits", "limit", limits),
    ):
        given = part(resources, side)
        added = {
            resource: amount
            for resource, amount in defaults.items()
            if resource not in given
        }
        if added:
            resources[side] = {**given, **added}
            said.append(
                f"{', '.join(sorted(added))} {name} for {word} {container.get('name', '')}"
            )
    return said


def refusal(
    kind: Kind, obj: dict[str, Any], ranges: Sequence[dict[str, Any]]
) -> status.Refusal | None:
    """The HTTP 403 for a Pod or claim that breaks a LimitRange of its namespace, or None."""
    for limit_range in ranges:
        said = list(_broken(kind, obj, limit_range))
        if said:
            name = str(part(obj, "metadata").get("name") or "")
            return status.forbidden(
                kind, name, said[0] if len(said) == 1 else f"[{', '.join(said)}]"
            )
    return None


def _broken(
    kind: Kind, obj: dict[str, Any], limit_range: dict[str, Any]
) -> Iterator[str]:
    spec = part(obj, "spec")
    for item in items(part(limit_range, "spec"), "limits"):
        limit_type = item.get("type")
        if kind.kind == "Pod" and limit_type == "Container":
            for container in [
                *items(spec, "containers"),
                *items(spec, "initContainers"),
            ]:
                resources = part(container, "resources")
                yield from _constraints(
                    item, part(resources, "requests"), part(resources, "limits")
                )
        elif kind.kind == "Pod" and limit_type == "Pod":
            yield from _constraints(
                item, pod_amounts(spec, "requests"), pod_amounts(spec, "limits")
            )
        elif kind.kind == limit_type == "PersistentVolumeClaim":
            yield from _claim(item, part(part(spec, "resources"), "requests"))


def _constraints(
    item: dict[str, Any], requests: Amounts, limits: Amounts
) -> Iterator[str]:
    kind = item["type"]
    for resource, enforced in sorted(part(item, "min").items()):
        head = f"minimum {resource} usage per {kind} is {enforced}"
        yield from _low(head, enforced, requests.get(resource), limits.get(resource))
    for resource, enforced in sorted(part(item, "max").items()):
        head = f"maximum {resource} usage per {kind} is {enforced}"
        yield from _high(head, enforced, requests.get(resource), limits.get(resource))
    for resource, enforced in sorted(part(item, "maxLimitRequestRatio").items()):
        head = f"{resource} max limit to request ratio per {kind} is {enforced}"
        yield from _ratio(head, enforced, requests.get(resource), limits.get(resource))


def _low(head: str, enforced: Any, request: Any, limit: Any) -> Iterator[str]:
    if request is None:
        yield f"{head}.  No request is specified"
    elif compare(request, enforced) < 0:
        yield f"{head}, but request is {request}"
    elif limit is not None and compare(limit, enforced) < 0:
        yield f"{head}, but limit is {limit}"


def _high(head: str, enforced: Any, request: Any, limit: Any) -> Iterator[str]:
    if limit is None:
        yield f"{head}.  No limit is specified"
    elif compare(limit, enforced) > 0:
        yield f"{head}, but limit is {limit}"
    elif request is not None and compare(request, enforced) > 0:
        yield f"{head}, but request is {request}"


def _ratio(head: str, enforced: Any, request: Any, limit: Any) -> Iterator[str]:
    asked, allowed = parse(request).nanos, parse(limit).nanos
    if asked == 0:
        yield f"{head}, but no request is specified or request is 0"
    elif allowed == 0:
        yield f"{head}, but no limit is specified or limit is 0"
    elif compare(f"{allowed / asked:.9f}", enforced) > 0:
        yield f"{head}, but provided ratio is {allowed / asked:f}"


def _claim(item: dict[str, Any], requests: Amounts) -> Iterator[str]:
    for group, word, sign in (("min", "minimum", -1), ("max", "maximum", 1)):
        for resource, enforced in sorted(part(item, group).items()):
            asked = requests.get(resource)
            if asked is not None and compare(asked, enforced) == sign:
                usage = (
                    f"{word} {resource} usage per PersistentVolumeClaim is {enforced}"
                )
                yield f"{usage}, but request is {asked}"

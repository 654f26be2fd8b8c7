"""Which node a pod may run on: labels, taints, room. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import parse

Object = dict[str, Any]
ENDED = frozenset({"Succeeded", "Failed"})
HARD = frozenset({"NoSchedule", "NoExecute"})
NO_NODES = "no nodes available to schedule pods"
HOPELESS = "Preemption is not helpful for scheduling"


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Whether labels have all that a node selector names."""
    return all(labels.get(key) == value for key, value in selector.items())


def untolerated(taints: Iterable[Object], tolerations: Sequence[Object]) -> bool:
    """Whether a taint keeps a pod with these tolerations away."""
    return any(
        taint.get("effect") in HARD
        and not any(_tolerates(one, taint) for one in tolerations)
        for taint in taints
    )


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or toleration.get("value", "") == taint.get("value", "")


def place(
    pod: Object, nodes: Sequence[Object], pods: Iterable[Object]
) -> tuple[str, str]:
    """The node with the most room that fits, or an empty name and why there is none, as the scheduler words it."""
    if not nodes:
        return "", NO_NODES
    used = _used(pods)
    fitting: list[tuple[int, str]] = []
    reasons: Counter[str] = Counter()
    crowded = 0
    for node in nodes:
        name = str(node["metadata"]["name"])
        found, lacking = _obstacles(pod, node, used.get(name, {}))
        reasons.update(found)
        crowded += lacking
        if not found:
            spare = sum(
                _free(node, used.get(name, {}), one)
                for one in _asked(pod)
                if "/" in one
            )
            fitting.append((-spare, name))
    if fitting:
        return min(fitting)[1], ""
    total = len(nodes)
    said = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    help_ = (
        [f"{crowded} No preemption victims found for incoming pod"] if crowded else []
    )
    help_ += [f"{total - crowded} {HOPELESS}"] if total > crowded else []
    none = f"0/{total} nodes are available: "
    return (
        "",
        f"{none}{said}. no new claims to deallocate, preemption: {none}{', '.join(help_)}.",
    )


def _obstacles(
    pod: Object, node: Object, used: Mapping[str, int]
) -> tuple[list[str], bool]:
    """What keeps a pod from a node, and whether it is only room."""
    spec = part(pod, "spec")
    if part(node, "spec").get("unschedulable"):
        return ["node(s) were unschedulable"], False
    if not selects(part(spec, "nodeSelector"), part(part(node, "metadata"), "labels")):
        return ["node(s) didn't match Pod's node affinity/selector"], False
    if untolerated(items(part(node, "spec"), "taints"), items(spec, "tolerations")):
        return ["node(s) had untolerated taint(s)"], False
    short = [
        f"Insufficient {one}"
        for one, asked in _asked(pod).items()
        if asked > _free(node, used, one)
    ]
    return short, bool(short)


def _asked(pod: Object) -> dict[str, int]:
    amounts = pod_amounts(part(pod, "spec"), "requests")
    return {
        "pods": parse(1).nanos,
        **{name: parse(amount).nanos for name, amount in amounts.items()},
    }


def _free(node: Object, used: Mapping[str, int], resource: str) -> int:
    return parse(
        part(part(node, "status"), "allocatable").get(resource)
    ).nanos - used.get(resource, 0)


def _used(pods: Iterable[Object]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for pod in pods:
        name = part(pod, "spec").get("nodeName")
        if name and part(pod, "status").get("phase") not in ENDED:
            room = found.setdefault(str(name), {})
            for resource, amount in _asked(pod).items():
                room[resource] = room.get(resource, 0) + amount
    return found

"""What a scheduler writes into a pod: that it has a node, or why it has none."""

from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import POD
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Obj, Store

NODE = builtin("v1", "Node")
# A pod learns from its node where it is.
TOPOLOGY = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})


def bind(store: Store, pod: Obj, node: str, *, by: str, manager: str) -> None:
    """Give a pod its node, in the name of a scheduler."""
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    status = {
        **pod["status"],
        "conditions": [{**condition, "lastTransitionTime": timestamp()}],
    }
    metadata = pod["metadata"]
    labels = part(part(dict(store.get(NODE, "", node) or {}), "metadata"), "labels")
    where = {key: value for key, value in labels.items() if key in TOPOLOGY}
    if where:
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), **where}}
    # A binding is no change of the pod's own making: its generation stays.
    bound = {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": status,
    }
    store.put(POD, bound)
    said = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
    tell(store, bound, "Scheduled", said, by=by, manager=manager)


def turn_away(
    store: Store,
    pod: Obj,
    why: str,
    *,
    by: str,
    manager: str,
    reason: str = "Unschedulable",
) -> None:
    """Say why a pod has no node; what is said already is not said again."""
    if _said(pod) == why:
        return
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
        "observedGeneration": 1,
        "reason": reason,
        "message": why,
    }
    write_status(store, POD, pod, {**pod["status"], "conditions": [condition]}, manager)
    tell(store, pod, "FailedScheduling", why, by=by, manager=manager, warning=True)


def _said(pod: Obj) -> str:
    conditions = items(part(dict(pod), "status"), "conditions")
    return next(
        (
            str(one.get("message") or "")
            for one in conditions
            if one["type"] == "PodScheduled"
        ),
        "",
    )

"""Kueue's webhook for plain pods: those that name a queue and have no controller are born behind a gate. Pure."""

from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.job_webhook import queue_of
from sandbox.kubernetes.kinds import KUEUE_GROUP
from sandbox.kubernetes.store import Obj

GATE = f"{KUEUE_GROUP}/admission"
# Label and finalizer alike.
MANAGED = f"{KUEUE_GROUP}/managed"
Object = dict[str, Any]


def born(pod: Object, namespace: str) -> Object:
    """A new pod as the webhook lets it in: gated, marked, and held by a finalizer where it stands in a queue."""
    metadata = part(pod, "metadata")
    placed = {"metadata": {**metadata, "namespace": namespace}}
    if any(
        one.get("controller") for one in items(metadata, "ownerReferences")
    ) or not queue_of(placed):
        return pod
    marked = {
        **metadata,
        "labels": {**part(metadata, "labels"), MANAGED: "true"},
        "finalizers": [*dict.fromkeys([*(metadata.get("finalizers") or ()), MANAGED])],
    }
    gates = [
        *(one for one in items(pod["spec"], "schedulingGates") if one["name"] != GATE),
        {"name": GATE},
    ]
    held = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }
    status = {**part(pod, "status"), "conditions": [held]}
    return {
        **pod,
        "metadata": marked,
        "spec": {**pod["spec"], "schedulingGates": gates},
        "status": status,
    }


def is_managed(pod: Obj) -> bool:
    """Whether Kueue looks after a pod by itself, and not after what made it."""
    return bool((pod["metadata"].get("labels") or {}).get(MANAGED) == "true")


def is_held(pod: Obj) -> bool:
    """Whether a pod waits for its quota."""
    return any(
        one.get("name") == GATE for one in pod["spec"].get("schedulingGates") or ()
    )

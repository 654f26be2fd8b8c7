"""The pods of a queued job: as its Workload counts them, as they are sent to their nodes, and as they were. Pure."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sandbox.kubernetes import limitrange
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.kinds import KUEUE_GROUP
from sandbox.kubernetes.store import Obj
from sandbox.kubernetes.topology import ANNOTATIONS, GATE, request_of

JOB_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid")
OURS = f"{KUEUE_GROUP}/"
Object = dict[str, Any]


class Pods(NamedTuple):
    """So many pods of one template that a job starts; `levels` is how a topology tells them apart."""

    name: str
    number: int
    template: Object
    levels: Mapping[str, Any]


def count_of(spec: Object) -> int:
    """How many pods of a Job run beside each other."""
    count = int(spec.get("parallelism", 1))
    return (
        count
        if spec.get("completions") is None
        else min(count, int(spec["completions"]))
    )


def pod_set(pods: Pods, ranges: Sequence[Object]) -> Object:
    """The pod set of a Workload, its requests filled in from limits and LimitRanges."""
    template = copy.deepcopy(dict(pods.template))
    metadata = part(template, "metadata")
    if "labels" in metadata:
        metadata["labels"] = {
            k: v for k, v in metadata["labels"].items() if k not in JOB_LABELS
        }
    pod: Object = {"spec": template["spec"]}
    limitrange.fill_in(pod, ranges)
    for container in [
        *items(pod["spec"], "containers"),
        *items(pod["spec"], "initContainers"),
    ]:
        resources = container.setdefault("resources", {})
        if part(resources, "limits"):
            resources["requests"] = {
                **part(resources, "limits"),
                **part(resources, "requests"),
            }
    request = {
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
        **request_of(template),
        **pods.levels,
    }
    whole = {"metadata": metadata, "spec": pod["spec"]}
    return {
        "count": pods.number,
        "name": pods.name,
        "template": whole,
        "topologyRequest": request,
    }


def injected(
    name: str,
    template: Obj,
    workload: Obj,
    flavors: Iterable[Object],
    *,
    is_placed: bool = False,
) -> Object:
    """The template of a pod set with the node labels and tolerations of its flavors, and where it comes from.

    Pods that a topology places are held back until each is told its node.
    """
    changed = copy.deepcopy(dict(template))
    pod, metadata = changed["spec"], changed.setdefault("metadata", {})
    for flavor in flavors:
        if labels := part(flavor, "nodeLabels"):
            pod["nodeSelector"] = {**part(pod, "nodeSelector"), **labels}
        if extra := items(flavor, "tolerations"):
            known = items(pod, "tolerations")
            pod["tolerations"] = [*known, *(one for one in extra if one not in known)]
    asked = part(metadata, "annotations")
    if is_placed:
        pod["schedulingGates"] = [*items(pod, "schedulingGates"), {"name": GATE}]
        asked = (
            asked if request_of(dict(template)) else {**asked, ANNOTATIONS[-1]: "true"}
        )
    metadata["annotations"] = {
        **asked,
        f"{OURS}workload": workload["metadata"]["name"],
    }
    metadata["labels"] = {
        **part(metadata, "labels"),
        f"{OURS}cluster-queue-name": workload["status"]["admission"]["clusterQueue"],
        f"{OURS}local-queue-name": workload["spec"]["queueName"],
        f"{OURS}podset": name,
    }
    return changed


def restored(template: Obj, asked: Obj) -> Object:
    """A template as it was handed in, which the Workload remembers."""
    changed = copy.deepcopy(dict(template))
    labels = {
        k: v
        for k, v in part(changed["metadata"], "labels").items()
        if not k.startswith(OURS)
    }
    changed["metadata"] = {"labels": labels} if labels else {}
    if annotations := part(part(dict(asked), "metadata"), "annotations"):
        changed["metadata"]["annotations"] = annotations
    for word in ("nodeSelector", "tolerations", "schedulingGates"):
        changed["spec"].pop(word, None)
        if word in asked["spec"]:
            changed["spec"][word] = asked["spec"][word]
    return changed

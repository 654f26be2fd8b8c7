"""Which objects of a cluster are copied, and what of them: what explains work, and no secret. Pure.

Copies of Volcano's objects are in the form of Kueue's (provisioning.desired.kueue_form), so that they are read one way.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from provisioning.desired import kueue_form
from provisioning.desired.kueue_form import VOLCANO_JOB, FlavorOf
from provisioning.desired.spec import VOLCANO
from provisioning.desired.volcano import JOB, POD_GROUP, QUEUE
from workloads.observed import slices_of
from workloads.reading.values import (
    Object,
    gpus_of_pod,
    gpus_of_pods_in,
    items,
    part,
    slices_of_pods_in,
    text,
    whole,
)

Kept = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
KINDS: Mapping[str, tuple[str, str]] = {
    "Workload": (KUEUE, "Workload"),
    "ClusterQueue": (KUEUE, "ClusterQueue"),
    "LocalQueue": (KUEUE, "LocalQueue"),
    "Job": ("batch/v1", "Job"),
    "Pod": ("v1", "Pod"),
    "Event": ("v1", "Event"),
    "Node": ("v1", "Node"),
}
# By what the copies are called; its own jobs are called otherwise than those of Kubernetes.
WITH_VOLCANO: Mapping[str, tuple[str, str]] = {
    "Workload": POD_GROUP,
    "ClusterQueue": QUEUE,
    VOLCANO_JOB: JOB,
    "Job": ("batch/v1", "Job"),
    "Pod": ("v1", "Pod"),
    "Event": ("v1", "Event"),
    "Node": ("v1", "Node"),
}
# The kinds of which a copy is a job.
JOBS = frozenset({"Job", VOLCANO_JOB})
# Of the cluster as a whole: everybody's work depends on them.
SHARED = frozenset({"ClusterQueue", "Node"})
_MARKS = ("kueue.x-k8s.io/", "quartermaster.io/", "scheduling.k8s.io/group-name")
_META = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
)
# Without the time at which a node last said that nothing has changed.
_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")
_EVENT = (
    "reason",
    "message",
    "note",
    "type",
    "series",
    "lastTimestamp",
    "firstTimestamp",
    "eventTime",
    "deprecatedLastTimestamp",
)


def kinds_of(queueing: str) -> Mapping[str, tuple[str, str]]:
    """What is copied of a cluster, by the kind of its copies."""
    return WITH_VOLCANO if queueing == VOLCANO else KINDS


def in_form(found: Object, flavor_of: FlavorOf) -> Object:
    """An object as it is copied: what is Volcano's in the form of Kueue's, anything else as it is."""
    ref = text(found, "apiVersion"), text(found, "kind")
    if ref == POD_GROUP:
        return kueue_form.workload_of(found, flavor_of)
    if ref == QUEUE:
        return kueue_form.cluster_queue_of(found, flavor_of)
    return kueue_form.job_of(found) if ref == JOB else found


def is_kept(found: Object, namespaces: Collection[str]) -> bool:
    """Whether an object is copied: all of teams' namespaces, what the cluster shares, and others' pods with GPUs."""
    kind = text(found, "kind")
    if kind in SHARED or text(part(found, "metadata"), "namespace") in namespaces:
        return True
    # They take room on nodes.
    return kind == "Pod" and gpus_of_pod(part(found, "spec")) > 0


def copy_of(found: Object) -> Kept:
    """What is kept of an object: field by field, so that a new field of Kubernetes is not kept by itself."""
    body = _BODIES[text(found, "kind")](found)
    return {
        "kind": text(found, "kind"),
        "metadata": _metadata(part(found, "metadata")),
        **body,
    }


def _metadata(meta: Object) -> Kept:
    annotations = {
        key: value
        for key, value in part(meta, "annotations").items()
        if str(key).startswith(_MARKS)
    }
    owners = (
        {"ownerReferences": kueue_form.owners(meta)}
        if meta.get("ownerReferences")
        else {}
    )
    return (
        _only(meta, *_META)
        | owners
        | ({"annotations": annotations} if annotations else {})
    )


def _only(found: Object, *names: str) -> Kept:
    return {name: found[name] for name in names if name in found}


def _pod_spec(spec: Object) -> Kept:
    kept = _only(spec, "nodeName", "schedulingGates", "priorityClassName")
    for name in ("containers", "initContainers"):
        if spec.get(name):
            kept[name] = [
                _only(one, "name", "image", "resources") for one in items(spec, name)
            ]
    return kept


def _pod(found: Object) -> Kept:
    status = part(found, "status")
    kept = _only(status, "phase", "conditions", "reason", "message")
    for name in ("containerStatuses", "initContainerStatuses"):
        if status.get(name):
            wanted = ("name", "image", "state", "lastState", "ready", "restartCount")
            kept[name] = [_only(one, *wanted) for one in items(status, name)]
    return {"spec": _pod_spec(part(found, "spec")), "status": kept}


def _job(found: Object) -> Kept:
    spec = part(found, "spec")
    names = ("parallelism", "completions", "completionMode", "activeDeadlineSeconds")
    kept = _only(spec, "suspend", *names)
    return {"spec": {**kept, **_counted(spec)}, "status": dict(part(found, "status"))}


def _volcano_job(found: Object) -> Kept:
    """Of its tasks, of which there may be several, all GPUs together: as if one pod had them."""
    spec = part(found, "spec")
    counts = [
        (whole(one.get("replicas")), _counted(one)) for one in items(spec, "tasks")
    ]
    gpus = sum(count * one["gpus"] for count, one in counts)
    slices = dict(
        slices_of(
            (count, tuple(one.get("slices", {}).items())) for count, one in counts
        )
    )
    kept = _only(spec, "queue", "priorityClassName")
    return {
        "spec": {
            **kept,
            "parallelism": 1,
            "gpus": gpus,
            **({"slices": slices} if slices else {}),
        },
        "status": dict(part(found, "status")),
    }


def _counted(found: Object) -> Kept:
    """The GPUs of each pod of a template, and which of them are slices: counted here once, and not at each view."""
    slices = dict(slices_of_pods_in(found))
    return {"gpus": gpus_of_pods_in(found), **({"slices": slices} if slices else {})}


def _workload(found: Object) -> Kept:
    spec = part(found, "spec")
    kept = _only(
        spec, "active", "queueName", "priority", "priorityClassName", "priorityClassRef"
    )
    kept["podSets"] = [
        {**_only(one, "name", "count"), **_counted(one)}
        for one in items(spec, "podSets")
    ]
    return {"spec": kept, "status": dict(part(found, "status"))}


def _whole(found: Object) -> Kept:
    return {"spec": dict(part(found, "spec")), "status": dict(part(found, "status"))}


def _event(found: Object) -> Kept:
    about = part(found, "involvedObject") or part(found, "regarding")
    return {
        "involvedObject": _only(about, "kind", "name", "uid"),
        **_only(found, *_EVENT),
    }


def _node(found: Object) -> Kept:
    status = part(found, "status")
    return {
        "spec": _only(part(found, "spec"), "unschedulable", "taints"),
        "status": {
            **_only(status, "allocatable"),
            "conditions": [
                _only(one, *_CONDITION) for one in items(status, "conditions")
            ],
        },
    }


_BODIES: Mapping[str, Callable[[Object], Kept]] = {
    "Workload": _workload,
    "ClusterQueue": _whole,
    "LocalQueue": _whole,
    "Job": _job,
    VOLCANO_JOB: _volcano_job,
    "Pod": _pod,
    "Event": _event,
    "Node": _node,
}

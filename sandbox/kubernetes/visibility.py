"""Kueue's visibility API: who stands in line, and where; an API of its own behind the API server's address."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sandbox.kubernetes import status
from sandbox.kubernetes.admitting import CLUSTER_QUEUE, GATED_BY, LOCAL_QUEUE, in_order
from sandbox.kubernetes.calls import (
    Answer,
    Call,
    Target,
    json_answer,
    page_not_found,
    text_answer,
)
from sandbox.kubernetes.capacity import queue_of
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import holds
from sandbox.kubernetes.evicting import WORKLOAD, is_given_up
from sandbox.kubernetes.kueue_webhooks import is_there
from sandbox.kubernetes.log_options import whole_number
from sandbox.kubernetes.preempting import priority
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Obj, Store

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster

GROUP, VERSIONS = "visibility.kueue.x-k8s.io", ("v1beta2", "v1beta1")
_PART, _MOST = "pendingworkloads", 1000
_OWNER = ("apiVersion", "kind", "name", "uid")


def resources(version: str) -> dict[str, Any]:
    """What discovery lists of a version: queues that cannot be read themselves, only their lines."""
    listed = []
    for name, namespaced in (("clusterqueue", False), ("localqueue", True)):
        common = {"namespaced": namespaced, "kind": "PendingWorkloadsSummary"}
        listed.append({"name": f"{name}s", "singularName": name, **common, "verbs": []})
        listed.append(
            {"name": f"{name}s/{_PART}", "singularName": "", **common, "verbs": ["get"]}
        )
    head = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{version}",
    }
    return {**head, "resources": listed}


def answer(cluster: "Cluster", call: Call, at: Target) -> Answer:
    """The line of a queue; raises Refusal for a queue or a path that is not there."""
    if not cluster.has_visibility or at.version not in VERSIONS:
        return page_not_found()
    if not is_there(cluster.store):
        return text_answer(503, "service unavailable\n")
    scoped = {"clusterqueues": False, "localqueues": True}.get(at.plural)
    if scoped is None or scoped != bool(at.namespace) or at.subresource != _PART:
        raise status.no_such_resource()
    if call.method not in {"GET", "HEAD"}:
        raise status.method_not_allowed()
    offset, limit = (
        whole_number(call.query.get(name, "")) or 0 for name in ("offset", "limit")
    )
    rows = list(_rows(cluster.store, at))[max(0, offset) :][
        : limit if limit > 0 else _MOST
    ]
    head = {
        "kind": "PendingWorkloadsSummary",
        "apiVersion": f"{GROUP}/{at.version}",
        "metadata": {},
    }
    return json_answer(200, {**head, "items": rows})


def _rows(store: Store, at: Target) -> Iterator[dict[str, Any]]:
    """The line of a ClusterQueue, or those of it that came through one LocalQueue."""
    kind, singular = (
        (LOCAL_QUEUE, "localqueue") if at.namespace else (CLUSTER_QUEUE, "clusterqueue")
    )
    queue = store.get(kind, at.namespace, at.name)
    if queue is None:
        details = {"name": at.name, "group": GROUP, "kind": singular}
        raise Refusal(
            404, f'{singular}.{GROUP} "{at.name}" not found', "NotFound", details
        )
    name = str(queue["spec"]["clusterQueue"]) if at.namespace else at.name
    seen: Counter[tuple[str, str]] = Counter()
    for place, workload in enumerate(line_of(store, name)):
        local = (
            workload["metadata"]["namespace"],
            str(workload["spec"].get("queueName") or ""),
        )
        if not at.namespace or local == (at.namespace, at.name):
            yield _row(workload, place, seen[local])
        seen[local] += 1


def line_of(store: Store, cluster_queue: str) -> list[Obj]:
    """Who stands in line at a ClusterQueue, in its order; it says nothing about who can start."""
    entries = store.table(WORKLOAD).entries.values()
    standing = [
        one.obj
        for one in entries
        if _stands(one.obj) and _queue_for(store, one.obj) == cluster_queue
    ]
    return in_order(standing)


def _stands(workload: Obj) -> bool:
    gated = GATED_BY in part(part(dict(workload), "metadata"), "annotations")
    active = part(dict(workload), "spec").get(
        "active"
    ) is not False and not is_given_up(workload)
    return (
        active
        and not gated
        and not queue_of(dict(workload))
        and not holds(workload, "Finished")
    )


def _queue_for(store: Store, workload: Obj) -> str:
    name = str(workload["spec"].get("queueName") or "")
    local = store.get(LOCAL_QUEUE, workload["metadata"]["namespace"], name)
    return str(local["spec"]["clusterQueue"]) if local is not None else ""


def _row(workload: Obj, place: int, local_place: int) -> dict[str, Any]:
    metadata: Mapping[str, Any] = workload["metadata"]
    owners = [
        {name: one[name] for name in _OWNER}
        for one in metadata.get("ownerReferences") or ()
    ]
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "creationTimestamp": metadata["creationTimestamp"],
            **({"ownerReferences": owners} if owners else {}),
        },
        "priority": priority(dict(workload)),
        "localQueueName": str(workload["spec"].get("queueName") or ""),
        "positionInClusterQueue": place,
        "positionInLocalQueue": local_place,
    }

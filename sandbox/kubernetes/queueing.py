"""Kueue's controllers as far as queues go: who is active, who may be deleted."""

from collections.abc import Callable
from typing import Any

from sandbox.kubernetes import kueue
from sandbox.kubernetes.capacity import queue_of
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import KUEUE_GROUP, Kind, builtin
from sandbox.kubernetes.statuses import write_object, write_status
from sandbox.kubernetes.store import Change, Obj, Store

MANAGER = "kueue"
_VERSION = f"{KUEUE_GROUP}/v1beta2"
CLUSTER_QUEUE = builtin(_VERSION, "ClusterQueue")
LOCAL_QUEUE = builtin(_VERSION, "LocalQueue")
COHORT = builtin(_VERSION, "Cohort")
FLAVOR = builtin(_VERSION, "ResourceFlavor")
TOPOLOGY = builtin(_VERSION, "Topology")
CHECK = builtin(_VERSION, "AdmissionCheck")
WORKLOAD = builtin(_VERSION, "Workload")
IN_USE = "kueue.x-k8s.io/resource-in-use"
Release = Callable[[Kind, Obj, set[str]], None]


class Queues:
    """Keeps the status of ClusterQueues, LocalQueues and Cohorts, and lets go of what nothing uses."""

    def __init__(self, store: Store, release: Release) -> None:
        self._store = store
        self._release = release

    def react(self, change: Change) -> None:
        """Look at one change of a Kueue object."""
        match change.resource[1]:
            case "clusterqueues":
                self._cluster_queue(change.key[1])
            case "localqueues" if not change.removed:
                self._local_queue(*change.key)
            case "cohorts" if not change.removed:
                cohort = self._store.get(COHORT, "", change.key[1])
                if cohort is not None and "status" not in cohort:
                    write_status(self._store, COHORT, cohort, {}, MANAGER)
            case "resourceflavors" | "admissionchecks":
                self._shared(change)
            case "topologies":
                self._topology(change)
            case "workloads":
                self._workload(change)

    def _shared(self, change: Change) -> None:
        if (
            change.before is None
            or change.removed
            or change.resource[1] == "admissionchecks"
            or _topology_of(change.before.obj) != _topology_of(change.after.obj)
        ):
            self._everything()
        if change.resource[1] == "resourceflavors" and not change.removed:
            self._let_flavor_go(change.key[1])

    def _topology(self, change: Change) -> None:
        """Keep a topology while a flavor uses it."""
        if change.before is None or change.removed:
            self._everything()
        obj, metadata = change.after.obj, change.after.obj["metadata"]
        held = metadata.get("finalizers") or []
        if change.removed:
            return
        if "deletionTimestamp" not in metadata and IN_USE not in held:
            found = {**obj, "metadata": {**metadata, "finalizers": [*held, IN_USE]}}
            write_object(self._store, TOPOLOGY, obj, found, MANAGER)
        elif (
            "deletionTimestamp" in metadata
            and IN_USE in held
            and not self._has_flavor(metadata["name"])
        ):
            self._release(TOPOLOGY, obj, {IN_USE})

    def _has_flavor(self, topology: str) -> bool:
        return any(
            (one.get("spec") or {}).get("topologyName") == topology
            for one in self._store.objects(FLAVOR)
        )

    def _workload(self, change: Change) -> None:
        """Count again where a Workload stands, stood and holds or held quota."""
        names = set[str]()
        for entry in (change.before, change.after):
            if entry is None:
                continue
            obj = dict(entry.obj)
            name = str((obj.get("spec") or {}).get("queueName") or "")
            local = self._store.get(LOCAL_QUEUE, change.key[0], name)
            names.add(queue_of(obj))
            if local is not None:
                names.add(str(local["spec"]["clusterQueue"]))
                self._local_queue(change.key[0], name)
        for name in sorted(names - {""}):
            self._cluster_queue(name)

    def _everything(self) -> None:
        for obj in list(self._store.objects(CLUSTER_QUEUE)):
            self._cluster_queue(obj["metadata"]["name"])

    def _cluster_queue(self, name: str) -> None:
        obj = self._store.get(CLUSTER_QUEUE, "", name)
        queues = [
            q
            for q in self._store.objects(LOCAL_QUEUE)
            if (q.get("spec") or {}).get("clusterQueue") == name
        ]
        if obj is not None:
            before = _is_active(obj)
            status = kueue.cluster_queue_status(
                dict(obj),
                self._all(FLAVOR),
                self._all(CHECK),
                self._all(WORKLOAD),
                local_queues=[dict(queue) for queue in queues],
                topologies={
                    one["metadata"]["name"] for one in self._store.objects(TOPOLOGY)
                },
                now=timestamp(),
            )
            write_status(self._store, CLUSTER_QUEUE, obj, status, MANAGER)
            self._let_queue_go(name)
            if before == _is_active(self._store.get(CLUSTER_QUEUE, "", name) or {}):
                queues = [queue for queue in queues if _stale(queue, obj)]
        for queue in queues:
            self._local_queue(queue["metadata"]["namespace"], queue["metadata"]["name"])
        for flavor in list(self._store.objects(FLAVOR)):
            if "deletionTimestamp" in flavor["metadata"]:
                self._let_flavor_go(flavor["metadata"]["name"])

    def _local_queue(self, namespace: str, name: str) -> None:
        obj = self._store.get(LOCAL_QUEUE, namespace, name)
        if obj is None:
            return
        over = self._store.get(
            CLUSTER_QUEUE, "", (obj.get("spec") or {}).get("clusterQueue", "")
        )
        workloads = self._all(WORKLOAD)
        status = kueue.local_queue_status(
            dict(obj), dict(over) if over else None, workloads, now=timestamp()
        )
        write_status(self._store, LOCAL_QUEUE, obj, status, MANAGER)

    def _all(self, kind: Kind) -> list[dict[str, Any]]:
        return [dict(obj) for obj in self._store.objects(kind)]

    def _let_queue_go(self, name: str) -> None:
        obj = self._store.get(CLUSTER_QUEUE, "", name)
        if obj is None or "deletionTimestamp" not in obj["metadata"]:
            return
        if not obj["status"].get("reservingWorkloads") and IN_USE in (
            obj["metadata"].get("finalizers") or ()
        ):
            self._release(CLUSTER_QUEUE, obj, {IN_USE})

    def _let_flavor_go(self, name: str) -> None:
        obj = self._store.get(FLAVOR, "", name)
        if obj is None or "deletionTimestamp" not in obj["metadata"]:
            return
        if IN_USE in (obj["metadata"].get("finalizers") or ()) and not self._is_used(
            name
        ):
            self._release(FLAVOR, obj, {IN_USE})

    def _is_used(self, flavor: str) -> bool:
        groups = (
            g
            for q in self._store.objects(CLUSTER_QUEUE)
            for g in q["spec"].get("resourceGroups") or ()
        )
        return any(
            one.get("name") == flavor
            for group in groups
            for one in group.get("flavors") or ()
        )


def _topology_of(flavor: Obj) -> str:
    return str((flavor.get("spec") or {}).get("topologyName") or "")


def _is_active(cluster_queue: Obj) -> bool:
    return kueue.has_condition(dict(cluster_queue), "Active")


def _stale(local_queue: Obj, cluster_queue: Obj) -> bool:
    """Whether a LocalQueue was not looked at yet, or lists other flavors than its ClusterQueue now has."""
    listed = [
        one["name"]
        for one in (local_queue.get("status") or {}).get("flavorsUsage") or ()
    ]
    groups = (cluster_queue.get("spec") or {}).get("resourceGroups") or ()
    return listed != [
        one["name"] for group in groups for one in group.get("flavors") or ()
    ]

"""The controllers that keep a cluster in order, run in the process after each write until nothing is left to do."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sandbox.kubernetes import kueue_webhooks
from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.admitting import Scheduler
from sandbox.kubernetes.autoscaling import Autoscaler, NodePool
from sandbox.kubernetes.controllers_pods import POD, TRACKING
from sandbox.kubernetes.deletes import Deletes
from sandbox.kubernetes.evicting import WORKLOAD
from sandbox.kubernetes.executing import Executions
from sandbox.kubernetes.interrupting import Interruptions
from sandbox.kubernetes.jobs import Jobs
from sandbox.kubernetes.jobsets import JobSets
from sandbox.kubernetes.kinds import (
    KINDS,
    KUEUE,
    KUEUE_GROUP,
    VOLCANO,
    Kind,
    builtin,
    by_kind,
)
from sandbox.kubernetes.kueue_jobs import QueuedJobs
from sandbox.kubernetes.kueue_plain_pods import QueuedPods
from sandbox.kubernetes.nodes import Nodes
from sandbox.kubernetes.pod_webhook import MANAGED
from sandbox.kubernetes.queueing import IN_USE, Queues
from sandbox.kubernetes.quotas import Quotas
from sandbox.kubernetes.spans import Spans
from sandbox.kubernetes.statuses import write_new
from sandbox.kubernetes.store import Change, Obj, Store
from sandbox.kubernetes.terminating import Terminator
from sandbox.kubernetes.ungating import Ungater
from sandbox.kubernetes.volcano import Volcano

MANAGER = "kube-controller-manager"
TERMINATION_DELAY = 0.05
# Looking for dependents costs a walk over everything; only these kinds ever have any here.
_OWNERS = frozenset(
    {
        *(("Job", "batch/v1"), ("Pod", "v1"), ("ConfigMap", "v1")),
        *(
            ("JobSet", "jobset.x-k8s.io/v1alpha2"),
            ("Workload", "kueue.x-k8s.io/v1beta2"),
        ),
        ("Job", "batch.volcano.sh/v1alpha1"),
    }
)
_CA_NOTE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


# What the controllers make in every namespace.
_FURNITURE = frozenset({"default", "kube-root-ca.crt"})

NAMESPACE = builtin("v1", "Namespace")
SERVICE_ACCOUNT = builtin("v1", "ServiceAccount")
CONFIG_MAP = builtin("v1", "ConfigMap")
CLAIM = builtin("v1", "PersistentVolumeClaim")


class Controllers:
    """All controllers of one store; ``settle()`` runs those that are due."""

    def __init__(
        self,
        store: Store,
        deletes: Deletes,
        admission: Admission,
        ca: str,
        pools: Sequence[NodePool] = (),
        *,
        queueing: str = KUEUE,
    ) -> None:
        self.now: Callable[[], float] = time.time
        self._store = store
        self._deletes = deletes
        self._ca = ca
        self._changes: list[Change] = []
        self._terminator = Terminator(store, deletes)
        self._quotas = Quotas(store)
        self._queues = Queues(store, self._drop_finalizers)
        self.spans = Spans(self._time)
        self._nodes = Nodes(store, self._time, self.spans)
        self.autoscaler: Autoscaler = Autoscaler(store, self._time, pools)
        self._scheduler = Scheduler(store)
        self._ungater = Ungater(store)
        self._jobs = Jobs(
            store, admission, self._time, release=self._untrack, remove=self._remove_pod
        )
        self.jobsets: JobSets = JobSets(
            store, admission, self._time, self._remove_with_all
        )
        self._queued = QueuedJobs(store, self._free)
        self._queued_pods = QueuedPods(store, self._unqueue, self._remove_pod)
        self.interruptions: Interruptions = Interruptions(
            store, self._time, self._remove_pod
        )
        self._executions = Executions(store, self._time)
        self._volcano = Volcano(
            store, admission, self._time, self._remove, self._remove_with_all
        )
        self._has_volcano = queueing == VOLCANO
        queues = (
            (self._volcano,)
            if self._has_volcano
            else (self._queued, self._queued_pods, self._scheduler, self._ungater)
        )
        self._runners = (
            *(self.jobsets, self._jobs, *queues),
            *(self._nodes, self.autoscaler, self.interruptions, self._executions),
        )
        # What does nothing while Kueue's controller is away; it takes up then what it has missed.
        self._of_kueue = () if self._has_volcano else queues
        self._timer: (
            tuple[asyncio.AbstractEventLoop, float, asyncio.TimerHandle] | None
        ) = None
        store.listen(self._changes.append)

    def _time(self) -> float:
        return self.now()

    @property
    def next_node_due(self) -> float | None:
        """When the autoscaler adds or deletes nodes next."""
        return self.autoscaler.next_due

    def settle(self) -> None:
        """Work through what changed; what takes its time, as in a cluster, follows by itself."""
        while True:
            while self._changes:
                changes, self._changes[:] = self._changes[:], []
                for change in changes:
                    self._react(change)
            away = () if kueue_webhooks.is_there(self._store) else self._of_kueue
            if not any(one.run() for one in self._runners if one not in away):
                break
        self._schedule()

    def _schedule(self) -> None:
        """Come again for namespaces that terminate, for pods that start or end, and for nodes that come or go."""
        waits = [TERMINATION_DELAY] if self._terminator.pending else []
        owners = (
            self._jobs,
            self.jobsets,
            self.interruptions,
            self._executions,
            self._volcano,
        )
        dues = [
            self._nodes.next_due,
            self.next_node_due,
            *(one.next_due for one in owners),
        ]
        waits += [max(0.0, due - self.now()) for due in dues if due is not None]
        if not waits:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        due = loop.time() + min(waits)
        if self._timer is not None:
            known, when, handle = self._timer
            if known is loop and when <= due:
                return
            handle.cancel()
        self._timer = loop, due, loop.call_later(min(waits), self.terminate)

    def terminate(self) -> None:
        """Run what was to come a moment later now."""
        self._timer = None
        self._terminator.run()
        self.settle()

    def resume(self) -> None:
        """Take up what was going on in a store that was filled from a snapshot."""
        self._nodes.resume()
        self.jobsets.resume()
        self.autoscaler.resume()
        self._scheduler.wake()
        self._executions.resume()
        self._volcano.resume()

    def _react(self, change: Change) -> None:
        obj = change.after.obj
        match change.resource:
            case ("", "namespaces"):
                self._namespace(change, obj)
            case ("", "persistentvolumeclaims") if not change.removed:
                self._release_claim(obj)
            case ("", "serviceaccounts" | "configmaps") if (
                change.removed and change.key[1] in _FURNITURE
            ):
                self._furnish_again(change.key[0])
        self._quotas.react(change)
        if change.resource[0] == KUEUE_GROUP:
            self._queues.react(change)
            self._scheduler.react(change)
            self._executions.react(change)
        elif change.resource in (("", "nodes"), ("", "pods")):
            self._scheduler.react(change)
        if self._has_volcano:
            self._volcano.react(change)
        else:
            self._ungater.react(change)
            self._queued.react(change)
            self._queued_pods.react(change)
        self.jobsets.react(change)
        self._jobs.react(change)
        self._nodes.react(change)
        self.autoscaler.react(change)
        if change.removed:
            self._collect(obj)
            self._go_on_with_owners(obj)
        elif "deletionTimestamp" in obj["metadata"]:
            self._finalize(change, obj)
        if change.key[0]:
            self._terminator.wake(change.key[0])

    def _namespace(self, change: Change, obj: Obj) -> None:
        if change.removed:
            return
        if "deletionTimestamp" in obj["metadata"]:
            self._terminator.wake(change.key[1])
        elif change.before is None:
            self._furnish(change.key[1])

    def _furnish(self, namespace: str) -> None:
        self.born(SERVICE_ACCOUNT, namespace, "default", {})
        metadata = {"annotations": {"kubernetes.io/description": _CA_NOTE}}
        self.born(
            CONFIG_MAP,
            namespace,
            "kube-root-ca.crt",
            {"metadata": metadata, "data": {"ca.crt": self._ca}},
        )

    def _furnish_again(self, namespace: str) -> None:
        """What every namespace has comes back when somebody deletes it, but for a namespace that goes."""
        found = self._store.get(NAMESPACE, "", namespace)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            self._furnish(namespace)

    def born(
        self, kind: Kind, namespace: str, name: str, obj: Mapping[str, Any]
    ) -> None:
        """Create an object as the controller manager would."""
        if self._store.get(kind, namespace, name) is None:
            metadata = {
                **(obj.get("metadata") or {}),
                "name": name,
                "namespace": namespace,
            }
            write_new(self._store, kind, {**obj, "metadata": metadata}, MANAGER)

    def _release_claim(self, obj: Obj) -> None:
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if (
            "deletionTimestamp" not in metadata
            or "kubernetes.io/pvc-protection" not in finalizers
        ):
            return
        if not self._in_use(metadata["namespace"], metadata["name"]):
            self._drop_finalizers(CLAIM, obj, {"kubernetes.io/pvc-protection"})

    def _in_use(self, namespace: str, claim: str) -> bool:
        for pod in self._store.objects(POD, namespace):
            for volume in pod["spec"].get("volumes") or ():
                if (volume.get("persistentVolumeClaim") or {}).get(
                    "claimName"
                ) == claim:
                    return True
        return False

    def _drop_finalizers(self, kind: Kind, obj: Obj, dropped: set[str]) -> None:
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if self._store.get(kind, namespace, name) is None:
            return
        rest = [
            name for name in metadata.get("finalizers") or [] if name not in dropped
        ]
        changed = {key: value for key, value in metadata.items() if key != "finalizers"}
        if rest:
            changed["finalizers"] = rest
        self._store.put(kind, {**obj, "metadata": changed})
        if not rest:
            self._store.remove(kind, namespace, name)

    def _dependents(self, owner: Obj) -> list[tuple[Kind, Obj]]:
        uid, namespace = owner["metadata"]["uid"], owner["metadata"].get("namespace")
        found = []
        for kind in KINDS:
            for obj in self._store.objects(kind, namespace):
                owners = obj["metadata"].get("ownerReferences")
                if owners and any(reference["uid"] == uid for reference in owners):
                    found.append((kind, obj))
        return found

    def _collect(self, owner: Obj) -> None:
        if (owner["kind"], owner["apiVersion"]) not in _OWNERS:
            return
        for kind, obj in self._dependents(owner):
            metadata = obj["metadata"]
            entry = self._store.entry(
                kind, metadata.get("namespace", ""), metadata["name"]
            )
            if entry:
                self._deletes.remove(kind, entry, "Background")

    def _finalize(self, change: Change, obj: Obj) -> None:
        finalizers = set(obj["metadata"].get("finalizers") or ())
        kind = next(
            kind for kind in KINDS if (kind.group, kind.plural) == change.resource
        )
        if "orphan" in finalizers:
            for dependent, child in self._dependents(obj):
                self._disown(dependent, child, obj["metadata"]["uid"])
            self._drop_finalizers(kind, obj, {"orphan"})
        elif "foregroundDeletion" in finalizers:
            self._collect(obj)
            if not self._dependents(obj):
                self._drop_finalizers(kind, obj, {"foregroundDeletion"})

    def _go_on_with_owners(self, gone: Obj) -> None:
        """An owner that waits for all that it owns may go when the last of it did."""
        for owner in gone["metadata"].get("ownerReferences") or ():
            kind = by_kind(owner["apiVersion"], owner["kind"])
            obj = (
                self._store.get(
                    kind, gone["metadata"].get("namespace", ""), owner["name"]
                )
                if kind
                else None
            )
            if (
                kind is None
                or obj is None
                or "foregroundDeletion" not in (obj["metadata"].get("finalizers") or ())
            ):
                continue
            if not self._dependents(obj):
                self._drop_finalizers(kind, obj, {"foregroundDeletion"})

    def _untrack(self, pod: Obj) -> None:
        """The Job controller is done with a pod."""
        self._let_go(POD, pod, TRACKING)

    def _unqueue(self, pod: Obj) -> None:
        """Kueue is done with a pod."""
        self._let_go(POD, pod, MANAGED)

    def _free(self, workload: Obj) -> None:
        """Kueue is done with a Workload."""
        self._let_go(WORKLOAD, workload, IN_USE)

    def _let_go(self, kind: Kind, obj: Obj, finalizer: str) -> None:
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            self._drop_finalizers(kind, obj, {finalizer})
            return
        live = self._store.get(kind, metadata["namespace"], metadata["name"])
        if live is not None:
            rest = {
                key: value
                for key, value in live["metadata"].items()
                if key != "finalizers"
            }
            if kept := [
                one
                for one in live["metadata"].get("finalizers") or ()
                if one != finalizer
            ]:
                rest["finalizers"] = kept
            self._store.put(kind, {**live, "metadata": rest})

    def _remove_pod(self, pod: Obj) -> None:
        entry = self._store.entry(
            POD, pod["metadata"]["namespace"], pod["metadata"]["name"]
        )
        if entry is not None:
            self._deletes.remove(POD, entry)

    def _remove(self, kind: Kind, obj: Obj) -> None:
        """Delete an object; what it owns follows."""
        metadata = obj["metadata"]
        entry = self._store.entry(kind, metadata.get("namespace", ""), metadata["name"])
        if entry is not None:
            self._deletes.remove(kind, entry, "Background")

    def _remove_with_all(self, kind: Kind, obj: Obj) -> None:
        """Delete an object, which goes once all that it owns has gone."""
        entry = self._store.entry(
            kind, obj["metadata"]["namespace"], obj["metadata"]["name"]
        )
        if entry is not None:
            self._deletes.remove(kind, entry, "Foreground")

    def _disown(self, kind: Kind, obj: Obj, uid: str) -> None:
        metadata = dict(obj["metadata"])
        rest = [
            owner for owner in metadata.pop("ownerReferences") if owner["uid"] != uid
        ]
        if rest:
            metadata["ownerReferences"] = rest
        self._store.put(kind, {**obj, "metadata": metadata})

"""Kueue's integration of plain pods: each waits in line behind its gate, and is deleted when it has to stop.

The end of a pod frees its quota; one that is deleted takes its Workload with it.
"""

from sandbox.kubernetes import kueue_workloads
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.conditions import found, holds
from sandbox.kubernetes.controllers_pods import POD, is_over, is_ready, phase_of
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.evicting import MANAGER
from sandbox.kubernetes.jobs import Release, Remove
from sandbox.kubernetes.kueue_pods import Pods
from sandbox.kubernetes.pod_webhook import GATE, MANAGED, is_held, is_managed
from sandbox.kubernetes.statuses import write_object, write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store

CONTROLLER = "pod-kueue-controller"


class QueuedPods:
    """Keeps plain pods and their Workloads in step; `run` works through those that changed."""

    def __init__(self, store: Store, release: Release, remove: Remove) -> None:
        self._store = store
        self._release = release
        self._remove = remove
        self._due: dict[Key, None] = {}

    def react(self, change: Change) -> None:
        """Remember the pod of what changed."""
        match change.resource[1]:
            case "pods" if not change.removed and is_managed(change.after.obj):
                self._due[change.key] = None
            case "workloads":
                owners = change.after.obj["metadata"].get("ownerReferences") or ()
                self._due |= {
                    (change.key[0], str(one["name"])): None
                    for one in owners
                    if one["kind"] == POD.kind
                }
            case "workloadpriorityclasses":
                self._due |= {
                    (pod["metadata"]["namespace"], pod["metadata"]["name"]): None
                    for pod in self._store.objects(POD)
                    if is_managed(pod)
                }

    def run(self) -> bool:
        """Work through what changed; True when there was anything."""
        due, self._due = self._due, {}
        for key in due:
            pod = self._store.get(POD, *key)
            if pod is not None and MANAGED in (pod["metadata"].get("finalizers") or ()):
                self._reconcile(pod)
        return bool(due)

    def _reconcile(self, pod: Obj) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            self._release(pod)
            return
        workload = kueue_workloads.workload_of(self._store, pod)
        if workload is None:
            self._enqueue(pod)
        elif is_over(pod):
            self._finish(pod, workload)
        else:
            self._follow(pod, workload)

    def _follow(self, pod: Obj, workload: Obj) -> None:
        """Let a pod that is admitted go on, and stop one that is not any more."""
        kueue_workloads.say_ready(
            self._store, workload, fine=is_ready(pod), failed=False
        )
        if is_held(pod) and holds(workload, "Admitted"):
            self._start(pod, workload)
        elif not is_held(pod) and not holds(workload, "Admitted"):
            message = str(
                found(workload, "Evicted").get("message")
                or "Not admitted by cluster queue"
            )
            self._stop(pod, "WorkloadEvicted", message)

    def _enqueue(self, pod: Obj) -> None:
        """Make the Workload of a pod that waits; one that runs without is stopped, for somebody deleted it."""
        if is_over(pod):
            self._release(pod)
        elif not is_held(pod):
            self._stop(pod, "WorkloadDeleted", "Workload is deleted")
        elif rank := kueue_workloads.rank_of(self._store, pod, [_pods(pod)]):
            name = kueue_workloads.make_workload(
                self._store, POD, pod, [_pods(pod)], rank
            )
            self._tell(
                pod,
                "CreatedWorkload",
                f"Created Workload: {pod['metadata']['namespace']}/{name}",
            )

    def _start(self, pod: Obj, workload: Obj) -> None:
        [changed] = kueue_workloads.started(self._store, [_pods(pod)], workload)
        spec = changed["spec"]
        gates = [one for one in items(spec, "schedulingGates") if one["name"] != GATE]
        spec = {key: value for key, value in spec.items() if key != "schedulingGates"}
        spec |= {"schedulingGates": gates} if gates else {}
        metadata = {**pod["metadata"], **changed["metadata"]}
        write_object(
            self._store, POD, pod, {**pod, "metadata": metadata, "spec": spec}, MANAGER
        )
        self._tell(
            pod,
            "Started",
            f"Admitted by clusterQueue {workload['status']['admission']['clusterQueue']}",
        )

    def _stop(self, pod: Obj, reason: str, message: str) -> None:
        """A pod cannot be halted: it says why it goes, and is deleted."""
        said = {
            "type": "TerminationTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(),
            "reason": reason,
            "message": message,
        }
        status = dict(pod["status"])
        rest = [
            one for one in items(status, "conditions") if one["type"] != said["type"]
        ]
        write_status(
            self._store, POD, pod, {**status, "conditions": [*rest, said]}, MANAGER
        )
        self._tell(pod, "Stopped", message)
        self._remove(pod)

    def _finish(self, pod: Obj, workload: Obj) -> None:
        if not holds(workload, "Finished"):
            reason = "Succeeded" if phase_of(pod) == "Succeeded" else "Failed"
            message = str(part(dict(pod), "status").get("message") or "")
            said = kueue_workloads.finish(self._store, pod, reason, message)
            self._tell(pod, "FinishedWorkload", said)
        self._release(pod)

    def _tell(self, pod: Obj, reason: str, message: str) -> None:
        tell(self._store, pod, reason, message, by=CONTROLLER, manager=MANAGER)


def _pods(pod: Obj) -> Pods:
    """The pod as what it would be made from."""
    metadata = {
        key: pod["metadata"][key]
        for key in ("labels", "annotations")
        if key in pod["metadata"]
    }
    return Pods("main", 1, {"metadata": metadata, "spec": dict(pod["spec"])}, {})

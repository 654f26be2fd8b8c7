"""Volcano's controller of pods that no Volcano job made: each gets a group of its own, or one with its owner's others.

After pkg/controllers/podgroup/pg_controller_handler.go (createNormalPodPGIfNotExist) and GeneratePodgroupName in
staging/src/volcano.sh/apis/pkg/apis/helpers of volcano-sh/volcano 1.15. The group is in the queue that the pod's
annotation names, else in that of the namespace's annotation (the webhook of groups), else in `default`.
"""

from typing import Any

from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.controllers_pods import POD, is_over
from sandbox.kubernetes.creating import create
from sandbox.kubernetes.events import VOLCANO_CONTROLLERS
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.statuses import write_object
from sandbox.kubernetes.store import Change, Key, Obj, Store
from sandbox.kubernetes.volcano_children import quota_usage
from sandbox.kubernetes.volcano_jobs import CONTROLLER
from sandbox.kubernetes.volcano_webhook import GROUP, GROUP_NAME, QUEUE_NAME, SCHEDULER

Object = dict[str, Any]


class VolcanoPods:
    """Gives the pods of one store their groups."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission
        self._due: dict[Key, None] = {}

    def react(self, change: Change) -> None:
        """Remember a pod that is Volcano's and has no group."""
        if (
            change.resource == ("", "pods")
            and not change.removed
            and _is_alone(change.after.obj)
        ):
            self._due[change.key] = None

    def run(self) -> bool:
        """Work through the pods that came; True when there were any."""
        due, self._due = self._due, {}
        for key in due:
            pod = self._store.get(POD, *key)
            if pod is not None and _is_alone(pod):
                self._join(pod)
        return bool(due)

    def _join(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        namespace, name = metadata["namespace"], f"podgroup-{_owner(pod)['uid']}"
        if self._store.get(GROUP, namespace, name) is None:
            try:
                self._make(pod, name)
            except Refusal:
                return
        annotations = {**part(dict(metadata), "annotations"), GROUP_NAME: name}
        changed = {**pod, "metadata": {**metadata, "annotations": annotations}}
        write_object(self._store, POD, pod, changed, VOLCANO_CONTROLLERS)

    def _make(self, pod: Obj, name: str) -> None:
        metadata, spec = pod["metadata"], dict(pod["spec"])
        annotations = part(dict(metadata), "annotations")
        wanted: Object = {"minMember": 1, "minResources": quota_usage(spec)}
        if queue := annotations.get(QUEUE_NAME):
            wanted["queue"] = queue
        if spec.get("priorityClassName"):
            wanted["priorityClassName"] = spec["priorityClassName"]
        head = {"name": name, "namespace": metadata["namespace"], "generation": 1}
        head["ownerReferences"] = [_owner(pod)]
        body = {"spec": wanted, "status": {"phase": "Pending"}}
        create(
            self._store,
            self._admission,
            GROUP,
            head,
            body,
            CONTROLLER,
            VOLCANO_CONTROLLERS,
        )


def _owner(pod: Obj) -> Object:
    """What a pod's group belongs to: the pod's controller, or the pod itself."""
    metadata = pod["metadata"]
    own = next(
        (
            one
            for one in items(dict(metadata), "ownerReferences")
            if one.get("controller")
        ),
        None,
    )
    itself = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return own or {**itself, "controller": True, "blockOwnerDeletion": True}


def _is_alone(pod: Obj) -> bool:
    annotations = part(dict(pod["metadata"]), "annotations")
    ours = pod["spec"].get("schedulerName") == SCHEDULER
    return ours and GROUP_NAME not in annotations and not is_over(pod)

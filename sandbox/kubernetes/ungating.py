"""Kueue's topology ungater: pods that are held back until their node is chosen are told which their Workload got."""

from collections import Counter
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.controllers_pods import POD, is_over
from sandbox.kubernetes.evicting import WORKLOAD
from sandbox.kubernetes.kinds import KUEUE_GROUP
from sandbox.kubernetes.store import Change, Key, Obj, Store
from sandbox.kubernetes.topology import GATE, WORKLOAD_OF, domains_of

POD_SET = f"{KUEUE_GROUP}/podset"
Object = dict[str, Any]


def is_gated(pod: Obj) -> bool:
    """Whether a pod may not be scheduled yet."""
    return bool(pod["spec"].get("schedulingGates"))


def _is_unplaced(pod: Obj) -> bool:
    return any(
        one["name"] == GATE for one in items(dict(pod["spec"]), "schedulingGates")
    )


class Ungater:
    """Lifts the gate of each pod that a topology holds back; `run` works through those that changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due: dict[Key, None] = {}

    def react(self, change: Change) -> None:
        """Remember a pod that is held back."""
        if (
            change.resource == ("", "pods")
            and not change.removed
            and _is_unplaced(change.after.obj)
        ):
            self._due[change.key] = None

    def run(self) -> bool:
        """Work through what changed; True when there was anything."""
        due, self._due = self._due, {}
        for key in sorted(due):
            pod = self._store.get(POD, *key)
            if pod is not None and _is_unplaced(pod):
                self._lift(pod)
        return bool(due)

    def _lift(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        name = part(dict(metadata), "annotations").get(WORKLOAD_OF, "")
        workload = self._store.get(WORKLOAD, metadata["namespace"], name)
        given = self._given(workload, part(dict(metadata), "labels").get(POD_SET, ""))
        taken = Counter(
            self._places(metadata["namespace"], name, str(given.get("name") or ""))
        )
        assigned = part(given, "topologyAssignment")
        for domain, count in domains_of(assigned):
            if taken[domain[-1]] < count:
                where = dict(zip(assigned["levels"], domain, strict=True))
                gates = [
                    one
                    for one in items(dict(pod["spec"]), "schedulingGates")
                    if one["name"] != GATE
                ]
                spec = {
                    key: value
                    for key, value in pod["spec"].items()
                    if key != "schedulingGates"
                }
                spec |= {"nodeSelector": {**part(spec, "nodeSelector"), **where}}
                spec |= {"schedulingGates": gates} if gates else {}
                self._store.put(POD, {**pod, "spec": spec})
                return

    def _given(self, workload: Obj | None, name: str) -> Object:
        admission = part(part(dict(workload or {}), "status"), "admission")
        sets = items(admission, "podSetAssignments")
        return next((one for one in sets if one["name"] == name), {})

    def _places(self, namespace: str, workload: str, name: str) -> list[str]:
        """The nodes that other pods of the pod set were told."""
        found = []
        for pod in self._store.objects(POD, namespace):
            metadata = dict(pod["metadata"])
            ours = part(metadata, "annotations").get(WORKLOAD_OF) == workload
            if (
                ours
                and part(metadata, "labels").get(POD_SET) == name
                and not is_over(pod)
                and not is_gated(pod)
            ):
                found.append(
                    str(
                        part(dict(pod["spec"]), "nodeSelector").get(
                            "kubernetes.io/hostname", ""
                        )
                    )
                )
        return found

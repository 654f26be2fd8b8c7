"""Spot nodes taken away on demand: a notice, then node and pods are gone; if wished, the node comes back later.

The words are those of AKS, of the cloud's node controller and of the garbage collector of pods in Kubernetes.
"""

import heapq
import json
import uuid
from collections.abc import Callable
from itertools import count
from typing import Any

from sandbox.kubernetes.binding import NODE
from sandbox.kubernetes.calls import Answer, Call, json_answer
from sandbox.kubernetes.causes import items
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import POD, is_over
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.status import bad_request
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Obj, Store

# Azure says so half a minute before.
NOTICE_SECONDS, SWEEP_SECONDS = 30.0, 0.05
MANAGER = "kube-controller-manager"
SHAPE = "give {node, notice, back_after}: a node's name, and seconds of 0 or more for those two, if you like"
_KNOWN = frozenset({"node", "notice", "back_after"})


class Interruptions:
    """The nodes of one store that are to be taken, and those that come back; `next_due` says when to come again."""

    def __init__(
        self, store: Store, now: Callable[[], float], remove: Callable[[Obj], None]
    ) -> None:
        self._store = store
        self._now = now
        self._remove = remove
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def next_due(self) -> float | None:
        """When something happens next."""
        return self._agenda[0][0] if self._agenda else None

    def announce(self, call: Call) -> Answer:
        """Answer ``POST /sandbox/interruptions {node, notice, back_after}``; 400 for a node that is not there."""
        name, notice, back_after = _read(call)
        node = self._store.get(NODE, "", name)
        if node is None:
            raise bad_request(f"there is no node {name}")
        by = "custom-scheduledevents-consolidated-preempt-plugin-monitor"
        said = f"Preempt Scheduled: {name} is taken back in {notice:g} seconds"
        tell(self._store, node, "PreemptScheduled", said, by=by, warning=True)
        self._plan(notice, lambda: self._take(name, back_after))
        return json_answer(
            201, {"node": name, "notice": notice, "back_after": back_after}
        )

    def take(self, name: str) -> None:
        """Take a node away for good, as its cloud does; nothing happens where there is none."""
        self._take(name, None)

    def run(self) -> bool:
        """Do what is due; True when anything was."""
        done = False
        while self._agenda and self._agenda[0][0] <= self._now():
            heapq.heappop(self._agenda)[2]()
            done = True
        return done

    def _plan(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(
            self._agenda, (self._now() + seconds, next(self._numbers), action)
        )

    def _take(self, name: str, back_after: float | None) -> None:
        node = self._store.get(NODE, "", name)
        if node is None:
            return
        said = f"Deleting node {name} because it does not exist in the cloud provider"
        tell(
            self._store,
            node,
            "DeletingNode",
            said,
            by="cloud-node-lifecycle-controller",
        )
        self._store.remove(NODE, "", name)
        for pod in list(self._store.objects(POD)):
            if pod["spec"].get("nodeName") == name and not is_over(pod):
                _fail(self._store, pod)
        self._plan(SWEEP_SECONDS, lambda: self._sweep(name))
        if back_after is not None:
            self._plan(back_after, lambda: self._return(node))

    def _sweep(self, name: str) -> None:
        """The garbage collector of pods: what was on a node that is no more goes, once its Job has counted it."""
        for pod in list(self._store.objects(POD)):
            if (
                pod["spec"].get("nodeName") == name
                and self._store.get(NODE, "", name) is None
            ):
                self._remove(pod)

    def _return(self, node: Obj) -> None:
        name = node["metadata"]["name"]
        if self._store.get(NODE, "", name) is None:
            metadata = {
                **node["metadata"],
                "uid": str(uuid.uuid4()),
                "creationTimestamp": timestamp(),
            }
            self._store.put(NODE, {**node, "metadata": metadata})


def _fail(store: Store, pod: Obj) -> None:
    said = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    status = dict(pod["status"])
    rest = [
        one
        for one in items(status, "conditions")
        if one["type"] not in {"Ready", "DisruptionTarget"}
    ]
    gone = {
        **said,
        "type": "Ready",
        "status": "False",
        "reason": "PodFailed",
        "message": "",
    }
    write_status(
        store,
        POD,
        pod,
        {**status, "phase": "Failed", "conditions": [*rest, gone, said]},
        MANAGER,
    )


def _read(call: Call) -> tuple[str, float, float | None]:
    try:
        said: dict[str, Any] = json.loads(call.body)
        name, notice, back_after = (
            said["node"],
            said.get("notice", NOTICE_SECONDS),
            said.get("back_after"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_request(SHAPE) from error
    numbers = [one for one in (notice, back_after) if one is not None]
    good = (
        all(type(one) in (int, float) and one >= 0 for one in numbers)
        and notice is not None
    )
    if not (good and isinstance(name, str) and set(said) <= _KNOWN):
        raise bad_request(SHAPE)
    return name, float(notice), None if back_after is None else float(back_after)

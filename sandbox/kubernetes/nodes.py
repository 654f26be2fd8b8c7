"""Scheduler and node agent: pods find a node, start a moment later and run as long as they say.

Of pods without a controller only notebook servers, those in a queue, those of another scheduler and those with an
annotation of the sandbox are looked after.
How long: the annotation ``test/run-for`` (seconds), else the ``sleep N`` of a container, else until somebody deletes
them. ``test/start-after`` (seconds) delays the start.
"""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

from sandbox.kubernetes import commands
from sandbox.kubernetes.binding import NODE, bind, turn_away
from sandbox.kubernetes.controllers_pods import POD, is_over, phase_of
from sandbox.kubernetes.events import KUBELET
from sandbox.kubernetes.kubelet import BACK_OFF_SECONDS, Kubelet, is_notebook
from sandbox.kubernetes.placing import place
from sandbox.kubernetes.pod_webhook import is_managed
from sandbox.kubernetes.spans import Spans
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store
from sandbox.kubernetes.ungating import is_gated

SCHEDULER = "kube-scheduler"
START_SECONDS = 0.05
# Pods that name another scheduler are not given a node here.
OURS = frozenset({None, "default-scheduler"})
Status = dict[str, Any]


class Nodes:
    """Everything that happens to a pod by itself; `next_due` says when to come again."""

    def __init__(self, store: Store, now: Callable[[], float], spans: Spans) -> None:
        self._store = store
        self._now = now
        self._spans = spans
        self._kubelet = Kubelet(store)
        self._waiting: dict[Key, None] = {}
        self._agenda: list[tuple[float, int, Key, str]] = []
        self._numbers = count()

    @property
    def next_due(self) -> float | None:
        """When the next pod starts or ends."""
        return self._agenda[0][0] if self._agenda else None

    def react(self, change: Change) -> None:
        """Look at a pod of a Job, or try those without a node again when room may have come."""
        if change.resource == ("", "nodes"):
            self._retry()
        elif change.resource == ("", "pods") and _is_run(change.after.obj):
            if change.removed:
                self._gone(change.after.obj)
            if change.removed or is_over(change.after.obj):
                self._waiting.pop(change.key, None)
                self._retry()
            else:
                self._look(
                    change.key,
                    change.before.obj if change.before else None,
                    change.after.obj,
                )

    def _gone(self, pod: Obj) -> None:
        if phase_of(pod) == "Running":
            self._kubelet.kill(pod)
        self._spans.forget(pod)

    def resume(self) -> None:
        """Take up every pod again after the store was filled from a snapshot."""
        self._agenda.clear()
        for pod in self._store.objects(POD):
            if _is_run(pod) and not is_over(pod):
                self._look(
                    (pod["metadata"]["namespace"], pod["metadata"]["name"]), None, pod
                )

    def run(self) -> bool:
        """Do what is due; True when anything was."""
        done = self._schedule()
        while self._agenda and self._agenda[0][0] <= self._now():
            due, _, key, uid = heapq.heappop(self._agenda)
            pod = self._store.get(POD, *key)
            if (
                pod is not None
                and pod["metadata"]["uid"] == uid
                and "deletionTimestamp" not in pod["metadata"]
            ):
                self._step(pod, due)
                done = True
        return done

    def _retry(self) -> None:
        for pod in self._store.objects(POD):
            if (
                _is_run(pod)
                and _is_ours(pod)
                and not pod["spec"].get("nodeName")
                and not is_over(pod)
            ):
                self._waiting[pod["metadata"]["namespace"], pod["metadata"]["name"]] = (
                    None
                )

    def _look(self, key: Key, before: Obj | None, pod: Obj) -> None:
        if not pod["spec"].get("nodeName"):
            if (
                _is_ours(pod)
                and not is_gated(pod)
                and (before is None or is_gated(before))
            ):
                self._waiting[key] = None
        elif (
            before is None
            or before["spec"].get("nodeName") is None
            or phase_of(before) != phase_of(pod)
        ):
            seconds = (
                _before_start(pod) if phase_of(pod) == "Pending" else _run_for(pod)
            )
            if seconds is not None:
                self._plan(pod, self._now() + seconds)

    def _plan(self, pod: Obj, due: float) -> None:
        metadata = pod["metadata"]
        key = metadata["namespace"], metadata["name"]
        heapq.heappush(self._agenda, (due, next(self._numbers), key, metadata["uid"]))

    def _schedule(self) -> bool:
        waiting, self._waiting = self._waiting, {}
        before = self._store.version
        for key in waiting:
            pod = self._store.get(POD, *key)
            if (
                pod is not None
                and not pod["spec"].get("nodeName")
                and not is_gated(pod)
            ):
                self._bind(pod)
        return self._store.version != before

    def _bind(self, pod: Obj) -> None:
        nodes = [dict(one) for one in self._store.objects(NODE)]
        name, why = place(
            dict(pod), nodes, (dict(one) for one in self._store.objects(POD))
        )
        if name:
            bind(self._store, pod, name, by="default-scheduler", manager=SCHEDULER)
        else:
            turn_away(self._store, pod, why, by="default-scheduler", manager=SCHEDULER)

    def _step(self, pod: Obj, due: float) -> None:
        status = dict(pod["status"])
        if phase_of(pod) == "Pending":
            if self._kubelet.start(status, pod):
                self._spans.begin(pod, due)
            elif self._kubelet.backs_off(status):
                self._plan(pod, due + BACK_OFF_SECONDS)
        elif phase_of(pod) == "Running":
            if _is_too_long(pod):
                self._kubelet.stop(status, pod)
            else:
                self._kubelet.end(status, pod)
            self._spans.end(pod, due)
        write_status(self._store, POD, pod, status, KUBELET)


def _is_run(pod: Obj) -> bool:
    """Whether the sandbox runs a pod: of a controller or other scheduler, a notebook, in a queue, or that says how."""
    metadata = pod["metadata"]
    owned = any(one.get("controller") for one in metadata.get("ownerReferences") or ())
    return (
        owned
        or is_notebook(pod)
        or is_managed(pod)
        or not _is_ours(pod)
        or any(name.startswith("test/") for name in metadata.get("annotations") or ())
    )


def _is_ours(pod: Obj) -> bool:
    return pod["spec"].get("schedulerName") in OURS


def _number(pod: Obj, name: str) -> float | None:
    text = (pod["metadata"].get("annotations") or {}).get(name)
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


def _before_start(pod: Obj) -> float:
    after = _number(pod, "test/start-after")
    return START_SECONDS if after is None else after


def _run_for(pod: Obj) -> float | None:
    """Seconds that a pod runs; None is until it is deleted."""
    wanted, most = _wants_to_run(pod), pod["spec"].get("activeDeadlineSeconds")
    return (
        wanted
        if most is None
        else float(most)
        if wanted is None
        else min(wanted, float(most))
    )


def _is_too_long(pod: Obj) -> bool:
    """Whether a pod would run for longer than it may."""
    wanted, most = _wants_to_run(pod), pod["spec"].get("activeDeadlineSeconds")
    return most is not None and (wanted is None or wanted > float(most))


def _wants_to_run(pod: Obj) -> float | None:
    said = _number(pod, "test/run-for")
    if said is not None:
        return said
    return commands.seconds(pod)

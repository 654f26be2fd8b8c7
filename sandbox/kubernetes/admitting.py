"""Kueue's scheduler: who of those in line gets quota, who waits and why, and who has to stop for whom."""

import json
from collections.abc import Iterable
from typing import Any

from sandbox.kubernetes.admission import NAMESPACES
from sandbox.kubernetes.assigning import Assignment, Mode, assign, requests_of
from sandbox.kubernetes.capacity import Pool, queue_of
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.conditions import holds
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.evicting import (
    ADMISSION,
    DEACTIVATED,
    MANAGER,
    STOPPED,
    WORKLOAD,
    admit_checked,
    evict,
    evict_inactive,
    is_drained,
    is_given_up,
    refuse,
    requeue,
    reserve,
)
from sandbox.kubernetes.kinds import KUEUE_GROUP, builtin
from sandbox.kubernetes.preempting import WORDS, Wish, priority, victims
from sandbox.kubernetes.selecting import matches
from sandbox.kubernetes.store import Change, Obj, Store
from sandbox.kubernetes.topology import Topologies

Object = dict[str, Any]
_VERSION = f"{KUEUE_GROUP}/v1beta2"
CLUSTER_QUEUE, LOCAL_QUEUE = (
    builtin(_VERSION, "ClusterQueue"),
    builtin(_VERSION, "LocalQueue"),
)
COHORT, FLAVOR = builtin(_VERSION, "Cohort"), builtin(_VERSION, "ResourceFlavor")
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
WRONG_NAMESPACE = "workload namespace doesn't match ClusterQueue selector"
TOPOLOGY, NODE, POD = (
    builtin(_VERSION, "Topology"),
    builtin("v1", "Node"),
    builtin("v1", "Pod"),
)
_WATCHED = frozenset(
    {
        "clusterqueues",
        "cohorts",
        "localqueues",
        "resourceflavors",
        "topologies",
        "workloads",
    }
)
_ROOM = frozenset({("", "nodes"), ("", "pods")})


class Scheduler:
    """Looks at everything in line when something that matters has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due = False

    def react(self, change: Change) -> None:
        """Remember that there is something to look at; nodes and pods matter only where a topology counts them."""
        if change.resource in _ROOM:
            self._due = self._due or any(True for _ in self._store.objects(TOPOLOGY))
        else:
            self._due = self._due or change.resource[1] in _WATCHED

    def wake(self) -> None:
        """Look at everything at the next run."""
        self._due = True

    def run(self) -> bool:
        """Look once; True when something changed, and there may be more to do."""
        if not self._due:
            return False
        self._due = False
        # In the order of their creation, which a time of whole seconds does not tell.
        entries = self._store.table(WORKLOAD).entries.values()
        workloads = [one.obj for one in entries if not holds(one.obj, "Finished")]
        if not workloads:
            return False
        before = self._store.version
        if not self._stop(workloads) and not all(
            queue_of(dict(one)) for one in workloads
        ):
            _Round(self._store, [dict(one) for one in workloads]).run()
            self._requeue(workloads)
        return self._store.version != before

    def _stop(self, workloads: list[Obj]) -> bool:
        """Take quota from what is inactive or in a queue that is drained, and admit what checks agreed to."""
        changed = False
        for one in workloads:
            drained = self._drained(one)
            if drained and "admission" in (one.get("status") or {}):
                evict(self._store, one, drained, STOPPED[drained])
                changed = True
            elif is_drained(one, "LocalQueue") and not self._held(one):
                requeue(self._store, one)
                changed = True
            else:
                changed = (
                    evict_inactive(self._store, one)
                    or admit_checked(self._store, one)
                    or changed
                )
        return changed

    def _requeue(self, workloads: list[Obj]) -> None:
        """Let those in line again whose ClusterQueue goes on: behind everybody who waited meanwhile."""
        for one in workloads:
            if is_drained(one) and not self._held(one):
                requeue(self._store, one)

    def _held(self, workload: Obj) -> bool:
        name = part(dict(workload), "spec").get("queueName", "")
        local = self._store.get(LOCAL_QUEUE, workload["metadata"]["namespace"], name)
        if local is None or local["spec"].get("stopPolicy", "None") != "None":
            return True
        queue = self._store.get(CLUSTER_QUEUE, "", str(local["spec"]["clusterQueue"]))
        return queue is None or not holds(queue, "Active")

    def _drained(self, workload: Obj) -> str:
        queue = self._store.get(CLUSTER_QUEUE, "", queue_of(dict(workload)))
        if queue is not None and queue["spec"].get("stopPolicy") == "HoldAndDrain":
            return "ClusterQueueStopped"
        name = part(dict(workload), "spec").get("queueName", "")
        local = self._store.get(LOCAL_QUEUE, workload["metadata"]["namespace"], name)
        if local is not None and local["spec"].get("stopPolicy") == "HoldAndDrain":
            return "LocalQueueStopped"
        return ""


class _Round:
    """One look at everything in line, the most important and oldest first."""

    def __init__(self, store: Store, workloads: list[Object]) -> None:
        self._store = store
        self._queues = {
            one["metadata"]["name"]: dict(one) for one in store.objects(CLUSTER_QUEUE)
        }
        self._flavors = {
            one["metadata"]["name"]: dict(one) for one in store.objects(FLAVOR)
        }
        self._running = [one for one in workloads if queue_of(one)]
        self._waiting = sorted(
            (one for one in workloads if not queue_of(one)), key=_order
        )
        cohorts = [dict(one) for one in store.objects(COHORT)]
        self._pool = Pool(self._queues.values(), cohorts, self._running)
        self._topologies = self._room()
        self._refused: set[tuple[str, str]] = set()
        self._blocked: set[str] = set()

    def _room(self) -> Topologies:
        by_name = {
            one["metadata"]["name"]: dict(one) for one in self._store.objects(TOPOLOGY)
        }
        if not by_name:
            return Topologies({}, [], [], [])
        nodes, pods = (
            [
                dict(one)
                for one in self._store.objects(kind)
                if "deletionTimestamp" not in one["metadata"]
            ]
            for kind in (NODE, POD)
        )
        return Topologies(by_name, nodes, pods, self._running)

    def run(self) -> None:
        """Give quota where there is some; after somebody was stopped the next round goes on."""
        lines: dict[str, list[Object]] = {}
        for one in self._waiting:
            queue = self._queue_for(one)
            if queue is not None:
                lines.setdefault(str(queue["metadata"]["name"]), []).append(one)
        while lines:
            # Of those at the heads, whoever keeps to their own share comes before who would borrow.
            for name in sorted(
                lines, key=lambda each: self._rank(lines[each][0], each)
            ):
                if self._decide(lines[name].pop(0), self._queues[name]):
                    return
            lines = {name: line for name, line in lines.items() if line}

    def _rank(self, workload: Object, name: str) -> tuple[bool, int, str]:
        found = assign(
            workload, self._queues[name], self._flavors, self._pool, self._topologies
        )
        borrows = any(
            self._pool.borrowed(name, cell, amount)
            for cell, amount in found.usage.items()
        )
        return borrows, *_order(workload)

    def _queue_for(self, workload: Object) -> Object | None:
        """The ClusterQueue a Workload stands in line for; None, and the reason told, where it cannot."""
        problem = self._problem(workload)
        if problem is None:
            return self._queues[self._cluster_queue_of(workload)]
        reason, message = problem
        if message:
            refuse(self._store, workload, reason, message, [])
        return None

    def _cluster_queue_of(self, workload: Object) -> str:
        name = part(workload, "spec").get("queueName", "")
        local = self._store.get(LOCAL_QUEUE, workload["metadata"]["namespace"], name)
        return str(local["spec"]["clusterQueue"]) if local is not None else ""

    def _problem(self, workload: Object) -> tuple[str, str] | None:
        spec, metadata = part(workload, "spec"), workload["metadata"]
        if is_given_up(workload):
            return "Pending", ""
        if spec.get("active") is False:
            return "Pending", DEACTIVATED
        if gates := part(metadata, "annotations").get(GATED_BY):
            return "AdmissionGated", f"Admission is gated by: {gates}"
        name = str(spec.get("queueName") or "")
        local = self._store.get(LOCAL_QUEUE, metadata["namespace"], name)
        if local is None:
            return "Inadmissible", f"LocalQueue {name} doesn't exist"
        if local["spec"].get("stopPolicy", "None") != "None":
            return "Inadmissible", f"LocalQueue {name} is inactive"
        above = str(local["spec"]["clusterQueue"])
        if above not in self._queues:
            return "Inadmissible", f"ClusterQueue {above} doesn't exist"
        if not holds(self._queues[above], "Active"):
            return "Inadmissible", f"ClusterQueue {above} is inactive"
        return ("Pending", "") if is_drained(workload) else None

    def _decide(self, workload: Object, queue: Object) -> bool:
        """Give quota, have others stopped (then True: look again), or say what is missing."""
        name = str(queue["metadata"]["name"])
        # A shape that was just refused is not looked at again, and nothing is said about it.
        shape = (
            name,
            f"{priority(workload)} {json.dumps(_shape(workload), sort_keys=True)}",
        )
        if shape in self._refused or name in self._blocked:
            return False
        namespace = self._store.get(NAMESPACES, "", workload["metadata"]["namespace"])
        labels = part(part(dict(namespace or {}), "metadata"), "labels")
        if not matches(part(queue, "spec").get("namespaceSelector"), labels):
            self._refuse(workload, queue, WRONG_NAMESPACE)
            return False
        found = assign(workload, queue, self._flavors, self._pool, self._topologies)
        if found.mode is Mode.FIT:
            self._reserve(workload, queue, found)
            return False
        wish = Wish(workload, queue, found.usage, found.short)
        chosen = (
            victims(wish, self._running, self._pool, self._queues)
            if found.mode is Mode.PREEMPT
            else []
        )
        if chosen:
            self._refuse(
                workload,
                queue,
                f"{found.why}. Pending the preemption of {len(chosen)} workload(s)",
            )
            for victim, rule in chosen:
                self._preempt(workload, victim, rule, name)
            return True
        self._refused.add(shape)
        if part(queue, "spec").get("queueingStrategy") == "StrictFIFO":
            self._blocked.add(name)
        self._refuse(workload, queue, found.why)
        return False

    def _reserve(self, workload: Object, queue: Object, found: Assignment) -> None:
        name = str(queue["metadata"]["name"])
        checks = items(
            part(part(queue, "spec"), "admissionChecksStrategy"), "admissionChecks"
        )
        borrows = any(
            self._pool.borrowed(name, cell, amount)
            for cell, amount in found.usage.items()
        )
        given = [
            f"{one['name']}: {_flavors(one)}(Fit;borrow=1)" for one in found.pod_sets
        ]
        said = f"; Flavors considered: {'; '.join(given)}" if borrows else ""
        admission = {"clusterQueue": name, "podSetAssignments": found.pod_sets}
        reserve(
            self._store, workload, admission, [str(one["name"]) for one in checks], said
        )
        self._pool.take(name, found.usage)
        for pod_set, one in zip(
            items(part(workload, "spec"), "podSets"), found.pod_sets, strict=True
        ):
            self._topologies.take(pod_set, one)

    def _refuse(self, workload: Object, queue: Object, why: str) -> None:
        groups = items(part(queue, "spec"), "resourceGroups")
        covered = {
            str(one) for group in groups for one in group.get("coveredResources") or ()
        }
        asked = [
            {"name": name, "resources": amounts}
            for name, _, amounts in requests_of(workload, covered)
        ]
        refuse(self._store, workload, "Pending", why, asked)

    def _preempt(self, winner: Object, victim: Object, rule: str, queue: str) -> None:
        place, metadata = queue_of(victim), winner["metadata"]
        job = part(metadata, "labels").get("kueue.x-k8s.io/job-uid", "UNKNOWN")
        message = (
            f"Preempted to accommodate a workload (UID: {metadata['uid']}, JobUID: {job}) due to {WORDS[rule]}; "
            f"preemptor path: {self._pool.path(queue)}; preemptee path: {self._pool.path(place)}"
        )
        evict(self._store, victim, "Preempted", message, rule=rule)
        weights = f"preemptor effective priority: {_weight(winner)}; preemptee effective priority: {_weight(victim)}"
        tell(
            self._store,
            victim,
            "Preempted",
            f"{message}; {weights}",
            by=ADMISSION,
            manager=MANAGER,
        )
        whom = f"{victim['metadata']['namespace']}/{victim['metadata']['name']} (UID: {victim['metadata']['uid']})"
        said = f"Preempted workload {whom} in ClusterQueue {place}; {weights}"
        tell(
            self._store,
            winner,
            "PreemptedWorkload",
            said,
            by=ADMISSION,
            manager=MANAGER,
        )


def _flavors(assignment: Object) -> str:
    return ", ".join(sorted({*assignment["flavors"].values()}))


def _weight(workload: Object) -> str:
    return f"{priority(workload)} (base: {priority(workload)}, boost: 0)"


def in_order(workloads: Iterable[Obj]) -> list[Obj]:
    """Workloads as they stand in line."""
    return sorted(workloads, key=lambda one: _order(dict(one)))


def _order(workload: Object) -> tuple[int, str]:
    """The most important first, then who stands in line longest; whoever was preempted stands at their old place."""
    return -priority(workload), str(workload["metadata"]["creationTimestamp"])


def _shape(workload: Object) -> list[Any]:
    return [
        [one.get("count"), part(part(one, "template"), "spec")]
        for one in items(part(workload, "spec"), "podSets")
    ]

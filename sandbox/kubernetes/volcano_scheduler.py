"""Volcano's scheduler: groups may have pods, get nodes for all they need or none, and take back their own.

After pkg/scheduler of volcano-sh/volcano 1.15: actions/{enqueue,allocate,reclaim}, plugins/{capacity,gang,priority},
framework/{session.go,job_updater.go} and cache/cache.go, with the actions and plugins of `seeds_volcano.CONFIGURATION`.
One look at a cluster follows another until nothing changes, and what was said before is not said again. What reclaim
evicts makes room for the whole of a group.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from sandbox.kubernetes.binding import NODE, bind, turn_away
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import POD, is_over
from sandbox.kubernetes.events import VOLCANO_SCHEDULER, tell
from sandbox.kubernetes.kinds import Kind, builtin
from sandbox.kubernetes.placing import place
from sandbox.kubernetes.quantities import written
from sandbox.kubernetes.statuses import write_object, write_status
from sandbox.kubernetes.store import Change, Obj, Store
from sandbox.kubernetes.ungating import is_gated
from sandbox.kubernetes.volcano_capacity import (
    BINARY,
    Amounts,
    Share,
    amounts_of,
    insufficient,
    request_of,
    share_of,
    total,
)
from sandbox.kubernetes.volcano_gangs import (
    HOLDING,
    INQUEUE,
    PENDING,
    RUNNING,
    UNSCHEDULABLE,
    Gang,
    conditions_of,
    without_node,
)
from sandbox.kubernetes.volcano_webhook import GROUP, GROUP_NAME, QUEUE, ROOT, SCHEDULER

PRIORITY = builtin("scheduling.k8s.io/v1", "PriorityClass")
WATCHED = frozenset({"podgroups", "queues", "pods", "nodes", "priorityclasses"})
RECLAIM = "reclaim"
Object = dict[str, Any]


class VolcanoScheduler:
    """The scheduler of one store; `run` looks at everything when something changed."""

    def __init__(self, store: Store, remove: Callable[[Kind, Obj], None]) -> None:
        self._store = store
        self._remove = remove
        self._is_due = True
        # By group: what was told of it last, and which condition was set last.
        self._told: dict[str, str] = {}
        self._latest: dict[str, str] = {}

    def react(self, change: Change) -> None:
        """Look again when anything changed that matters to groups."""
        if change.resource[1] in WATCHED:
            self._is_due = True

    def resume(self) -> None:
        """Look again after the store was filled from a snapshot."""
        self._is_due = True

    def run(self) -> bool:
        """One look at the cluster; True when it changed something."""
        if not self._is_due:
            return False
        self._is_due = False
        before = self._store.version
        session = Session(self._store)
        for gang, why in session.enqueue():
            self._say(gang, "quota", UNSCHEDULABLE, why)
        session.allocate()
        for pod, node in session.bindings:
            current = self._store.get(
                POD, pod["metadata"]["namespace"], pod["metadata"]["name"]
            )
            if current is not None:
                bind(
                    self._store, current, node, by=SCHEDULER, manager=VOLCANO_SCHEDULER
                )
        for gang, pod in session.reclaim():
            self._evict(gang, pod)
        # What was bound and evicted now is seen in the next look, which says how the groups do.
        if self._store.version == before:
            self._conclude(session)
        else:
            self._enter(session)
        self._is_due |= self._store.version != before
        return self._store.version != before

    def _enter(self, session: "Session") -> None:
        for gang in session.gangs:
            if gang.phase != part(dict(self._stored(gang)), "status").get("phase"):
                self._write(gang, {"phase": gang.phase})

    def _conclude(self, session: "Session") -> None:
        """Say how the groups do, their pods and their queues."""
        for gang in session.gangs:
            if session.share(gang) is None:
                continue
            self._write(gang, self._status(gang))
            self._tell(gang)
            for pod in gang.of({PENDING}):
                if not is_gated(pod):
                    by, manager = SCHEDULER, VOLCANO_SCHEDULER
                    reason, why = gang.pod_reason(pod)
                    turn_away(
                        self._store, pod, why, by=by, manager=manager, reason=reason
                    )
        for queue in list(self._store.objects(QUEUE)):
            status = {
                **part(dict(queue), "status"),
                "allocated": session.allocated(queue),
            }
            write_status(self._store, QUEUE, queue, status, VOLCANO_SCHEDULER)

    def _status(self, gang: Gang) -> Object:
        """The status of a group after a look at it."""
        status = dict(part(dict(gang.group), "status"))
        status["phase"] = gang.next_phase()
        for word in ("running", "succeeded", "failed"):
            status.pop(word, None)
            if count := len(gang.of({word.capitalize()})):
                status[word] = count
        word, reason, message = gang.condition()
        uid, known = str(gang.group["metadata"]["uid"]), conditions_of(gang.group)
        before = next((one for one in known if one["type"] == word), {})
        same = (before.get("reason"), before.get("message", "")) == (reason, message)
        if word and not (same and self._latest.setdefault(uid, word) == word):
            self._latest[uid] = word
            new = {
                "lastTransitionTime": timestamp(),
                "reason": reason,
                "status": "True",
                "transitionID": str(uuid.uuid4()),
                "type": word,
                **({"message": message} if message else {}),
            }
            status["conditions"] = [new if one is before else one for one in known] + (
                [] if before else [new]
            )
        return status

    def _tell(self, gang: Gang) -> None:
        reason, message = gang.event()
        self._say(gang, "phase", reason, message, warning=reason == UNSCHEDULABLE)

    def _say(
        self, gang: Gang, what: str, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Tell of a group where it is news."""
        key = f"{what}/{gang.group['metadata']['uid']}"
        if self._told.get(key) != message:
            self._told[key] = message
            group = self._stored(gang)
            by, manager = SCHEDULER, VOLCANO_SCHEDULER
            tell(
                self._store,
                group,
                reason,
                message,
                by=by,
                manager=manager,
                warning=warning,
            )

    def _stored(self, gang: Gang) -> Obj:
        metadata = gang.group["metadata"]
        return (
            self._store.get(GROUP, metadata["namespace"], metadata["name"])
            or gang.group
        )

    def _write(self, gang: Gang, changes: Object) -> None:
        """Store a group's status: that of groups has no path of its own."""
        live = self._stored(gang)
        changed = {**live, "status": {**part(dict(live), "status"), **changes}}
        for word in ("running", "succeeded", "failed"):
            if "conditions" in changes and word not in changes:
                changed["status"].pop(word, None)
        write_object(self._store, GROUP, live, changed, VOLCANO_SCHEDULER)

    def _evict(self, gang: Gang, pod: Obj) -> None:
        by, manager = SCHEDULER, VOLCANO_SCHEDULER
        tell(
            self._store,
            pod,
            "Evict",
            f"Pod is evicted, because of {RECLAIM}",
            by=by,
            manager=manager,
        )
        tell(self._store, self._stored(gang), "Evict", RECLAIM, by=by, manager=manager)
        self._remove(POD, pod)


class Session:
    """One look at a cluster: its queues, groups and nodes as they are, and what becomes of them."""

    def __init__(self, store: Store) -> None:
        self._nodes = [dict(one) for one in store.objects(NODE)]
        self._pods = [dict(pod) for pod in store.objects(POD) if not is_over(pod)]
        priorities = list(store.objects(PRIORITY))
        values = {
            str(one["metadata"]["name"]): int(one.get("value") or 0)
            for one in priorities
        }
        usual = next(
            (int(one["value"]) for one in priorities if one.get("globalDefault")), 0
        )
        members = _members(store)
        self.gangs = [
            Gang(group, members.get(_key(group), []), _priority(group, values, usual))
            for group in store.objects(GROUP)
        ]
        self._shares = self._queues([dict(one) for one in store.objects(QUEUE)])
        self.bindings: list[tuple[Obj, str]] = []

    def _queues(self, queues: list[Object]) -> dict[str, Share]:
        there = total(
            amounts_of(part(part(node, "status"), "allocatable"))
            for node in self._nodes
            if not part(node, "spec").get("unschedulable")
        )
        guaranteed = total(
            amounts_of(part(part(part(one, "spec"), "guarantee"), "resource"))
            for one in queues
        )
        shares = {
            str(one["metadata"]["name"]): share_of(one, there, guaranteed)
            for one in queues
        }
        for gang in self.gangs:
            if (share := shares.get(gang.queue)) is None:
                continue
            held, least = gang.held(), gang.least_resources()
            share.take(held)
            if gang.phase == INQUEUE:
                share.inqueue = total([share.inqueue, least])
            elif least:
                spare = {
                    name: max(0, amount - least.get(name, 0))
                    for name, amount in held.items()
                }
                share.elastic = total([share.elastic, spare])
        return shares

    def share(self, gang: Gang) -> Share | None:
        """The queue of a group; None where it is not there."""
        return self._shares.get(gang.queue)

    def _in_order(self) -> Iterator[tuple[Share, Gang]]:
        """Each group with its queue: the queue that holds the least of what it deserves has the next turn."""
        waiting = {
            name: [gang for gang in self.gangs if gang.queue == name]
            for name in self._shares
        }
        for gangs in waiting.values():
            gangs.sort(key=lambda one: one.order, reverse=True)
        while waiting := {name: gangs for name, gangs in waiting.items() if gangs}:
            share = min((self._shares[name] for name in waiting), key=_turn)
            yield share, waiting[share.name].pop()

    def enqueue(self) -> Iterator[tuple[Gang, str]]:
        """Let groups have pods for which their queue has room; the others are returned with what is lacking."""
        for share, gang in self._in_order():
            if gang.phase != PENDING or not share.is_open or share.name == ROOT:
                continue
            least = gang.least_resources()
            if lacking := share.lacking(least):
                yield gang, insufficient(lacking)
            else:
                share.inqueue = total([share.inqueue, least])
                gang.group = {
                    **gang.group,
                    "status": {**part(dict(gang.group), "status"), "phase": INQUEUE},
                }

    def allocate(self) -> None:
        """Find nodes for groups, for all that one needs or for none of it."""
        for share, gang in self._in_order():
            if gang.phase == PENDING or not gang.is_whole() or not share.is_open:
                continue
            placed = self._place(share, gang)
            if placed and gang.is_ready(pod for pod, _ in placed):
                self.bindings += placed
                self._pods = _with_nodes(self._pods, placed)
                continue
            for pod, node in placed:
                gang.possible[str(pod["metadata"]["name"])] = node
                share.take(request_of(dict(pod)), -1)

    def _place(self, share: Share, gang: Gang) -> list[tuple[Obj, str]]:
        """Nodes for the pods of a group that have none, and why one of them has none."""
        placed: list[tuple[Obj, str]] = []
        pods = self._pods
        for pod in gang.of({PENDING}):
            request = request_of(dict(pod))
            if is_gated(pod) or not share.has_room(request):
                continue
            node, why = place(dict(pod), self._nodes, pods)
            if not node:
                gang.misfits[str(pod["metadata"]["name"])] = without_node(why)
                if len(gang.pods) <= gang.least:
                    break
                continue
            share.take(request)
            placed.append((pod, node))
            pods = _with_nodes(pods, [(pod, node)])
        return placed

    def reclaim(self) -> list[tuple[Gang, Obj]]:
        """The pods that go, each with its group, so that groups run whose queues hold less than they deserve.

        The gang plugin gives up none that its group needs, and so leaves the choice to the capacity plugin in the tier
        below (Reclaimable in framework/session_plugins.go).
        """
        evicted: list[tuple[Gang, Obj]] = []
        for share, gang in self._in_order():
            starves = gang.phase == INQUEUE and gang.is_whole() and not gang.is_ready()
            if (
                starves
                and share.is_open
                and not any(pod in gang.pods for pod, _ in self.bindings)
            ):
                evicted += self._victims(share, gang)
        return evicted

    def _victims(self, share: Share, gang: Gang) -> list[tuple[Gang, Obj]]:
        """What has to go for all of a group to run; nothing where that does not do."""
        wanted = [pod for pod in gang.of({PENDING}) if not is_gated(pod)]
        pods, victims = self._pods, list[tuple[Gang, Obj]]()
        undo: list[tuple[Share, Amounts, int]] = []
        placed: list[Obj] = []
        for pod in wanted[: max(0, gang.least - len(gang.of(HOLDING)))]:
            request = request_of(dict(pod))
            if not (share.has_room(request) and share.is_owed(request)):
                break
            node, _ = place(dict(pod), self._nodes, pods)
            for victim_gang, victim in () if node else self._candidates(share):
                if any(one is victim for _, one in victims):
                    continue
                theirs = self._shares[victim_gang.queue]
                if not theirs.is_over(request):
                    continue
                theirs.take(request_of(dict(victim)), -1)
                undo.append((theirs, request_of(dict(victim)), 1))
                victims.append((victim_gang, victim))
                pods = [
                    one
                    for one in pods
                    if one["metadata"]["uid"] != victim["metadata"]["uid"]
                ]
                node, _ = place(dict(pod), self._nodes, pods)
                if node:
                    break
            if not node:
                break
            share.take(request)
            undo.append((share, request, -1))
            placed.append(pod)
            pods = _with_nodes(pods, [(pod, node)])
        if victims and gang.is_ready(placed):
            self._pods = pods
            return victims
        for one, amounts, times in undo:
            one.take(amounts, times)
        return []

    def _candidates(self, share: Share) -> list[tuple[Gang, Obj]]:
        """The running pods of other queues that let go of what they do not deserve: the least and youngest first."""
        found = [
            (gang, pod)
            for gang in self.gangs
            for pod in gang.of({RUNNING})
            if gang.queue != share.name
            and gang.queue in self._shares
            and self._shares[gang.queue].reclaimable
        ]
        youngest = sorted(
            found,
            key=lambda one: str(one[1]["metadata"]["creationTimestamp"]),
            reverse=True,
        )
        return sorted(youngest, key=lambda one: one[0].priority)

    def allocated(self, queue: Obj) -> dict[str, str]:
        """What a queue holds, as its status says it: that of all queues for the one over them."""
        name = str(queue["metadata"]["name"])
        under = [gang for gang in self.gangs if name == ROOT or gang.queue == name]
        held = total(gang.held() for gang in under)
        like = {"memory": BINARY}
        found = {
            word: written(held.get(word, 0), like.get(word, "1"))
            for word in ("cpu", "memory")
        }
        return found | {
            word: written(amount, like.get(word, "1"))
            for word, amount in held.items()
            if amount
        }


def _turn(share: Share) -> tuple[int, float, str]:
    return -share.priority, share.fraction, share.name


def _members(store: Store) -> dict[tuple[str, str], list[Obj]]:
    """The pods of each group, by the order in which their names count."""
    found: dict[tuple[str, str], list[Obj]] = {}
    for pod in store.objects(POD):
        name = part(dict(pod["metadata"]), "annotations").get(GROUP_NAME)
        if name and pod["spec"].get("schedulerName") == SCHEDULER:
            found.setdefault((pod["metadata"]["namespace"], str(name)), []).append(pod)
    return {key: sorted(pods, key=_number) for key, pods in found.items()}


def _number(pod: Obj) -> tuple[str, int, str]:
    stem, _, number = str(pod["metadata"]["name"]).rpartition("-")
    return stem, int(number) if number.isdecimal() else 0, number


def _priority(group: Obj, values: dict[str, int], usual: int) -> int:
    return values.get(str(group["spec"].get("priorityClassName") or ""), usual)


def _with_nodes(pods: list[Object], placed: list[tuple[Obj, str]]) -> list[Object]:
    nodes = {pod["metadata"]["uid"]: node for pod, node in placed}
    return [
        {**pod, "spec": {**pod["spec"], "nodeName": nodes[pod["metadata"]["uid"]]}}
        if pod["metadata"]["uid"] in nodes
        else pod
        for pod in pods
    ]


def _key(group: Obj) -> tuple[str, str]:
    return str(group["metadata"]["namespace"]), str(group["metadata"]["name"])

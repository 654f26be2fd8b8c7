"""One line per piece of work: its state in a word, since when, and one sentence that says why. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleet.maintenance import Maintenance
from workloads.explaining import explain, explain_pods
from workloads.explanations import Explanation
from workloads.failures.causes import Code
from workloads.grouping import Piece
from workloads.observed import (
    Ahead,
    Event,
    Facts,
    JobKey,
    Line,
    Nodes,
    Pod,
    Queue,
    QuotaHolder,
    Slices,
    Stop,
    TeamQueue,
    Workload,
)
from workloads.reading.limits import NO_LIMITS, TimeLimits
from workloads.reading.pods import pod_of
from workloads.reading.queues import queue_of, quota_holders_of
from workloads.reading.values import Object, part, text, uid_of
from workloads.reading.work import Read, job_of, workload_of
from workloads.reasons.latest_starts import Change, entry_of, latest_starts
from workloads.reasons.sources import NEVER_FETCHED
from workloads.reasons.stops import sent_back_at
from workloads.reasons.waiting import is_in_line

Events = Mapping[str, Sequence[Event]]


class State(StrEnum):
    """Where a piece of work is."""

    RUNNING = "running"
    STARTING = "starting"
    WAITING = "waiting"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"


ORDER = tuple(State)
OVER = frozenset({State.FAILED, State.FINISHED})
_BY_CODE = {
    "running": State.RUNNING,
    "finished": State.FINISHED,
    "failed": State.FAILED,
    **{code.value: State.FAILED for code in Code},
    NEVER_FETCHED: State.FAILED,
    "stopped_at_limit": State.FAILED,
}
# Kubernetes dates whatever it keeps; what comes without a date stands before all others.
NOT_DATED = datetime.min.replace(tzinfo=UTC)
# What runs beside the queue and is told as it is: nothing is wrong with it, or nothing newer is known.
_TOLD_APART = frozenset({"running", "cluster_silent"})
_STOPPED = frozenset({"stopped_by_person", "stopped_by_portal", "being_stopped"})


@dataclass(frozen=True, slots=True)
class HoldingPod:
    """A pod that holds GPUs of a node; another one may have had its name before it was created."""

    name: str
    created: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A piece of work as pages and API tell it; `held` are the GPUs of its queue or nodes that it has now.

    `queue` is the ClusterQueue that it waits or runs in, empty where it is in none. `run` or `notebook` is the number
    of the one that it is, None where the portal did not start it as one, and `title` what people call that.
    `sent_back_at` is when its queue stopped it, until it starts again.
    """

    key: JobKey
    cluster: str
    state: State
    gpus: int
    held: int
    flavors: tuple[str, ...]
    created: datetime | None
    why: Explanation
    queue: str = ""
    pods: tuple[HoldingPod, ...] = ()
    # Those of its GPUs that are MIG slices.
    slices: Slices = ()
    run: int | None = None
    notebook: int | None = None
    title: str = ""
    sent_back_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in OVER


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSeen:
    """A ClusterQueue with its line and what holds its GPUs, read once for everything in it.

    `places` has those, too, that are in no line: each has the place that it would have, and `length` counts none of
    them.
    """

    queue: Queue | None
    running: tuple[QuotaHolder, ...]
    length: int
    # The head of the line, where there is one.
    first: tuple[Ahead, ...]
    places: Mapping[tuple[str, str], int]
    # By when those in the line start, by namespace and name of the Workload, where that is known.
    latest: Mapping[tuple[str, str], datetime] = field(default_factory=dict)

    def line_of(self, workload: Workload) -> Line | None:
        """The place of a Workload in the line; None for one that is not in it."""
        place = self.places.get((workload.key.namespace, workload.name))
        if place is None:
            return None
        # One that may come into the line only later, as when its GPUs are yet to begin, is not counted in it.
        length = max(self.length, place + 1)
        return Line(place, length, self.first if place else ())


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """What a piece of work is explained by besides its own objects: the cluster's queues and nodes.

    `known` tells of a job's queue what only the portal knows, as fields of Facts: allocations, the reader, the
    cluster's silence.
    """

    cluster: str
    queues: Mapping[str, QueueSeen]
    team_queues: Mapping[tuple[str, str], TeamQueue]
    nodes: Nodes
    known: Callable[[Queue | None], Mapping[str, Any]]
    # What the portal made inactive, by the uid of its Workload.
    stops: Mapping[str, Stop] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Starts:
    """What tells by when those in a queue's line start: the changes of its own GPUs, and the cluster's maintenance."""

    changes: tuple[Change, ...]
    maintenance: Maintenance | None
    now: datetime


def queue_seen(
    queue: Object | None,
    workloads: Sequence[Object],
    *,
    read: Read = workload_of,
    limits: TimeLimits = NO_LIMITS,
    starts: Starts | None = None,
) -> QueueSeen:
    """A queue as its own object and all Workloads of it say; by when those in its line start, where `starts` tell."""
    everybody = line_in(map(read, workloads))
    own = queue_of(queue) if queue is not None else None
    line, places = list[Workload](), dict[tuple[str, str], int]()
    for one in everybody:
        places[one.key.namespace, one.name] = len(line)
        if is_in_line(one, own):
            line.append(one)
    holders = quota_holders_of(
        (one for one in workloads if read(one).holds("QuotaReserved")), limits
    )
    latest = (
        _latest(own, line, holders, limits, starts)
        if own is not None and starts is not None
        else {}
    )
    return QueueSeen(
        queue=own,
        running=holders,
        latest=latest,
        length=len(line),
        first=tuple(
            Ahead(
                one.key,
                one.priority,
                fits=False if own and not own.can_give(one) else None,
            )
            for one in line[:1]
        ),
        places=places,
    )


def _latest(
    queue: Queue,
    line: Sequence[Workload],
    holders: Sequence[QuotaHolder],
    limits: TimeLimits,
    known: Starts,
) -> dict[tuple[str, str], datetime]:
    """By when those in a line start, from the time limits of all, where that can be said."""
    found = latest_starts(
        queue,
        holders,
        known.changes,
        [entry_of(one, queue, limits.limit(one.key)) for one in line],
        maintenance=known.maintenance,
        now=known.now,
    )
    return {
        (one.key.namespace, one.name): at
        for one, at in zip(line, found, strict=True)
        if at is not None
    }


def by_name(events: Iterable[Event]) -> Events:
    """Events by the name of what they are about, so that none is looked for among all of them."""
    found = defaultdict[str, list[Event]](list)
    for one in events:
        found[one.name].append(one)
    return found


def work_of(piece: Piece, around: Around, events: Events, *, now: datetime) -> Work:
    """The line of one piece of work."""
    facts = _facts(piece, around, events)
    tell = (
        explain if piece.workload is not None or piece.job is not None else explain_pods
    )
    why = tell(facts, now=now)
    # In a silence it is in the state in which it was seen last; why says since when nothing newer is known.
    state = _state(
        facts,
        tell(_before_silence(facts), now=now) if facts.cluster.silent_since else why,
    )
    if (
        state == State.RUNNING
        and why.code not in _TOLD_APART
        and piece.workload is None
    ):
        # It runs although no queue took it up: that it does is said first, and then what is wrong with it.
        why = replace(why, what=f"It runs. {why.what}")
    return Work(
        key=piece.key,
        cluster=around.cluster,
        state=state,
        gpus=piece.gpus,
        slices=piece.slices,
        held=_held(facts, state),
        flavors=facts.workload.flavors if facts.workload is not None else (),
        created=piece.created,
        why=why,
        queue=facts.queue.name if facts.queue is not None else "",
        sent_back_at=sent_back_at(facts.workload)
        if facts.workload is not None
        else None,
        pods=tuple(
            HoldingPod(one.name, one.created) for one in _on_nodes(facts) if one.gpus
        ),
    )


def in_order(found: Iterable[Work]) -> list[Work]:
    """What runs first, then what waits and what has ended: in the order of its line what is in one, else the newest."""
    newest = sorted(
        found,
        key=lambda one: one.created.timestamp() if one.created else 0.0,
        reverse=True,
    )
    return sorted(newest, key=lambda one: (ORDER.index(one.state), _place(one)))


def _place(one: Work) -> tuple[str, str, float]:
    """The cluster, the queue and the place there of what waits; what has no place comes after the others."""
    if one.state is not State.WAITING:
        return "", "", 0.0
    return (
        one.cluster,
        one.queue,
        math.inf if one.why.position is None else one.why.position,
    )


def line_in(workloads: Iterable[Workload]) -> list[Workload]:
    """Who waits in a ClusterQueue, in the order in which Kueue looks at them: by priority, then by age."""
    line = [
        one
        for one in workloads
        if one.is_active
        and not one.holds("QuotaReserved")
        and not one.holds("Finished")
    ]
    return sorted(
        line, key=lambda one: (-one.priority, one.ordered_at or NOT_DATED, one.name)
    )


def _facts(piece: Piece, around: Around, events: Events) -> Facts:
    workload = piece.queued
    team_queue = (
        around.team_queues.get((piece.key.namespace, workload.queue))
        if workload
        else None
    )
    name = (workload.cluster_queue if workload else "") or (
        team_queue.cluster_queue if team_queue else ""
    )
    seen = around.queues.get(name)
    queue = seen.queue if seen else None
    return Facts(
        job=job_of(piece.job) if piece.job is not None else None,
        parts=tuple([job_of(one) for one in piece.parts]),
        workload=workload,
        queue=queue,
        team_queue=team_queue,
        line=seen.line_of(workload) if seen and workload else None,
        running=seen.running if seen else (),
        latest_start=seen.latest.get((workload.key.namespace, workload.name))
        if seen and workload
        else None,
        pods=tuple([pod_of(one, events.get(_name(one), ())) for one in piece.pods]),
        events=_events_about(piece, workload, events),
        nodes=around.nodes,
        stop=around.stops.get(uid_of(piece.workload)) if piece.workload else None,
        **around.known(queue),
    )


def _events_about(
    piece: Piece, workload: Workload | None, events: Events
) -> tuple[Event, ...]:
    """Those of the job itself, then those of its Workload; its pods have their own."""
    found = events.get(piece.key.name, ())
    if workload is not None and workload.name != piece.key.name:
        found = [*found, *events.get(workload.name, ())]
    return tuple([one for one in found if one.kind != "Pod"])


def _name(found: Object) -> str:
    return text(part(found, "metadata"), "name")


def _state(facts: Facts, why: Explanation) -> State:
    if why.code in _BY_CODE:
        return _BY_CODE[why.code]
    if why.code in _STOPPED:
        return State.STOPPED
    workload = facts.workload
    if workload is not None:
        if not workload.is_active:
            return State.STOPPED
        return State.STARTING if workload.holds("Admitted") else State.WAITING
    if any(one.phase == "Running" for one in facts.pods):
        return State.RUNNING
    return State.STARTING if facts.pods else State.WAITING


def _before_silence(facts: Facts) -> Facts:
    return replace(facts, cluster=replace(facts.cluster, silent_since=None))


def _held(facts: Facts, state: State) -> int:
    if state in OVER:
        return 0
    workload = facts.workload
    if workload is not None:
        return (
            workload.gpus
            if workload.holds("QuotaReserved") and workload.is_active
            else 0
        )
    return sum(one.gpus for one in _on_nodes(facts))


def _on_nodes(facts: Facts) -> list[Pod]:
    return [one for one in facts.pods if one.node and not one.is_over]

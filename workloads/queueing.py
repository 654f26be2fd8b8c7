"""A cluster's queues: who runs and who waits, what is guaranteed and what is borrowed, and what fits now. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, repeat

from allocations.use.running import Running, running, to_stop
from workloads.grouping import pieces_of
from workloads.listing import line_in
from workloads.observed import JobKey, Node, Queue, Slices, Workload
from workloads.reading.pods import is_over
from workloads.reading.queues import team_queue_of
from workloads.reading.values import (
    Object,
    items,
    moment,
    namespaced_name,
    part,
    text,
    uid_of,
    whole,
)
from workloads.reading.work import Read, key_of, workload_of
from workloads.reasons.waiting import is_gated, is_in_line

# The pods of a Workload, by its uid.
PodsOf = Mapping[str, Sequence[Object]]


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a queue has of one flavor: `guaranteed` is its own, `held` is what its jobs have now.

    `limit` is what it may borrow at most; None is no limit.
    """

    flavor: str
    guaranteed: int
    held: int
    limit: int | None = None

    @property
    def borrowed(self) -> int:
        """GPUs that others may call back."""
        return max(self.held - self.guaranteed, 0)

    @property
    def over_quota(self) -> int:
        """Those of them that it may not even borrow: what still runs there is stopped."""
        return 0 if self.limit is None else max(self.borrowed - self.limit, 0)


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A job that holds GPUs; `may_be_stopped` once others call back everything that its queue borrowed.

    `pods` are there of it or yet to be made, or have ended where nothing more comes; those `on_nodes` have the GPUs
    themselves.
    """

    key: JobKey
    gpus: Mapping[str, int]
    priority: int
    since: datetime | None
    may_be_stopped: bool
    pods: int = 0
    on_nodes: int = 0

    @property
    def is_placed(self) -> bool:
        """Whether it has its GPUs on nodes, and not only its queue's word for them."""
        return 0 < self.pods == self.on_nodes

    @property
    def held(self) -> int:
        """Its GPUs of all flavors."""
        return sum(self.gpus.values())


@dataclass(frozen=True, kw_only=True)
class Waiter:
    """A job that waits in a queue; 1 is the head of its line, None is for one that does not start as it is.

    What does not fit asks for more than the queue has; what is gated comes into the line once somebody approves it.
    """

    key: JobKey
    position: int | None
    gpus: int
    priority: int
    since: datetime | None
    # Those of its GPUs that are MIG slices.
    slices: Slices = ()
    fits: bool = True
    is_gated: bool = False


@dataclass(frozen=True, kw_only=True)
class QueueLine:
    """One ClusterQueue with all that runs and waits in it."""

    shares: Sequence[Share]
    running: Sequence[Holder]
    waiting: Sequence[Waiter]

    @property
    def held(self) -> int:
        """GPUs that its jobs have."""
        return sum(one.held for one in self.running)

    @property
    def guaranteed(self) -> int:
        """GPUs that are its own."""
        return sum(one.guaranteed for one in self.shares)

    @property
    def borrowed(self) -> int:
        """GPUs that its jobs have beyond what is guaranteed."""
        return sum(one.borrowed for one in self.shares)

    @property
    def oldest(self) -> datetime | None:
        """Since when the one that waits longest has been waiting."""
        return min((one.since for one in self.waiting if one.since), default=None)


@dataclass(frozen=True, kw_only=True)
class Room:
    """What is free of a flavor: in all, and on the one node that has most."""

    flavor: str
    free: int
    largest: int


def line_of_queue(
    queue: Queue | None,
    workloads: Sequence[Object],
    *,
    read: Read = workload_of,
    pods: PodsOf | None = None,
) -> QueueLine:
    """A queue as its own object, all Workloads of it and their `pods` say.

    What may be stopped is what Kueue takes back first: lowest priority and newest, until nothing is borrowed.
    """
    pods = pods or {}
    by_uid = {uid_of(one): one for one in workloads}
    work = running(workloads)
    shares = _shares(queue, work)
    stopped = {
        one.uid
        for share in shares
        for one in to_stop(work, share.flavor, share.borrowed)
    }
    holders = [
        _holder(
            one,
            by_uid[one.uid],
            pods.get(one.uid, ()),
            may_be_stopped=one.uid in stopped,
        )
        for one in work
    ]
    return QueueLine(
        shares=shares,
        running=sorted(
            holders, key=lambda one: (one.may_be_stopped, -one.priority, one.key.name)
        ),
        waiting=_waiting(queue, line_in(map(read, workloads))),
    )


def pods_by_workload(
    workloads: Iterable[Object],
    jobs: Iterable[Object],
    pods: Iterable[Object],
    *,
    read: Read = workload_of,
) -> PodsOf:
    """The pods of each Workload of one namespace, by its uid."""
    return {
        uid_of(one.workload): one.pods
        for one in pieces_of(workloads, jobs, pods, read=read)
        if one.workload is not None
    }


def rooms_of(nodes: Iterable[Node], flavors: Iterable[str]) -> list[Room]:
    """What is free of each flavor on nodes that take pods now."""
    free = defaultdict[str, list[int]](list)
    for one in nodes:
        free[one.flavor].append(one.free)
    return [
        Room(flavor=name, free=sum(free[name]), largest=max(free[name], default=0))
        for name in flavors
    ]


def by_queue(
    workloads: Iterable[Object],
    team_queues: Iterable[Object],
    *,
    read: Read = workload_of,
) -> dict[str, list[Object]]:
    """Workloads by their ClusterQueue: as admitted, or by the name of their team's queue; others are left out."""
    leads_to = {
        namespaced_name(one): team_queue_of(one).cluster_queue for one in team_queues
    }
    found = defaultdict[str, list[Object]](list)
    for one in workloads:
        workload = read(one)
        name = workload.cluster_queue or leads_to.get(
            (workload.key.namespace, workload.queue), ""
        )
        if name:
            found[name].append(one)
    return dict(found)


def _shares(queue: Queue | None, work: Iterable[Running]) -> list[Share]:
    """What it has of each flavor, where it has any or its jobs do."""
    guaranteed, held = defaultdict[str, int](int), defaultdict[str, int](int)
    limits: dict[str, int | None] = {}
    for quota in queue.quotas if queue is not None else ():
        guaranteed[quota.flavor] += quota.nominal
        limits[quota.flavor] = quota.borrowing
    for one in work:
        for flavor, gpus in one.gpus.items():
            held[flavor] += gpus
    return [
        Share(
            flavor=name,
            guaranteed=guaranteed[name],
            held=held[name],
            limit=limits.get(name),
        )
        for name in sorted({*guaranteed, *held})
        if guaranteed[name] or held[name]
    ]


def _holder(
    one: Running, found: Object, pods: Sequence[Object], *, may_be_stopped: bool
) -> Holder:
    # Of one that begins anew, its earlier pods say nothing any more.
    there = [each for each in pods if not is_over(each)] or pods
    # Pods that were refused, or are yet to be made, are on no node either.
    wanted = sum(whole(each.get("count")) for each in items(found, "spec", "podSets"))
    missing = max(wanted - len(pods), 0)
    return Holder(
        key=key_of(part(found, "metadata")),
        gpus=one.gpus,
        priority=one.priority,
        since=moment(one.since),
        may_be_stopped=may_be_stopped,
        pods=len(there) + missing,
        on_nodes=sum(bool(text(part(each, "spec"), "nodeName")) for each in there),
    )


def _waiting(queue: Queue | None, found: Iterable[Workload]) -> list[Waiter]:
    """Those in the line with their places, then those that do not start as they are: nobody waits for these."""
    in_line, others = list[Workload](), list[Workload]()
    for one in found:
        (in_line if is_in_line(one, queue) else others).append(one)
    places = chain(range(1, len(in_line) + 1), repeat(None))
    return [
        Waiter(
            key=one.key,
            position=place,
            gpus=one.gpus,
            priority=one.priority,
            since=one.queued_at,
            slices=one.slices,
            fits=queue is None or queue.can_give(one),
            is_gated=is_gated(one),
        )
        for one, place in zip([*in_line, *others], places, strict=False)
    ]

"""From what is known to the links of the chain, each with how many GPUs more it lets through. Pure.

Two questions are asked of the same chain. A *grant* takes GPUs that were promised to nobody; what already runs is no
matter. A *start* takes GPUs on which nothing runs; what was promised to the team and is idle is its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from capacity.chain.facts import Facts, Quota


class Layer(StrEnum):
    """The links, from the subscription down to the pod; an earlier one takes longer to widen."""

    FAMILY = "family"
    REGIONAL = "regional"
    POOL = "pool"
    NODES = "nodes"
    RESERVATION = "reservation"
    PROMISED = "promised"
    QUEUE = "queue"
    NAMESPACE = "namespace"

    @property
    def words(self) -> str:
        """As pages call it."""
        return {
            "family": "Subscription quota of the family",
            "regional": "Subscription quota of the region",
            "pool": "Node pool maximum",
            "nodes": "Nodes now",
            "reservation": "Capacity reservation",
            "promised": "Granted to teams",
            "queue": "ClusterQueue",
            "namespace": "ResourceQuota",
        }[self.value]


class Question(StrEnum):
    """What the chain is asked for."""

    GRANT = "grant"
    START = "start"


@dataclass(frozen=True, kw_only=True)
class Link:
    """One limit in GPUs: how many it allows in all, how many are taken, and how many more it lets through.

    `room` is None for a link that only tells something and stops nothing. `is_shut` is one that lets nothing through,
    whatever is left of it. `seen_at` is None for what the portal itself keeps, which is never old.
    """

    layer: Layer
    name: str
    limit: int
    used: int
    room: int | None
    is_shut: bool = False
    detail: str = ""
    seen_at: datetime | None = None

    @property
    def left(self) -> int:
        """What is not taken."""
        return max(0, self.limit - self.used)

    @property
    def percent(self) -> int:
        """What is taken of it, rounded down; a limit of nothing is all taken."""
        return 100 * self.used // self.limit if self.limit else 100


def links(facts: Facts, question: Question) -> tuple[Link, ...]:
    """The chain from the subscription down, for a question; a link that nobody could read is left out."""
    return tuple(_links(facts, question))


def blocking(chain: Sequence[Link], more: int) -> list[Link]:
    """The links that stop so many GPUs more: the tightest first, of two alike the one further up."""
    order = list(Layer)
    stops = [one for one in chain if one.room is not None and one.room < more]
    return sorted(stops, key=lambda one: (one.room, order.index(one.layer)))


def tightest(chain: Sequence[Link]) -> Link | None:
    """The link with the least room; None where none limits anything."""
    return next(iter(blocking(chain, 10**9)), None)


def limit_for(facts: Facts, layer: Layer, more: int, question: Question) -> int:
    """The vCPUs to which a quota has to be raised for so many GPUs more; `layer` is one of the known quotas."""
    quota = facts.family if layer is Layer.FAMILY else facts.regional
    assert quota is not None  # noqa: S101 - its caller has the link
    assert facts.machine is not None  # noqa: S101
    new = max(0, more + _taken(facts, question) - _standing(facts))
    return quota.taken + -(-new // facts.gpus_per_node) * facts.machine.vcpus


def _taken(facts: Facts, question: Question) -> int:
    """What a new grant or a start cannot have of the GPUs that there are."""
    return facts.promised.granted if question is Question.GRANT else facts.busy


def _links(facts: Facts, question: Question) -> Iterator[Link]:
    taken = _taken(facts, question)
    if facts.machine is not None:
        for layer, quota in (
            (Layer.FAMILY, facts.family),
            (Layer.REGIONAL, facts.regional),
        ):
            if quota is not None:
                yield _quota(layer, quota, facts, taken)
    yield from _pool(facts, taken)
    yield _nodes(facts, question, taken)
    if facts.reserved is not None:
        yield _reservation(facts)
    yield _promised(facts)
    if facts.queue is not None:
        yield _queue(facts, question)
    if facts.namespace is not None:
        held = facts.namespace
        room = held.hard - held.used if question is Question.START else None
        yield Link(
            layer=Layer.NAMESPACE,
            name="team-quota",
            limit=held.hard,
            used=held.used,
            room=None if room is None else max(0, room),
            seen_at=held.seen_at,
        )


def _standing(facts: Facts) -> int:
    """GPUs that need no quota any more: on nodes that stand and can be used, or reserved and idle."""
    unused = facts.reserved.unused if facts.reserved is not None else 0
    return facts.nodes.ready + unused * facts.gpus_per_node


def _quota(layer: Layer, quota: Quota, facts: Facts, taken: int) -> Link:
    machine = facts.machine
    assert machine is not None  # noqa: S101 - its caller has looked
    per_vm, each = machine.vcpus, facts.gpus_per_node
    left = quota.machines_left(machine) * each
    return Link(
        layer=layer,
        name=quota.name,
        limit=quota.limit // per_vm * each,
        # What others take of it is counted in whole machines of this size, upwards.
        used=min(-(-quota.taken // per_vm), quota.limit // per_vm) * each,
        room=max(0, _standing(facts) + left - taken),
        detail=f"{_vcpus(quota)}; {machine.name} has {per_vm}",
        seen_at=quota.seen_at,
    )


def _vcpus(quota: Quota) -> str:
    promised = f", {quota.promised:,} more promised to others" if quota.promised else ""
    return f"{quota.used:,} of {quota.limit:,} vCPUs in {quota.region}{promised}"


def _pool(facts: Facts, taken: int) -> Iterator[Link]:
    pool, each = facts.pool, facts.gpus_per_node
    if pool is None or pool.maximum is None:
        return
    yield Link(
        layer=Layer.POOL,
        name=pool.name,
        limit=pool.maximum * each,
        used=min(pool.nodes, pool.maximum) * each,
        room=max(0, pool.maximum * each - facts.nodes.cordoned - taken),
        detail=f"{pool.nodes} of at most {pool.maximum} nodes",
        seen_at=pool.seen_at,
    )


def _nodes(facts: Facts, question: Question, taken: int) -> Link:
    """Nodes limit what can be had only where no autoscaler adds any."""
    nodes = facts.nodes
    grows = facts.pool is not None and facts.pool.maximum is not None
    known = facts.pool is not None
    is_limit = not grows and (known or facts.promised.obtainable <= nodes.ready)
    parts = [f"{nodes.ready} ready"]
    if nodes.cordoned:
        parts.append(f"{nodes.cordoned} cordoned or not ready")
    return Link(
        layer=Layer.NODES,
        name=facts.pool.name if facts.pool is not None else "",
        limit=nodes.ready + nodes.cordoned,
        used=min(facts.busy + nodes.cordoned, nodes.ready + nodes.cordoned),
        room=max(0, nodes.ready - taken) if is_limit else None,
        detail=", ".join(parts),
        seen_at=nodes.seen_at,
    )


def _reservation(facts: Facts) -> Link:
    reserved = facts.reserved
    assert reserved is not None  # noqa: S101 - its caller has looked
    over = max(0, reserved.used - reserved.machines)
    words = f"{reserved.used} of {reserved.machines} machines in use"
    return Link(
        layer=Layer.RESERVATION,
        name=reserved.name,
        limit=reserved.machines * facts.gpus_per_node,
        used=min(reserved.used, reserved.machines) * facts.gpus_per_node,
        # It guarantees and limits nothing: machines beyond it start where Azure has some.
        room=None,
        detail=f"{words}; {over} more than reserved, without a guarantee"
        if over
        else words,
        seen_at=reserved.seen_at,
    )


def _promised(facts: Facts) -> Link:
    promised = facts.promised
    over = promised.granted - promised.obtainable
    return Link(
        layer=Layer.PROMISED,
        name="",
        limit=promised.obtainable,
        used=promised.granted,
        room=None,
        detail=f"{over} more were granted than can be had"
        if over > 0
        else f"{promised.granted} of {promised.obtainable} that can be had",
    )


def _queue(facts: Facts, question: Question) -> Link:
    queue = facts.queue
    assert queue is not None  # noqa: S101 - its caller has looked
    own, borrowed = (
        max(0, queue.nominal - queue.used),
        max(0, queue.used - queue.nominal),
    )
    lent = min(max(0, queue.borrowable - borrowed), max(0, queue.idle_elsewhere))
    words = f"{queue.nominal} guaranteed, {queue.borrowable} more where others leave them idle"
    room = own + lent if queue.admits else 0
    return Link(
        layer=Layer.QUEUE,
        name=queue.name,
        limit=queue.nominal + queue.borrowable,
        used=queue.used,
        # A grant widens it by itself.
        room=room if question is Question.START else None,
        is_shut=not queue.admits,
        detail=words
        if queue.admits
        else f"{words}; stopped, so that nothing new starts",
        seen_at=queue.seen_at,
    )

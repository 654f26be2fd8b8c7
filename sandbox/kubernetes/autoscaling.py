"""A cluster autoscaler: pods without a node make nodes appear, and nodes without pods go away again.

As the real one, it looks at pods that the scheduler could not place, adds as many nodes of a pool as would place them,
and waits for each to come up; a node that was idle for a while is deleted, down to the pool's least.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sandbox.kubernetes.binding import NODE
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import POD, is_over
from sandbox.kubernetes.placing import Object, place
from sandbox.kubernetes.seeds import NodeSpec, node
from sandbox.kubernetes.store import Change, Store

GROW_SECONDS = 3.0
IDLE_SECONDS = 60.0
ZONE = "topology.kubernetes.io/zone"
WATCHED = frozenset({("", "pods"), ("", "nodes")})


@dataclass(frozen=True)
class NodePool:
    """Nodes that are all alike, between `least` and `most` of them; `each` is one of them, named after the pool.

    With `zones` they are spread over those in turn.
    """

    each: NodeSpec
    least: int
    most: int
    zones: tuple[str, ...] = ()

    def named(self, number: int) -> NodeSpec:
        """The node of a number."""
        zone = {ZONE: self.zones[number % len(self.zones)]} if self.zones else {}
        return replace(
            self.each,
            name=f"{self.each.name}{number:06d}",
            labels={**self.each.labels, **zone},
        )

    def has(self, name: str) -> bool:
        """Whether a node is one of this pool."""
        return name.startswith(self.each.name)


class Autoscaler:
    """Keeps the pools of one store at the size that its pods need; `next_due` says when to come again."""

    def __init__(
        self, store: Store, now: Callable[[], float], pools: Sequence[NodePool]
    ) -> None:
        self._store = store
        self._now = now
        self._pools = tuple(pools)
        # Whether the cloud has one more node for each of these pools, one that stands there twice counting twice.
        self.permits: Callable[[Sequence[NodePool]], bool] = lambda pools: True
        self._is_due = bool(pools)
        self._grows_at: float | None = None
        self._idle_since: dict[str, float] = {}

    @property
    def next_due(self) -> float | None:
        """When nodes come up, or the next idle one goes."""
        idle = [since + IDLE_SECONDS for since in self._idle_since.values()]
        return min(
            [*idle, *([] if self._grows_at is None else [self._grows_at])], default=None
        )

    def react(self, change: Change) -> None:
        """Look again when pods or nodes changed."""
        if change.resource in WATCHED and self._pools:
            self._is_due = True

    def keep(self, pool: NodePool) -> None:
        """Look after a pool from now on, or by other limits than before."""
        self._pools = (
            *(one for one in self._pools if one.each.name != pool.each.name),
            pool,
        )
        self.wake()

    def leave(self, name: str) -> None:
        """Look after the nodes of this name no more; they stay."""
        self._pools = tuple(one for one in self._pools if one.each.name != name)
        self.wake()

    def clear(self) -> None:
        """Look after no nodes any more."""
        self._pools = ()

    def wake(self) -> None:
        """Look again at what waits: the cloud may have more than before."""
        self._is_due = bool(self._pools)

    def resume(self) -> None:
        """Start anew with what a store was filled with."""
        self._grows_at, self._idle_since, self._is_due = None, {}, bool(self._pools)

    def run(self) -> bool:
        """Add and delete nodes whose time has come; True when there were any."""
        due = self.next_due
        if not self._is_due and (due is None or due > self._now()):
            return False
        self._is_due = False
        pods = [dict(pod) for pod in self._store.objects(POD) if not is_over(pod)]
        grew, shrank = self._grow(pods), self._shrink(pods)
        return grew or shrank

    def _grow(self, pods: list[Object]) -> bool:
        wanted = list(self._wanted(pods))
        if not wanted:
            self._grows_at = None
            return False
        if self._grows_at is None:
            self._grows_at = self._now() + GROW_SECONDS
        if self._grows_at > self._now():
            return False
        self._grows_at = None
        permitted = list(self._permitted(wanted))
        for made in permitted:
            metadata = {
                **made["metadata"],
                "uid": str(uuid.uuid4()),
                "creationTimestamp": timestamp(),
            }
            self._store.put(NODE, {**made, "metadata": metadata})
        return bool(permitted)

    def _permitted(self, wanted: Iterable[tuple[NodePool, Object]]) -> Iterator[Object]:
        pools: list[NodePool] = []
        for pool, made in wanted:
            if self.permits([*pools, pool]):
                pools.append(pool)
                yield made

    def _wanted(self, pods: list[Object]) -> Iterator[tuple[NodePool, Object]]:
        """The nodes that pods without one would run on, if they were there, with the pool of each."""
        there = [dict(one) for one in self._store.objects(NODE)]
        placed = list(pods)
        for pod in pods:
            if pod["spec"].get("nodeName") or not _is_unschedulable(pod):
                continue
            name, _ = place(pod, there, placed)
            for pool in () if name else self._pools:
                made = self._next_of(pool, there)
                if made is not None and place(pod, [made], ())[0]:
                    there.append(made)
                    name = made["metadata"]["name"]
                    yield pool, made
                    break
            if name:
                placed.append({**pod, "spec": {**pod["spec"], "nodeName": name}})

    def _next_of(self, pool: NodePool, there: list[Object]) -> Object | None:
        taken = {
            str(one["metadata"]["name"])
            for one in there
            if pool.has(str(one["metadata"]["name"]))
        }
        if len(taken) >= pool.most:
            return None
        free = (pool.named(number) for number in range(pool.most))
        return next(node(spec, timestamp()) for spec in free if spec.name not in taken)

    def _shrink(self, pods: list[Object]) -> bool:
        busy = {pod["spec"].get("nodeName") for pod in pods}
        names = sorted(
            str(one["metadata"]["name"]) for one in self._store.objects(NODE)
        )
        idle: dict[str, float] = {}
        for pool in self._pools:
            mine = [name for name in names if pool.has(name)]
            spare = [name for name in mine if name not in busy][
                : max(0, len(mine) - pool.least)
            ]
            idle |= {name: self._idle_since.get(name, self._now()) for name in spare}
        gone = [
            name for name, since in idle.items() if since + IDLE_SECONDS <= self._now()
        ]
        self._idle_since = {
            name: since for name, since in idle.items() if name not in gone
        }
        for name in gone:
            self._store.remove(NODE, "", name)
        return bool(gone)


def _is_unschedulable(pod: Object) -> bool:
    """Whether the scheduler looked at a pod and found no node for it."""
    conditions = items(part(pod, "status"), "conditions")
    return any(
        one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable"
        for one in conditions
    )

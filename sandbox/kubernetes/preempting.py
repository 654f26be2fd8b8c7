"""Which Workloads have to stop so that another one fits: Kueue's classical preemption. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes.capacity import Cell, Pool, queue_of, used_by
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import found

Object = dict[str, Any]
IN_QUEUE, IN_COHORT = "InClusterQueue", "InCohortReclamation"
WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
WORDS: Mapping[str, str] = {
    IN_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT: "reclamation within the cohort",
    WHILE_BORROWING: "reclamation within the cohort while borrowing",
}


@dataclass(frozen=True)
class Wish:
    """A Workload that does not fit, where it would go, what it would take, and of what there is too little."""

    workload: Object
    queue: Object
    usage: Mapping[Cell, int]
    short: set[Cell]

    @property
    def name(self) -> str:
        """The ClusterQueue it waits in."""
        return str(self.queue["metadata"]["name"])


def victims(
    wish: Wish, running: Sequence[Object], pool: Pool, queues: Mapping[str, Object]
) -> list[tuple[Object, str]]:
    """Who has to stop, and by which rule; nobody where stopping does not help. The pool is left as it was."""
    # Times are whole seconds: of one second the newest comes first, too.
    newest_first = reversed(list(_candidates(wish, running, pool, queues)))
    candidates = list(newest_first)
    candidates.sort(key=lambda one: _order(one, wish.name))
    own = [one for one in candidates if queue_of(one) == wish.name]
    if len(own) == len(candidates):
        return _fewest(wish, own, pool, borrowing=True)
    policy = part(part(part(wish.queue, "spec"), "preemption"), "borrowWithinCohort")
    under = not any(
        pool.borrowed(wish.name, cell, wish.usage[cell]) for cell in wish.short
    )
    if policy.get("policy") == "LowerPriority":
        mine, most = priority(wish.workload), policy.get("maxPriorityThreshold")
        limit = mine - 1 if most is None else min(mine - 1, int(most))
        some = [
            one for one in candidates if under or one in own or priority(one) <= limit
        ]
        chosen = _fewest(wish, some, pool, borrowing=True)
        if chosen:
            return (
                chosen if under else [(one, _borrowing(rule)) for one, rule in chosen]
            )
    if under and (chosen := _fewest(wish, candidates, pool, borrowing=False)):
        return chosen
    return _fewest(wish, own, pool, borrowing=True)


def priority(workload: Object) -> int:
    """The priority of a Workload."""
    return int(part(workload, "spec").get("priority") or 0)


def _borrowing(rule: str) -> str:
    return WHILE_BORROWING if rule == IN_COHORT else rule


def _candidates(
    wish: Wish, running: Iterable[Object], pool: Pool, queues: Mapping[str, Object]
) -> Iterator[Object]:
    policy = part(part(wish.queue, "spec"), "preemption")
    within, reclaim = (
        policy.get("withinClusterQueue", "Never"),
        policy.get("reclaimWithinCohort", "Never"),
    )
    mine, since = priority(wish.workload), _since(wish.workload)
    cohort = pool.cohort(wish.name)
    for one in running:
        place, theirs = queue_of(one), priority(one)
        if not wish.short & set(used_by(one)):
            continue
        if place == wish.name:
            newer = (
                within == "LowerOrNewerEqualPriority"
                and theirs == mine
                and _since(one) > since
            )
            stops = within != "Never" and (theirs < mine or newer)
        else:
            lent = cohort and place in queues and pool.cohort(place) == cohort
            borrows = lent and any(pool.borrowed(place, cell) for cell in wish.short)
            stops = bool(borrows) and (
                reclaim == "Any" or (reclaim != "Never" and theirs < mine)
            )
        if stops:
            yield one


def _since(workload: Object) -> str:
    return str(part(workload, "metadata").get("creationTimestamp") or "")


def _order(workload: Object, queue: str) -> tuple[bool, bool, int, tuple[int, ...]]:
    """Who stops first: already told to, another queue's, the least important, the newest."""
    evicted = found(workload, "Evicted").get("status") == "True"
    admitted = str(found(workload, "QuotaReserved").get("lastTransitionTime") or "")
    newest = tuple(-ord(letter) for letter in admitted)
    return not evicted, queue_of(workload) == queue, priority(workload), newest


def _fewest(
    wish: Wish, candidates: Sequence[Object], pool: Pool, *, borrowing: bool
) -> list[tuple[Object, str]]:
    """Stop one after the other until it fits, then let go on whoever need not have stopped."""
    stopped: list[Object] = []
    fits = False
    for one in candidates:
        place = queue_of(one)
        if place != wish.name and not any(
            pool.borrowed(place, cell) for cell in wish.short
        ):
            continue
        pool.give(place, used_by(one))
        stopped.append(one)
        if fits := _fits(wish, pool, borrowing=borrowing):
            break
    kept = list(stopped)
    if fits:
        for one in stopped[-2::-1]:
            pool.take(queue_of(one), used_by(one))
            if _fits(wish, pool, borrowing=borrowing):
                kept.remove(one)
            else:
                pool.give(queue_of(one), used_by(one))
    for one in kept:
        pool.take(queue_of(one), used_by(one))
    return (
        [(one, IN_QUEUE if queue_of(one) == wish.name else IN_COHORT) for one in kept]
        if fits
        else []
    )


def _fits(wish: Wish, pool: Pool, *, borrowing: bool) -> bool:
    for cell, amount in wish.usage.items():
        if not borrowing and pool.borrowed(wish.name, cell, amount):
            return False
        if amount > pool.available(wish.name, cell):
            return False
    return True

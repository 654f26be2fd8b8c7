"""By when those in a line start, from the time limits of what runs and of what waits ahead. Pure.

Kueue tells no time, and history tells how long others waited. What every run has is a limit: at the latest then its
GPUs are free. So the line is played through once, each starting when enough of the queue's own GPUs are there after
those ahead of it have theirs, and nobody while the cluster is maintained. Kueue may let a smaller one pass, or one of a
higher priority come in between: the time holds unless other work goes first. What nobody can bound, such as a notebook
without a limit, bounds nothing behind it.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.maintenance import Maintenance
from fleet.names import profile_of
from workloads.observed import Queue, QuotaHolder, Workload, by_profile
from workloads.reading.values import is_gpu
from workloads.reasons.messages import decisive
from workloads.reasons.messages import waits_for as flavors_waited_for


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """GPUs of a flavor that a queue has more from a moment on, or fewer where `gpus` is negative."""

    at: datetime
    flavor: str
    gpus: int


def changes_of_grant(
    flavor: str, gpus: int, *, begins: datetime | None, ends: datetime
) -> Iterator[Change]:
    """What a grant changes in its team's queue: it goes at its end, and comes where it has not begun yet."""
    yield Change(at=ends, flavor=flavor, gpus=-gpus)
    if begins is not None:
        yield Change(at=begins, flavor=flavor, gpus=gpus)


@dataclass(frozen=True, kw_only=True, slots=True)
class LineEntry:
    """A job in a line, the GPUs that it takes and how long it may have them, None being for ever.

    Of one that waits for one flavor alone it can be said when it starts; of any other nobody knows which it takes.
    """

    flavors: frozenset[str]
    gpus: int
    limit: timedelta | None
    is_bounded: bool = True


class _Gpus:
    """GPUs of one flavor in a queue, and what changes them in the order in which it comes."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.at: datetime | None = None
        self.is_known = True
        self._changes: list[tuple[datetime, int, int]] = []

    def change(self, at: datetime, gpus: int) -> None:
        """Have so many more from a moment on; of one moment, what comes counts before what goes."""
        heapq.heappush(self._changes, (at, -gpus, gpus))

    def take(self, wanted: int) -> None:
        """Wait until so many are free, and take them; nobody knows when where that never comes."""
        while self.free < wanted and self._changes:
            self.at, _, gpus = heapq.heappop(self._changes)
            self.free += gpus
        self.is_known = self.is_known and self.free >= wanted
        self.free -= wanted


def latest_starts(
    queue: Queue,
    holders: Iterable[QuotaHolder],
    changes: Iterable[Change],
    line: Sequence[LineEntry],
    *,
    now: datetime,
    maintenance: Maintenance | None = None,
) -> list[datetime | None]:
    """By when each in the line starts; None where nobody can say, and where its GPUs are free already.

    A maintenance puts off what would start in it. One that stops what runs changes who is ahead of whom: nothing is
    said of a time after it.

    `changes` are those of the queue's own GPUs, as when an allocation ends. What it borrows counts for nothing: others
    can take that back.
    """
    if queue.is_strict:
        # Its head keeps everybody behind it, also who waits for another kind of GPU.
        return [None] * len(line)
    found = _gpus_by_flavor(queue, holders, now)
    for each in changes:
        if each.flavor in found:
            found[each.flavor].change(max(each.at, now), each.gpus)
    return [_start(one, found, maintenance) for one in line]


def _gpus_by_flavor(
    queue: Queue, holders: Iterable[QuotaHolder], now: datetime
) -> dict[str, _Gpus]:
    found = {one.flavor: _Gpus(queue.own(one.flavor)) for one in queue.quotas}
    for one in holders:
        gpus = found.setdefault(one.flavor, _Gpus(0))
        gpus.free -= one.gpus
        if one.ends_at is not None:
            # What has reached its limit is being stopped.
            gpus.change(max(one.ends_at, now), one.gpus)
    return found


def _start(
    one: LineEntry, found: dict[str, _Gpus], maintenance: Maintenance | None
) -> datetime | None:
    if not one.gpus:
        return None
    if len(one.flavors) != 1 or not one.is_bounded:
        for flavor in one.flavors & found.keys():
            found[flavor].is_known = False
        return None
    gpus = found.setdefault(next(iter(one.flavors)), _Gpus(0))
    gpus.take(one.gpus)
    at = gpus.at
    if at is None or (maintenance and maintenance.drains and at >= maintenance.starts):
        # Where its GPUs are free already, it waits for something else, and nobody knows how long.
        gpus.is_known = False
    if at is None or not gpus.is_known:
        return None
    if maintenance is not None:
        at = maintenance.start_of(at)
    if one.limit is not None:
        gpus.change(at + one.limit, one.gpus)
    return at


def entry_of(one: Workload, queue: Queue, limit: timedelta | None) -> LineEntry:
    """A Workload that waits in a queue, which may be active for so long once it has begun."""
    condition = one.lacks("QuotaReserved")
    message = condition.message if condition is not None else ""
    cause, profiles = decisive(message, queue.groups), by_profile(one.gpus, one.slices)
    possible = frozenset(
        each.flavor for each in queue.quotas if profile_of(each.resource) in profiles
    )
    return LineEntry(
        flavors=flavors_waited_for(message) or possible,
        gpus=one.gpus,
        limit=limit,
        # CPUs and memory of which nothing is counted here.
        is_bounded=len(profiles) == 1 and (cause is None or is_gpu(cause.resource)),
    )

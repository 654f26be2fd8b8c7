"""How much is free from when on, with what ends and what begins: GPUs of a kind, or vCPUs of a quota. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple


class Change(NamedTuple):
    """GPUs, or whatever is counted, that become free at a moment; below zero where a booking takes them."""

    at: datetime
    gpus: int


class Level(NamedTuple):
    """GPUs that are free from a moment on, until the next level; below zero where more was promised than there is."""

    at: datetime
    free: int


def levels(free: int, changes: Iterable[Change], *, now: datetime) -> tuple[Level, ...]:
    """What is free from now on, given what is free now; the first level is that of now."""
    # What is late already counts from now on.
    moved = sorted((max(change.at, now), change.gpus) for change in changes)
    found = [Level(now, free)]
    for at, together in groupby(moved, key=lambda one: one[0]):
        free += sum(gpus for _, gpus in together)
        if at == now:
            found[0] = Level(now, free)
        else:
            found.append(Level(at, free))
    return tuple(found)


def combined(
    known: Iterable[Sequence[Level]], by: Callable[[Sequence[int]], int]
) -> tuple[Level, ...]:
    """Levels that follow at every moment from others of that moment; all of them begin at the same one."""
    known = [*known]
    moments = [[level.at for level in one] for one in known]
    together = sorted({at for one in moments for at in one})
    return tuple(
        Level(
            at,
            by(
                [
                    one[bisect_right(ats, at) - 1].free
                    for one, ats in zip(known, moments, strict=True)
                ]
            ),
        )
        for at in together
    )


def lowest(known: Sequence[Level], *, start: datetime, end: datetime) -> int:
    """The fewest GPUs that are free at any moment from start until before end."""
    standing = [level for level in known if level.at <= start]
    begins = standing[-1:] or known[:1]
    within = [level for level in known if start < level.at < end]
    return min(level.free for level in (*begins, *within))


def earliest(
    known: Sequence[Level],
    *,
    gpus: int,
    length: timedelta,
    since: datetime,
    latest: datetime,
) -> datetime | None:
    """The first moment from which so many are free for so long; None when not up to `latest`."""
    starts = sorted({since, *(level.at for level in known if level.at > since)})
    fitting = (
        at
        for at in starts
        if at <= latest and lowest(known, start=at, end=at + length) >= gpus
    )
    return next(fitting, None)

"""When a notebook server is idle, when people are told, and when it is stopped for it. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# Between the notice and the stop: time to read it, and to come back from lunch for a long threshold.
LEAST_NOTICE, MOST_NOTICE = timedelta(minutes=5), timedelta(minutes=30)


class Reclaim(StrEnum):
    """What a cluster does about idle servers."""

    OFF = "off"
    WARN = "warn"
    ON = "on"

    @property
    def words(self) -> str:
        """As a choice."""
        return {"off": "Leave them", "warn": "Warn their people", "on": "Warn, then stop them"}[self.value]


class Deed(StrEnum):
    """What is due for a server now."""

    NOTHING = "nothing"
    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True, kw_only=True)
class Use:
    """How a ready server was used.

    `active_at` is when its hub last heard of a person or a kernel at work in it, `gpu_busy_at` when its GPUs were last
    seen to compute, None before they did, and where nobody measures them.
    """

    ready_at: datetime
    active_at: datetime | None = None
    gpu_busy_at: datetime | None = None
    warned_at: datetime | None = None
    keep_until: datetime | None = None


def idle_since(use: Use) -> datetime:
    """Since when nobody works with it: neither a person nor a kernel nor its GPUs."""
    return max(filter(None, (use.ready_at, use.active_at, use.gpu_busy_at)))


def notice(threshold: timedelta) -> timedelta:
    """How long before the stop people are told."""
    return min(max(threshold / 4, LEAST_NOTICE), MOST_NOTICE)


def stops_at(use: Use, threshold: timedelta) -> datetime:
    """When it is stopped if nobody uses or keeps it; never before people had the whole time of a notice."""
    since = max(idle_since(use), use.keep_until or use.ready_at)
    due = since + threshold
    return max(due, use.warned_at + notice(threshold)) if use.warned_at else due


def due(use: Use, *, threshold: timedelta | None, mode: Reclaim, now: datetime) -> Deed:
    """What is to be done about a server now; without a threshold, and where the cluster does nothing, nothing.

    Where a cluster only warns, it warns once. What is kept counts as used until then.
    """
    if threshold is None or mode is Reclaim.OFF:
        return Deed.NOTHING
    if use.warned_at is None:
        return Deed.WARN if now >= stops_at(use, threshold) - notice(threshold) else Deed.NOTHING
    return Deed.STOP if mode is Reclaim.ON and now >= stops_at(use, threshold) else Deed.NOTHING

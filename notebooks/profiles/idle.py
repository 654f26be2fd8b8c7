"""When a notebook server is idle, when people are told, and when it is stopped for it. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# Between the notice and the stop: time to read it, and to come back from lunch for a long threshold.
LEAST_NOTICE, MOST_NOTICE = timedelta(minutes=5), timedelta(minutes=30)
# How busy GPUs are is asked every minute; what was measured longer ago is not known any more.
MEASURED_FOR = timedelta(minutes=5)
# Hubs are asked every few seconds; the use of servers whose hub has said nothing for longer is not known any more.
FOLLOWED_FOR = timedelta(minutes=5)


class Reclaim(StrEnum):
    """What a cluster does about idle servers."""

    OFF = "off"
    WARN = "warn"
    ON = "on"

    @property
    def words(self) -> str:
        """As a choice."""
        return {
            "off": "Leave them",
            "warn": "Warn their people",
            "on": "Warn, then stop them",
        }[self.value]


class Deed(StrEnum):
    """What is due for a server now."""

    NOTHING = "nothing"
    WARN = "warn"
    TAKE_BACK = "take_back"
    STOP = "stop"


@dataclass(frozen=True, kw_only=True)
class Use:
    """How a ready server was used.

    `active_at` is when its hub last heard of a person or a kernel at work in it, `gpu_busy_at` when its GPUs were last
    seen to compute, None before they did, and where nobody measures them. Where its cluster has a Prometheus that the
    portal asks, they were measured without a gap from `measured_since` to `measured_at`. Its hub has said without a gap
    how it is used from `followed_since` to `followed_at`; `hub_answers` is whether it did when it was called last.
    """

    ready_at: datetime
    active_at: datetime | None = None
    gpu_busy_at: datetime | None = None
    has_prometheus: bool = False
    measured_since: datetime | None = None
    measured_at: datetime | None = None
    hub_answers: bool = True
    followed_since: datetime | None = None
    followed_at: datetime | None = None
    warned_at: datetime | None = None
    keep_until: datetime | None = None


def idle_since(use: Use) -> datetime:
    """Since when nobody works with it: neither a person nor a kernel nor its GPUs.

    After a gap in what was measured, or in what its hub said, it counts from anew: it may have been used all through.
    """
    measured_since = use.measured_since if use.has_prometheus else None
    return max(
        filter(
            None,
            (
                use.ready_at,
                use.active_at,
                use.gpu_busy_at,
                measured_since,
                use.followed_since,
            ),
        )
    )


def unknown_since(use: Use, now: datetime) -> datetime | None:
    """Since when nobody can tell whether it is used; None where that is known."""
    return min(
        filter(None, (unfollowed_since(use, now), unmeasured_since(use, now))),
        default=None,
    )


def unfollowed_since(use: Use, now: datetime) -> datetime | None:
    """Since when its hub has not said whether somebody works in it; None while it does."""
    # That it was ready, the hub said, too.
    known_until = max(use.ready_at, use.followed_at or use.ready_at)
    return (
        known_until if not use.hub_answers or now - known_until > FOLLOWED_FOR else None
    )


def unmeasured_since(use: Use, now: datetime) -> datetime | None:
    """Since when nobody can tell whether its GPUs compute; None where that is known, and without a Prometheus."""
    if not use.has_prometheus:
        return None
    known_until = use.measured_at or use.ready_at
    return known_until if now - known_until > MEASURED_FOR else None


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

    Where a cluster only warns, it warns once. What is kept counts as used until then. While nobody can tell whether
    it is used, nothing is stopped, and a warning that it is idle is taken back.
    """
    if threshold is None or mode is Reclaim.OFF:
        return Deed.NOTHING
    if unknown_since(use, now) is not None:
        return Deed.TAKE_BACK if use.warned_at is not None else Deed.NOTHING
    if use.warned_at is None:
        return (
            Deed.WARN
            if now >= stops_at(use, threshold) - notice(threshold)
            else Deed.NOTHING
        )
    return (
        Deed.STOP
        if mode is Reclaim.ON and now >= stops_at(use, threshold)
        else Deed.NOTHING
    )

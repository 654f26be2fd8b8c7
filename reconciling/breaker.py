"""A circuit breaker for each target: what kept a worker waiting in vain is called by nobody for a while, then by one.

Without it, the rows of one target that hangs would take every worker for seconds each, all the time. Each process has
a breaker of its own, which opens for longer each time; the row of the target opens it for all workers.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from connectors.errors import ConnectorError, TemporaryError
from reconciling.backoff import Backoff
from reconciling.claims import claim_target, release_target
from reconciling.models import Throttle

LONG_SECONDS = 2.0
PAUSES = Backoff(timedelta(seconds=5), timedelta(seconds=30))
# Longer than any call waits for a first word.
PROBE_SECONDS = 25.0


@dataclass
class Pause:
    """How often in a row this process waited in vain, and until when, by a clock that nobody sets, it calls no more."""

    times: int
    until: float


_pauses: dict[tuple[type[Throttle], object], Pause] = {}


def seconds_here(throttle: Throttle) -> float:
    """How long this process still calls the target no more; 0 when it may."""
    pause = _pauses.get(_key(throttle))
    return max(0.0, pause.until - time.monotonic()) if pause else 0.0


def seconds_everywhere(throttle: Throttle, *, now: datetime) -> float:
    """How long no worker calls the target; 0 when one may."""
    until = throttle.open_until
    return max(0.0, (until - now).total_seconds()) if until else 0.0


def seconds_to_wait(throttle: Throttle, *, now: datetime) -> float:
    """How long this process still has to wait, for its own sake or with all others.

    Once any worker was answered, nobody holds anything against the target.
    """
    if throttle.open_until is None:
        forget(throttle)
    return max(seconds_here(throttle), seconds_everywhere(throttle, now=now))


@contextmanager
def probe(throttle: Throttle, *, now: Callable[[], datetime]) -> Iterator[bool]:
    """Whether the target may be called in the block; while the breaker is half open, by one worker at a time."""
    is_half_open = throttle.open_until is not None
    is_mine = is_half_open and claim_target(throttle, now=now(), seconds=PROBE_SECONDS)
    try:
        yield is_mine or not is_half_open
    finally:
        if is_mine:
            release_target(throttle)


def failed(
    throttle: Throttle, error: ConnectorError, *, seconds: float, now: datetime
) -> bool:
    """Open the breaker, here and for all workers, if a call took so long and had no answer at all; whether it did.

    A refused connection costs nobody any time, and an answer such as 503 says itself when to come back.
    """
    if (
        not isinstance(error, TemporaryError)
        or error.__cause__ is None
        or seconds < LONG_SECONDS
    ):
        return False
    before = _pauses.get(_key(throttle))
    times = before.times + 1 if before else 1
    pause = PAUSES.wait(times).total_seconds()
    _pauses[_key(throttle)] = Pause(times, time.monotonic() + pause)
    open_everywhere(throttle, seconds=pause, now=now)
    return True


def open_everywhere(throttle: Throttle, *, seconds: float, now: datetime) -> None:
    """Have no worker call the target for so long."""
    throttle.ensure()
    throttle.stored.update(open_until=now + timedelta(seconds=seconds))


def forget(throttle: Throttle) -> None:
    """Close this process's own breaker."""
    _pauses.pop(_key(throttle), None)


def close_everywhere(throttle: Throttle) -> bool:
    """Close the breaker for all workers; False when it was closed already."""
    return bool(
        throttle.stored.filter(open_until__isnull=False).update(open_until=None)
    )


def _key(throttle: Throttle) -> tuple[type[Throttle], object]:
    return type(throttle), throttle.pk

"""Which clusters have just kept this process waiting in vain: they are left alone for a while, others get their turn.

Without it, the tenancies of one cluster that hangs would take every worker process for seconds each, all the time.
"""

import time
from dataclasses import dataclass

from connectors.errors import ConnectorError, TemporaryError

LONG = 2.0
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 30.0


@dataclass
class Pause:
    """How long a cluster is left alone; twice as long each time it keeps somebody waiting again."""

    seconds: float
    until: float


_pauses: dict[int, Pause] = {}


def seconds_left(cluster_id: int) -> float:
    """How long the cluster is still left alone; 0 when it may be called."""
    pause = _pauses.get(cluster_id)
    return max(0.0, pause.until - time.monotonic()) if pause else 0.0


def has_answered(cluster_id: int) -> None:
    """Forget what was held against the cluster."""
    _pauses.pop(cluster_id, None)


def kept_waiting(cluster_id: int, error: ConnectorError, *, seconds: float) -> bool:
    """Leave the cluster alone if it took long and gave no answer at all; whether it did.

    A refused connection costs nobody any time, and an answer such as 503 says itself when to come back.
    """
    if not isinstance(error, TemporaryError) or error.__cause__ is None or seconds < LONG:
        return False
    before = _pauses.get(cluster_id)
    pause = min(before.seconds * 2, LONGEST_PAUSE) if before else FIRST_PAUSE
    _pauses[cluster_id] = Pause(pause, time.monotonic() + pause)
    return True

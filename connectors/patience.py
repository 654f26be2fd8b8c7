"""How long one piece of work may still wait for a server that fails now and then, and how long a server asks for."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from secrets import SystemRandom

FIRST_PAUSE = 0.05
MOST_TRIES = 4


class Patience:
    """Seconds to spend on failed calls and the pauses after them, over all calls of one piece of work."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._left = seconds

    def pause(self, tries: int, *, took: float) -> float | None:
        """How long to wait after the n-th try of a call, which took so long; None when it is not worth another."""
        wait = FIRST_PAUSE * 2.0 ** (tries - 1) * SystemRandom().uniform(0.5, 1.5)
        self._left -= took + wait
        return wait if tries < MOST_TRIES and self._left > 0 else None


def seconds(retry_after: str | None) -> float | None:
    """Return a Retry-After header, number or date, as seconds from now; None when absent or unreadable."""
    if not retry_after:
        return None
    with suppress(ValueError):
        wait = float(retry_after)
        return max(0.0, wait) if isfinite(wait) else None
    with suppress(ValueError):
        when = parsedate_to_datetime(retry_after)
        # One that ends with -0000 is UTC, too, and comes without a zone.
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.now(UTC)).total_seconds())
    return None


def seconds_until(epoch: str | None) -> float | None:
    """Return a moment that a header names in seconds since 1970, as seconds from now; None when it names none."""
    with suppress(ValueError):
        moment = float(epoch or "")
        return max(0.0, moment - time.time()) if isfinite(moment) else None
    return None

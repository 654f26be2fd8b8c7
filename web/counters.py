"""Counting calls and sign-ins in the shared cache, so that every process knows of every one.

When the cache does not answer, nothing is counted: a frozen Redis must stop neither the API nor anybody's sign-in.
It is then left alone for a while.
"""

import logging
import time

from django.core.cache import cache

logger = logging.getLogger(__name__)
LEFT_ALONE = 10.0


class Breaker:
    """Remembers, for this process, that the cache failed a moment ago."""

    def __init__(self) -> None:
        self.open_until = 0.0

    def count(self, key: str, *, seconds: int) -> int:
        """One more in this window: how many there are now; 0 while the cache does not answer."""
        if time.monotonic() < self.open_until:
            return 0
        try:
            cache.add(key, 0, timeout=seconds * 2)
            return int(cache.incr(key))
        except Exception as error:
            # Whatever the cache's client raises, and a key that ended between the two calls.
            self.open_until = time.monotonic() + (0 if isinstance(error, ValueError) else LEFT_ALONE)
            logger.warning("rate limits are not counted", extra={"error": type(error).__name__})
            return 0


breaker = Breaker()

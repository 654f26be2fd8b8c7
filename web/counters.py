"""Asking the shared cache, and counting calls and sign-ins in it, so that every process knows of every one.

When the cache does not answer, nothing is counted: a frozen Redis must stop neither the API nor anybody's sign-in.
It is then left alone for a while.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache

logger = logging.getLogger(__name__)
LEFT_ALONE = 10.0
T = TypeVar("T")


class Breaker:
    """Remembers, for this process, that the cache failed a moment ago."""

    def __init__(self) -> None:
        self.open_until = 0.0

    def ask(self, call: Callable[[], T], *, otherwise: T) -> T:
        """What the cache answers to a call; the other value while it does not answer."""
        if time.monotonic() < self.open_until:
            return otherwise
        try:
            return call()
        except Exception as error:
            # Whatever the cache's client raises.
            self.open_until = time.monotonic() + LEFT_ALONE
            logger.warning(
                "the shared cache is left alone", extra={"error": type(error).__name__}
            )
            return otherwise

    def count(self, key: str, *, seconds: int) -> int:
        """One more in this window: how many there are now; 0 while the cache does not answer."""
        return self.ask(lambda: _counted(key, seconds), otherwise=0)


def _counted(key: str, seconds: int) -> int:
    try:
        return int(cache.incr(key))
    except ValueError:
        pass
    # The first of its window, unless another process was the first a moment ago.
    if cache.add(key, 1, timeout=seconds * 2):
        return 1
    try:
        return int(cache.incr(key))
    except ValueError:
        # The key ended between the two calls.
        return 0


breaker = Breaker()

"""How many calls a person may make: counted in the shared cache, so that every process knows of every call.

When the cache does not answer, calls pass: a frozen Redis must not stop the API. It is then left alone for a while.
"""

import logging
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import cache
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

if TYPE_CHECKING:  # the framework's views import this module through the settings
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)
SECONDS = {"s": 1, "min": 60, "h": 3600}
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


class Rate(BaseThrottle):
    """So many calls in a window, by person; `scope` names the entry of settings.RATES."""

    scope = ""
    until = 0.0

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Whether the call is within the limit, which it counts towards."""
        if not self.counts(request):
            return True
        limit, seconds = read_rate(settings.RATES[self.scope])
        now = time.time()
        window = int(now // seconds)
        self.until = (window + 1) * seconds - now
        who = request.user.pk or request.META.get("REMOTE_ADDR", "")
        return breaker.count(f"rate:{self.scope}:{who}:{window}", seconds=seconds) <= limit

    def wait(self) -> float:
        """Seconds until the next window."""
        return self.until

    def counts(self, request: Request) -> bool:
        """Whether this kind of call is counted here."""
        return (request.method in SAFE_METHODS) == (self.scope == "read")


class ReadRate(Rate):
    """Calls that change nothing."""

    scope = "read"


class WriteRate(Rate):
    """Calls that may change something."""

    scope = "write"


def read_rate(text: str) -> tuple[int, int]:
    """(calls, seconds) of a rate such as `120/min`."""
    calls, _, unit = text.partition("/")
    return int(calls), SECONDS[unit]

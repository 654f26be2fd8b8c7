"""How many calls a person may make, as accounts/counting.py counts them."""

import time
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts import counting
from accounts.addresses import address_of

if TYPE_CHECKING:  # the framework's views import this module through the settings
    from rest_framework.views import APIView

SECONDS = {"s": 1, "min": 60, "h": 3600}


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
        who = request.user.pk or address_of(request.META)
        return counting.breaker.count(f"rate:{self.scope}:{who}:{window}", seconds=seconds) <= limit

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

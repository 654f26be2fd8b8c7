"""How many calls a person may make, as web/counters.py counts them."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from web import counters as counting
from web.addresses import address_of

if TYPE_CHECKING:  # the framework's views import this module through the settings
    from rest_framework.views import APIView

# The API counts for itself, the stream is one long call, and the rest is for probes and for whoever wants to leave.
UNCOUNTED = re.compile(
    r"^/(api/|static/|healthz$|readyz$|metrics$|sign-in|sign-out|events$)"
)
SECONDS = {"s": 1, "min": 60, "h": 3600}


class Rate(BaseThrottle):
    """So many calls in a window, by person; `scope` names the entry of settings.RATES."""

    scope = ""
    until = 0.0

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Whether the call is within the limit, which it counts towards."""
        if changes_nothing(request, view) != (self.scope == "read"):
            return True
        who = request.user.pk or address_of(request.META)
        self.until = seconds_to_wait(self.scope, who, rate=settings.RATES[self.scope])
        return not self.until

    def wait(self) -> float:
        """Seconds until the next window."""
        return self.until


def changes_nothing(request: Request, view: "APIView") -> bool:
    """Whether a call reads, or is one of its endpoint's `previews`, which are sent while somebody types."""
    return request.method in SAFE_METHODS or getattr(view, "action", None) in getattr(
        view, "previews", ()
    )


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


def seconds_to_wait(counter: str, who: object, *, rate: str) -> float:
    """Count a call of somebody; 0 when it is within the rate, else the seconds until the next window."""
    limit, seconds = read_rate(rate)
    now = time.time()
    window = int(now // seconds)
    if (
        counting.breaker.count(f"rate:{counter}:{who}:{window}", seconds=seconds)
        <= limit
    ):
        return 0.0
    return (window + 1) * seconds - now


class PageRateMiddleware:
    """The same rates for pages, counted apart from the API's; who is not signed in gets no page to count."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Answer 429 with what was typed, ready to be sent again; None lets the view answer."""
        # The address first: a probe's answer needs no database, whatever cookie comes with it.
        if UNCOUNTED.match(request.path) or not request.user.is_authenticated:
            return None
        name = (request.resolver_match.url_name if request.resolver_match else "") or ""
        # A preview is sent while somebody types, and changes nothing.
        reads = request.method in SAFE_METHODS or name.endswith("preview")
        scope = "read" if reads else "write"
        wait = seconds_to_wait(
            f"page-{scope}", request.user.pk, rate=settings.RATES[scope]
        )
        return too_many(request, wait) if wait else None


def too_many(request: HttpRequest, wait: float) -> HttpResponse:
    """The page that says when to go on; a form that was sent stands in it, to be sent again with one button."""
    typed = [
        (name, value)
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in values
    ]
    seconds = int(wait) + 1
    context = {"seconds": seconds, "typed": typed, "sent": request.method == "POST"}
    response = render(request, "errors/429.html", context, status=429)
    response["Retry-After"] = str(seconds)
    detail = f"Too many calls: go on in {seconds} seconds."
    response.refusal = {"detail": detail, "code": "throttled"}  # type: ignore[attr-defined]
    return response

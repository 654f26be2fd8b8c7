"""Probes ask a web server by the address of its pod or machine, and over HTTP: neither is what people type."""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PROBES = frozenset({"/healthz", "/readyz"})


class ProbeMiddleware:
    """Take probes as if they had come by the public address: the two answers tell nobody anything else than others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info in PROBES:
            asked = urlsplit(settings.PUBLIC_URL)
            request.META["HTTP_HOST"] = asked.netloc
            request.META["HTTP_X_FORWARDED_PROTO"] = asked.scheme
        return self.get_response(request)

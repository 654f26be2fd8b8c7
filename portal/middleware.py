"""What happens around every request: an id, a sign-in, and a memory of what was refused."""

import re
import uuid
from collections.abc import Callable
from urllib.parse import urlencode

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from accounts.models import User
from audit.actors import NOBODY
from audit.log import refuse

Handler = Callable[[HttpRequest], HttpResponse]
REFUSED = frozenset({400, 403, 404, 405, 409, 412, 415, 422, 428, 429})
# Whoever may see a page without signing in; everything under /api/ and the event stream answer 401 themselves.
OPEN = re.compile(r"^/(api/|static/|healthz$|readyz$|sign-in|events$|\.well-known/)")


class RequestIdMiddleware:
    """Give every request an id that stands in its answer, its log lines and its audit events."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if re.fullmatch(r"[A-Za-z0-9._-]{8,64}", given) else uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response


class SignInRequiredMiddleware:
    """Send whoever is not signed in to the sign-in page, and back afterwards."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated or OPEN.match(request.path):
            return self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseRedirect(reverse(settings.LOGIN_URL))
        target = request.get_full_path()
        return HttpResponseRedirect(f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': target})}")


class RefusalMiddleware:
    """Leave an audit event for every change that was asked for and refused, whoever refused it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method not in ("GET", "HEAD", "OPTIONS") and response.status_code in REFUSED:
            said = getattr(response, "refusal", {})
            user = getattr(request, "api_user", None) or request.user
            refuse(
                actor=user.as_actor() if isinstance(user, User) else NOBODY,
                reason=str(said.get("detail", response.reason_phrase)),
                where=request.resolver_match.route[:64] if request.resolver_match else "unknown",
                method=request.method,
                status=response.status_code,
                code=said.get("code"),
                fields=said.get("fields"),
            )
        return response

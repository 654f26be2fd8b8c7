"""What happens around every request: an id, a sign-in, and a memory of what was refused."""

import re
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import structlog
from django.conf import settings
from django.contrib.auth import logout
from django.core.exceptions import BadRequest
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from accounts import sessions
from accounts.addresses import address_of
from accounts.models import User
from audit.log import refuse
from portal import kept_forms
from portal.losses import GONE

logger = structlog.get_logger(__name__)
LOOKS_AGAIN = 2
Handler = Callable[[HttpRequest], HttpResponse]
REFUSED = frozenset({400, 403, 404, 405, 409, 412, 415, 422, 428, 429})
# A decision that waits for the directory is answered with 503, and a refusal may lead to another page: those say so.
REFUSED_WHEN_SAID = frozenset({302, 503})
# What failed by itself is no refusal: it stands in the log, and may be what keeps an event from being written.
FAILED = frozenset({"busy", "database_away", "database_full", "outside_system_away"})
# Whoever may see a page without signing in; everything under /api/ and the event stream answer 401 themselves.
OPEN = re.compile(r"^/(api/|static/|healthz$|readyz$|sign-in|session$|events$|\.well-known/)")


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


class NoStoreMiddleware:
    """Keep every answer out of caches unless it says itself how long it may stay: almost all are for one person."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if "no-store" not in response.get("Cache-Control", ""):
            response["Cache-Control"] = "private, no-store"
        return response


class LookAgainMiddleware:
    """Answer a read anew whose database connection was lost under it; a change is left to whoever asked for it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for _ in range(LOOKS_AGAIN):
            if request.method not in ("GET", "HEAD") or getattr(response, "loss", None) is not GONE:
                break
            connection.close_if_unusable_or_obsolete()
            response = self.get_response(request)
        return response


class StorableMiddleware:
    """Refuse the address of a page with a NUL in it, which no database keeps and no search can look for."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get("QUERY_STRING", "") and not request.path.startswith("/api/"):
            raise BadRequest("NUL in the address")
        return self.get_response(request)


class SignInRequiredMiddleware:
    """Send whoever is not signed in to the sign-in page, and back afterwards; nothing they typed is lost."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if OPEN.match(request.path) or _is_signed_in(request):
            return self.get_response(request)
        if request.headers.get("HX-Request") == "true":
            # A part of a page: a redirect would put the sign-in page into its place.
            return HttpResponse(status=401, headers={"HX-Reswap": "none", "HX-Trigger": "session-ended"})
        if request.method in ("GET", "HEAD"):
            return _to_sign_in(request.get_full_path())
        kept = kept_forms.kept_form(request)
        return kept_forms.ended_page(request, kept) if kept else _to_sign_in(kept_forms.page_of(request))


def _is_signed_in(request: HttpRequest) -> bool:
    """Whether the session holds; it ends here when its time is over."""
    if not request.user.is_authenticated:
        return False
    # What a live page fetches by itself is not its person's work.
    by_itself = request.method == "GET" and request.headers.get("HX-Request") == "true"
    if sessions.keep(request.session, now=timezone.now(), active=not by_itself):
        return True
    logout(request)
    return False


def _to_sign_in(target: str) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': target})}")


class RefusalMiddleware:
    """Leave an audit event for every change that somebody asked for and was refused, whoever refused it.

    Who is nobody is only logged: the audit log is for ever and takes one event at a time, and anybody could fill it.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method in ("GET", "HEAD", "OPTIONS") or not _is_refused(response):
            return response
        said, user = getattr(response, "refusal", {}), _caller(request)
        told: dict[str, Any] = {
            "where": request.resolver_match.route[:64] if request.resolver_match else "unknown",
            "method": request.method,
            "status": response.status_code,
            "code": said.get("code"),
        }
        if isinstance(user, User):
            reason = str(said.get("detail", response.reason_phrase))
            refuse(actor=user.as_actor(), reason=reason, fields=said.get("fields"), **told)
        else:
            logger.warning("refused to somebody not signed in", address=address_of(request.META), **told)
        return response


def _caller(request: HttpRequest) -> object:
    """Who called the API, else whose browser it is."""
    return getattr(request, "api_user", None) or request.user


def _is_refused(response: HttpResponse) -> bool:
    if response.status_code in REFUSED:
        return True
    said = getattr(response, "refusal", {})
    return response.status_code in REFUSED_WHEN_SAID and bool(said) and said.get("code") not in FAILED

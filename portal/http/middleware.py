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
from accounts.models import User
from audit.log import refuse
from portal.http import kept_forms
from portal.http.called_about import called_about
from portal.http.database_errors import GONE
from web import refusal_events
from web.addresses import address_of

logger = structlog.get_logger(__name__)
LOOKS_AGAIN = 2
# Of the address that was called, so that an event says what it was about.
LONGEST_PATH = 200
Handler = Callable[[HttpRequest], HttpResponse]
REFUSED = frozenset({400, 403, 404, 405, 409, 412, 415, 422, 428, 429})
# A decision that waits for the directory is answered with 503, and a refusal may lead to another page: those say so.
REFUSED_WHEN_SAID = frozenset({302, 503})
# What failed by itself is no refusal: it stands in the log, and may be what keeps an event from being written.
FAILED = frozenset({"busy", "database_away", "database_full", "outside_system_away"})
# Whoever may see a page without signing in; everything under /api/ and the event stream answer 401 themselves.
# What Git clones of a development container is opened by the signature in its address.
OPEN = re.compile(
    r"^/(api/|static/|healthz$|readyz$|workz$|metrics$|sign-in|session$|events$|\.well-known/|devcontainers/)"
)


class RequestIdMiddleware:
    """Give every request an id that stands in its answer, its log lines and its audit events."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        request_id = (
            given if re.fullmatch(r"[A-Za-z0-9._-]{8,64}", given) else uuid.uuid4().hex
        )
        request.request_id = request_id  # type: ignore[attr-defined]
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            response = self.get_response(request)
        finally:
            # Nothing that follows in this thread is done with this call's token.
            structlog.contextvars.unbind_contextvars("called_with")
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
            if (
                request.method not in ("GET", "HEAD")
                or getattr(response, "loss", None) is not GONE
            ):
                break
            connection.close_if_unusable_or_obsolete()
            response = self.get_response(request)
        return response


class StorableMiddleware:
    """Refuse the address of a page with a NUL in it, which no database keeps and no search can look for."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get(
            "QUERY_STRING", ""
        ) and not request.path.startswith("/api/"):
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
            return HttpResponse(
                status=401, headers={"HX-Reswap": "none", "HX-Trigger": "session-ended"}
            )
        if request.method in ("GET", "HEAD"):
            return _to_sign_in(request.get_full_path())
        kept = kept_forms.kept_form(request)
        return (
            kept_forms.ended_page(request, kept)
            if kept
            else _to_sign_in(kept_forms.page_of(request))
        )


def _is_signed_in(request: HttpRequest) -> bool:
    """Whether the session holds; it ends here when its time is over."""
    if not request.user.is_authenticated:
        return False
    # What a live page fetches by itself, or a form that stays open asks each minute, is not its person's work.
    fetched = request.method == "GET" and request.headers.get("HX-Request") == "true"
    by_itself = fetched or request.headers.get("QM-By-Clock") == "true"
    if sessions.keep(request.session, now=timezone.now(), active=not by_itself):
        return True
    logout(request)
    return False


def _to_sign_in(target: str) -> HttpResponse:
    return HttpResponseRedirect(
        f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': target})}"
    )


class RefusalMiddleware:
    """Remember every change that somebody asked for and was refused, whoever refused it; who only looks is counted.

    What a person had no right to, or what did not fit an object as it is, becomes an audit event. A typing error or one
    call too many touched no object: it becomes a line in the log and adds to a count, because the audit log is kept for
    ever and every event waits for the one before. Who is nobody is only logged.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not _is_refused(response):
            return response
        if request.method in ("GET", "HEAD", "OPTIONS"):
            _count_look(request, response)
            return response
        refusal, user = getattr(response, "refusal", {}), _caller(request)
        details: dict[str, Any] = {
            "where": request.resolver_match.route[:64]
            if request.resolver_match
            else "unknown",
            "path": request.path[:LONGEST_PATH],
            "method": request.method,
            "status": response.status_code,
            "code": refusal.get("code"),
        }
        if not isinstance(user, User):
            address = address_of(request.META)
            logger.warning(
                "refused to somebody not signed in", address=address, **details
            )
        elif _touched_an_object(request, response) and refusal_events.may_become_event(
            user.as_actor()
        ):
            about = called_about(request.path)
            refuse(
                actor=user.as_actor(),
                reason=str(refusal.get("detail", response.reason_phrase)),
                about=about and (about.kind, about.pk),
                team_id=about and about.team_id,
                fields=refusal.get("fields"),
                **details,
            )
        else:
            refusal_events.log_and_count(
                user.as_actor(), fields=refusal.get("fields") or (), **details
            )
        return response


def _count_look(request: HttpRequest, response: HttpResponse) -> None:
    """Count that somebody looked for what is not theirs, so that an auditor sees who tries many addresses."""
    is_known = request.resolver_match is not None
    if response.status_code in (403, 404) and is_known:
        user = _caller(request)
        if isinstance(user, User):
            refusal_events.count(user.as_actor(), response.status_code)


def _touched_an_object(request: HttpRequest, response: HttpResponse) -> bool:
    """Whether a right was missing, or an object was not as it had to be; an address that leads nowhere has neither."""
    if response.status_code == 404:
        return request.resolver_match is not None
    return (
        response.status_code in (403, 409, 412)
        or response.status_code in REFUSED_WHEN_SAID
    )


def _caller(request: HttpRequest) -> object:
    """Who called the API, else whose browser it is."""
    return getattr(request, "api_user", None) or request.user


def _is_refused(response: HttpResponse) -> bool:
    if response.status_code in REFUSED:
        return True
    said = getattr(response, "refusal", {})
    return (
        response.status_code in REFUSED_WHEN_SAID
        and bool(said)
        and said.get("code") not in FAILED
    )

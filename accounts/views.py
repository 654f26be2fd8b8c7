"""Signing in with Entra ID, and out again by POST."""

from functools import partial
from urllib.parse import urlencode, urlsplit

import structlog
from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from accounts import actions
from accounts.directory.client import entra, graph
from accounts.models import User
from audit.actors import Actor
from audit.events import Kind
from audit.log import refuse
from connectors.entra import Claims, SignInRefused
from connectors.errors import ConnectorError, PermanentError
from web import counters as counting
from web.addresses import address_of

logger = structlog.get_logger(__name__)
FLOW = "entra_flow"
NEXT = "entra_next"
HINT = "entra_hint"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
BACKEND = "accounts.backends.EntraBackend"


@never_cache
@require_safe
def sign_in(request: HttpRequest) -> HttpResponse:
    """Say what this is, with one button; a person already signed in goes on at once.

    Whoever came by another name of this machine than the portal's goes to that first, where Entra ID sends them back.
    """
    target = safe_target(request, request.GET.get("next", ""))
    if request.user.is_authenticated:
        return HttpResponseRedirect(target)
    if _is_other_name(request):
        there = f"{settings.PUBLIC_URL}{reverse('sign-in')}"
        return HttpResponseRedirect(f"{there}?{urlencode({'next': target})}")
    return render(request, "accounts/sign_in.html", {"next": target})


@never_cache
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to Entra ID, remembering state, nonce and PKCE verifier in the session."""
    if _too_many(request):
        return _refused(
            request,
            429,
            "too_many",
            "Too many sign-ins from here. Wait a minute and try again.",
        )
    try:
        flow = entra().start_sign_in(_callback())
    except ConnectorError as error:
        return _refused(
            request, 503, "directory_away", f"Entra ID does not answer: {error.message}"
        )
    request.session[FLOW] = flow
    request.session[NEXT] = safe_target(request, request.POST.get("next", ""))
    return HttpResponseRedirect(flow["auth_uri"])


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Check what Entra ID answered, take the person over, and start a session with a new key."""
    flow = request.session.pop(FLOW, {})
    target = request.session.pop(NEXT, "/")
    claims = None
    try:
        claims = entra().finish_sign_in(flow, request.GET.dict())
        groups = actions.groups_from(claims, graph())
        known = graph().person(claims.oid)
    except SignInRefused as error:
        return _refused(request, 400, error.code, error.message)
    except PermanentError as error:
        return _refused(request, 403, error.code or "refused", error.message, claims)
    except ConnectorError as error:
        message = f"The directory does not answer: {error.message}"
        return _refused(request, 503, "directory_away", message, claims)
    disabled = partial(_refused, request, 403, "account_disabled", who=claims)
    if known is None or not known.enabled:
        return disabled("This account is disabled. Ask your administrator.")
    user = actions.take_over(
        claims, groups=groups, now=timezone.now(), address=known.email
    )
    if not user.is_active:
        return disabled("This account is disabled. Ask a platform lead.")
    login(request, user, backend=BACKEND)
    request.session[HINT] = claims.login_hint
    actions.signed_in(user)
    return HttpResponseRedirect(safe_target(request, target))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session here, then at Entra ID."""
    user, hint = request.user, str(request.session.get(HINT, ""))
    if isinstance(user, User):
        actions.signed_out(user)
    logout(request)
    after = settings.PUBLIC_URL + reverse("sign-in")
    try:
        return HttpResponseRedirect(entra().sign_out_url(after, hint))
    except ConnectorError:
        # The session here has ended; that Entra ID cannot be told must not keep anybody signed in.
        return redirect("sign-in")


def safe_target(request: HttpRequest, target: str) -> str:
    """The path to go on to, home for anything that leads elsewhere."""
    plain = target.strip()
    if (
        not plain.startswith("/")
        or "\\" in plain
        or plain.startswith("//")
        or "%2f%2f" in plain.lower()
    ):
        return "/"
    allowed = url_has_allowed_host_and_scheme(
        plain, allowed_hosts={request.get_host()}, require_https=False
    )
    return plain if allowed else "/"


def _is_other_name(request: HttpRequest) -> bool:
    """Whether the browser calls this machine by another of its names for itself than the portal's address has.

    A browser keeps cookies for localhost and for 127.0.0.1 apart, so the session in which a sign-in began would be gone
    when Entra ID sends the person back. A proxy may ask by any name, so nobody else is sent anywhere.
    """
    asked = urlsplit(f"//{request.get_host()}").hostname
    ours = urlsplit(settings.PUBLIC_URL).hostname
    return asked != ours and {asked, ours} <= LOOPBACK


def _callback() -> str:
    return settings.PUBLIC_URL + reverse("sign-in-callback")


def _too_many(request: HttpRequest) -> bool:
    """Whether this address has started more sign-ins in this minute than the rate allows (shared by all processes)."""
    limit = int(settings.RATES["sign-in"].split("/")[0])
    minute = timezone.now().strftime("%H%M")
    key = f"sign-in:{address_of(request.META)}:{minute}"
    return counting.breaker.count(key, seconds=60) > limit


def _refused(
    request: HttpRequest,
    status: int,
    code: str,
    message: str,
    who: Claims | None = None,
) -> HttpResponse:
    """The page that says why nobody is signed in; an audit event too when Entra ID has said who it would have been."""
    logger.warning("sign-in refused", code=code, address=address_of(request.META))
    # Who is nobody leaves no event: anybody could fill the audit log, and hold its one lock.
    if who is not None:
        refuse(
            actor=Actor("person", who.oid, who.name),
            reason=message,
            where="sign-in",
            kind=Kind.SIGN_IN_REFUSED,
            code=code,
        )
    context = {
        "status": status,
        "title": "You are not signed in",
        "detail": message,
        "code": code,
    }
    return render(request, "accounts/sign_in_refused.html", context, status=status)

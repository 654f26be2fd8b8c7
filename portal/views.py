"""Home, health and the little things of the frame."""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import visitor
from accounts.views import safe_target
from onboarding.fragments import found_groups
from portal.context import THEMES, decides
from portal.context import rail as places_of
from portal.models import LATE_AFTER, last_pulse
from portal.pages import home_board
from workloads.watching import feeds

A_YEAR = 365 * 24 * 3600


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What I hold, what waits and why, what needs me, and asking again."""
    user = visitor(request)
    board = home_board.board(user, decides=decides(request, user), now=timezone.now())
    if board["decides"]:
        # The frame shows the number too.
        request.awaiting = board["decide"][0]["in_all"] if board["decide"] else 0  # type: ignore[attr-defined]
    # Whoever has no team sees which of their groups could become one.
    is_new = not board["has_team"] and not board["decides"]
    groups: Mapping[str, object] = (
        found_groups(user, text="", chosen="") if is_new else {}
    )
    return render(request, "portal/home.html", {**board, **groups})


@require_safe
def rail(request: HttpRequest) -> HttpResponse:
    """The rail with its counts of now, for the page that shows it."""
    user, at = (
        visitor(request),
        urlsplit(request.headers.get("HX-Current-URL", "")).path,
    )
    places = places_of(user, at, decides=decides(request, user))
    return render(request, "parts/rail_list.html", {"rail": places})


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Alive: answers without asking anything else."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Ready: the database answers; 503 while it does not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return JsonResponse({"database": type(error).__name__}, status=503)
    return JsonResponse({"database": "ok"})


@require_safe
def workz(request: HttpRequest) -> HttpResponse:
    """At work: workers and watcher do what the clock asks for; 503 while one of them does not, with since when.

    For monitoring, not for a load balancer: pages are served without them.
    """
    now = timezone.now()
    workers, (is_unwatched, since) = last_pulse(), feeds.unwatched(now=now)
    is_late = workers is None or workers < now - LATE_AFTER
    answer = {
        "workers": _since(workers) if is_late else "ok",
        "watcher": _since(since) if is_unwatched else "ok",
    }
    return JsonResponse(answer, status=503 if is_late or is_unwatched else 200)


def _since(at: datetime | None) -> str:
    return "never seen" if at is None else f"not since {at:%Y-%m-%dT%H:%M:%SZ}"


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or system in a cookie, so that the next page is drawn in it at once."""
    response = HttpResponseRedirect(safe_target(request, request.POST.get("next", "")))
    chosen = request.POST.get("theme", "system")
    if chosen in THEMES:
        response.set_cookie(
            "qm_theme", chosen, max_age=A_YEAR, samesite="Lax", httponly=True
        )
    return response

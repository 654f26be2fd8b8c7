"""The directory: whether it answers and is believed, what it took, and the two answers of a platform lead."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_user import STATUS, visitor
from accounts.directory import actions as restoring
from accounts.directory import backstage
from accounts.models import (
    AccessLoss,
    Contact,
    DirectoryBrake,
    Doubt,
    RoleHeld,
    SeatFill,
    User,
)
from accounts.roles import Permission, Role
from web.refusals import BadInput, Refused

MAX_ROWS = 50


class Holders(NamedTuple):
    """Those who have a role, and how many more there are than are named."""

    role: str
    names: list[str]
    more: int


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def directory(request: HttpRequest) -> HttpResponse:
    """GET shows what the directory took and would take; POST lets it take effect, or gives everything back."""
    user = visitor(request)
    if not user.may(Permission.SEE_AUDIT):
        raise PermissionDenied("Leads and auditors see what the directory took.")
    refusal, status = "", 200
    if request.method == "POST":
        try:
            messages.success(request, _act(request, user))
            return HttpResponseRedirect(reverse("directory"))
        except Refused as refused:
            refusal, status = refused.message, STATUS[refused.sort]
    context = _context() | {
        "refusal": refusal,
        "may_act": user.may(Permission.MANAGE_ACCESS),
    }
    return render(request, "accounts/directory.html", context, status=status)


def _act(request: HttpRequest, user: User) -> str:
    """Do what was chosen and say what follows; raises Refused."""
    now = timezone.now()
    if request.POST.get("do") == "release":
        restoring.release(by=user, now=now)
        return "It takes effect as each of them is looked at, within five minutes."
    if request.POST.get("do") != "restore":
        raise BadInput("Choose what to do.", code="invalid")
    since = _moment(request.POST.get("since", ""))
    people = {loss.user_id for loss in restoring.restore(since=since, by=user, now=now)}
    return (
        f"{len(people)} people have their access back."
        if len(people) > 1
        else "One person has access back."
    )


def _moment(text: str) -> Any:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise BadInput("Name the moment since when.", code="invalid", field="since")
    return found


def _holders() -> list[Holders]:
    """Who has each role that does more than a member does, by name; at most so many of each."""
    rows = RoleHeld.objects.filter(user__is_active=True).select_related("user")
    names: dict[str, list[str]] = {}
    for row in rows.order_by("user__name"):
        names.setdefault(row.role, []).append(row.user.name)
    return [
        Holders(
            role.words,
            names.get(role, [])[:MAX_ROWS],
            len(names.get(role, [])[MAX_ROWS:]),
        )
        for role in (Role.PLATFORM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR)
    ]


def _context() -> dict[str, object]:
    doubts = Doubt.objects.select_related("user")
    losses = AccessLoss.objects.select_related("user", "restored_by")
    return {
        "contact": Contact.objects.filter(pk=1).first(),
        "brake": DirectoryBrake.objects.open().first(),
        "earlier": DirectoryBrake.objects.exclude(answer="").select_related(
            "answered_by"
        )[:10],
        "doubts": doubts[:MAX_ROWS],
        "doubt_count": doubts.count(),
        "seats": SeatFill.objects.all(),
        "holders": _holders(),
        "losses": losses.prefetch_related("tokens")[:MAX_ROWS],
        "backstage": backstage.state(),
    }

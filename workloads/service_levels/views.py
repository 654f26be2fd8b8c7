"""Pages of service levels: how services stand, one of them, and what is promised of it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_user import (
    add_refusal,
    sent,
    visible_team,
    visitor,
    visitor_whom,
    with_refusal,
)
from accounts.idempotency import new_key, once
from accounts.models import Team, User
from approvals.models import Request
from provisioning.models import Tenancy
from web.refusals import Refused
from workloads.service_levels import actions, page
from workloads.service_levels.forms import PromiseForm, ServiceForm
from workloads.service_levels.models import ServiceLevel
from workloads.service_levels.standing import present_levels, standings

FORM_METHODS = ("GET", "HEAD", "POST")
# Of a value that the form has under another name.
SHOWN_AT = {"tenancy": "place"}


@require_safe
def service_levels(request: HttpRequest) -> HttpResponse:
    """How the services stand that the person may see, the most pressing first."""
    user, now = visitor(request), timezone.now()
    teams = list(Team.objects.visible_to(user).order_by("name"))
    form = page.TeamFilter(request.GET, teams=teams)
    rows, team = present_levels(user), None
    if not form.is_valid():
        rows = rows.none()
    elif slug := form.cleaned_data["team"]:
        team = next(one for one in teams if one.slug == slug)
        rows = rows.filter(tenancy__team=team)
    found = standings(rows, now=now)
    context = {
        "filter": form,
        **page.listed(found, is_filtered=team is not None),
        "add": page.add_links(user, team, teams),
    }
    return render(request, "workloads/service_levels.html", context)


@require_safe
def service_level(request: HttpRequest, pk: int) -> HttpResponse:
    """One service: what it promises, what was answered of its requests day by day, and what is left of its budget."""
    user, level = visitor(request), _visible(request, pk)
    [standing] = standings(ServiceLevel.objects.filter(pk=level.pk), now=timezone.now())
    context = {
        **page.one(standing, viewer=user),
        "may_set": actions.may_set(user, level.team),
    }
    return render(request, "workloads/service_level.html", context)


@require_safe
def request_service_level(request: HttpRequest, pk: int) -> HttpResponse:
    """From what somebody asked for to the service that runs on it, or to where it is measured from now on."""
    user = visitor(request)
    asked = get_object_or_404(
        Request.objects.visible_to(user).select_related("team", "tenancy"), pk=pk
    )
    levels = present_levels(user).filter(request__in=page.with_earlier(asked))
    found = [*levels.values_list("pk", flat=True)[:2]]
    if len(found) == 1:
        return redirect("service-level", found[0])
    is_here = asked.tenancy is not None and asked.tenancy.is_here
    if not found and is_here and actions.may_set(user, asked.team):
        return redirect(page.add_link(asked))
    return redirect(page.of_team(asked.team))


@require_http_methods(FORM_METHODS)
def service_level_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Have another Service of the team measured."""
    user = visitor(request)
    team = visible_team(user, slug)
    visitor_whom(request, lambda person: actions.check_may_set(person, team))
    places = Tenancy.objects.here().filter(team=team).select_related("cluster")
    form = ServiceForm(sent(request), places=places, known=request.GET.dict())
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                return redirect(_added(form.cleaned_data, user, team))
            except Refused as refusal:
                status = add_refusal(form, refusal, shown_at=SHOWN_AT)
    context = {
        "team": team,
        "form": form,
        "token": new_key(),
        "has_places": bool(places),
    }
    response = render(
        request, "workloads/service_level_new.html", context, status=status
    )
    return with_refusal(response, form) if status >= 400 else response


@require_http_methods(FORM_METHODS)
def service_level_change(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a service promise something else, or be counted by something else."""
    user, level = visitor(request), _visible(request, pk)
    visitor_whom(request, lambda person: actions.check_may_set(person, level.team))
    form, status = PromiseForm(sent(request), level=level), 200
    if request.method == "POST":
        if form.is_valid():
            actions.change_level(
                level.pk, by=user, now=timezone.now(), **form.cleaned_data
            )
            messages.success(request, "Saved.")
            return redirect("service-level", level.pk)
        status = 422
    response = render(
        request,
        "workloads/service_level_change.html",
        {"level": level, "form": form},
        status=status,
    )
    return with_refusal(response, form) if status >= 400 else response


@require_http_methods(FORM_METHODS)
def service_level_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Measure a service no more."""
    user, level = visitor(request), _visible(request, pk)
    visitor_whom(request, lambda person: actions.check_may_set(person, level.team))
    if request.method != "POST":
        return render(request, "workloads/service_level_remove.html", {"level": level})
    actions.remove_level(level.pk, by=user)
    messages.success(request, f"{level.service} is measured no more.")
    return redirect(page.of_team(level.team))


def _visible(request: HttpRequest, pk: int) -> ServiceLevel:
    return get_object_or_404(present_levels(visitor(request)).described(), pk=pk)


def _added(values: dict[str, Any], user: User, team: Team) -> str:
    """The page of the service that a form names, added once however often the form arrives. Raises Refused."""
    said = dict(values)
    key = said.pop("token") or new_key()

    def add() -> str:
        level = actions.add_level(
            int(said["place"]),
            service=said["service"],
            meter=said["meter"],
            tier=said["tier"],
            request_id=_runs_on(said["request"], int(said["place"])),
            by=user,
            now=timezone.now(),
        )
        return reverse("service-level", args=[level.pk])

    route = f"page:service-levels:{team.slug}"
    return once(user, route=route, key=key, body=said, action=add)


def _runs_on(request: int | None, place: int) -> int | None:
    """The request that led to the form; of a service in another place than that one's, nobody knows on what it runs."""
    rows = Request.objects.filter(pk=request or 0, tenancy=place)
    return rows.values_list("pk", flat=True).first()

"""Pages of a team's leaving: asked for on one, looked at, confirmed and restored on another, and taken along."""

from collections.abc import Callable, Mapping

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import STATUS, add_refusal, visitor, with_refusal
from accounts.directory import freshness
from accounts.idempotency import new_key, once
from accounts.models import Team, User
from offboarding import actions
from offboarding import page as leaving_page
from offboarding import preview as previews
from offboarding.export import as_csv, export
from offboarding.forms import DepartureForm, LeaveForm, ProtectionForm
from offboarding.models import Departure
from provisioning import leaving
from provisioning.models import Tenancy
from web.downloads import csv_file, kept_as
from web.refusals import Refused, Sort

DONE = {
    "confirm": "Confirmed. What happens next stands here.",
    "withdraw": "Taken back. Nothing was changed.",
    "restore": "Restored. Everything but the GPUs comes back within seconds; ask for GPUs again.",
    "agree": "Deleting goes on.",
}
# Restored before work has stopped: nothing was given back.
KEPT = (
    "Restored. Nothing had ended yet: the team holds its GPUs and pays them as before."
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Where a team's leaving is asked for, with its places and their protection."""
    user, now = visitor(request), timezone.now()
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    context = leaving_page.overview(team, by=user, now=now)
    if request.method != "POST":
        form = LeaveForm(places=context["here"], initial={"token": new_key()})
        return render(request, "onboarding/leaving.html", context | {"form": form})
    form, status = LeaveForm(request.POST, places=context["here"]), 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_ask(team, form, by=user))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    response = render(
        request, "onboarding/leaving.html", context | {"form": form}, status=status
    )
    return with_refusal(response, form)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def departure(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One departure with everything that goes; POST confirms it, takes it back or restores it."""
    user = visitor(request)
    found = _find(user, slug, pk)
    if request.method != "POST":
        return _page(request, found, DepartureForm())
    freshness.renew(user, now=timezone.now())
    form, status = DepartureForm(request.POST), 422
    if form.is_valid():
        try:
            after = do(found, form.cleaned_data, by=user)
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            done = form.cleaned_data["do"]
            is_kept = done == "restore" and not after.took_gpus
            messages.success(request, KEPT if is_kept else DONE[done])
            return HttpResponseRedirect(reverse("departure", args=[slug, pk]))
    return with_refusal(
        _page(request, _find(user, slug, pk), form, status=status), form
    )


def do(found: Departure, said: Mapping[str, str], *, by: User) -> Departure:
    """Do what a clean form says; raises Refused."""
    now = timezone.now()
    if said["do"] == "confirm":
        return actions.confirm(
            found.pk, name=said["name"], seen_content=said["seen"], by=by, now=now
        )
    steps: Mapping[str, Callable[..., Departure]] = {
        "withdraw": actions.withdraw,
        "restore": actions.restore,
        "agree": actions.agree,
    }
    return steps[said["do"]](found.pk, by=by, now=now)


@require_POST
def protection(request: HttpRequest, pk: int) -> HttpResponse:
    """Put the protection of a place on or take it off."""
    user = visitor(request)
    place = get_object_or_404(
        Tenancy.objects.visible_to(user).select_related("team", "cluster"), pk=pk
    )
    form, status = ProtectionForm(request.POST), 422
    if form.is_valid():
        try:
            done = leaving.protect(
                place.pk, on=form.cleaned_data["is_protected"] == "yes", by=user
            )
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            state = (
                "is protected from deletion"
                if done.is_protected
                else "is not protected any more"
            )
            messages.success(
                request, f"{place.team.name} on {place.cluster.title} {state}."
            )
            return HttpResponseRedirect(reverse("leaving", args=[place.team.slug]))
    shown = leaving_page.overview(place.team, by=user, now=timezone.now())
    context = {
        **shown,
        "form": LeaveForm(places=shown["here"], initial={"token": new_key()}),
        "refused": form,
    }
    return with_refusal(
        render(request, "onboarding/leaving.html", context, status=status), form
    )


@never_cache
@require_safe
def take_along(request: HttpRequest, slug: str, pk: int, kind: str) -> HttpResponse:
    """Claims, members, holdings and history as a file."""
    found = export(_find(visitor(request), slug, pk), now=timezone.now())
    name = f"{slug}-{pk}.{kind}"
    if kind == "csv":
        return csv_file(as_csv(found), name=name)
    return JsonResponse(found, headers=kept_as(name), json_dumps_params={"indent": 1})


def visible(user: User) -> QuerySet[Departure]:
    """The departures of teams this person may see."""
    return Departure.objects.visible_to(user).select_related(
        "team", "asked_by", "confirmed_by"
    )


def _find(user: User, slug: str, pk: int) -> Departure:
    return get_object_or_404(visible(user), team__slug=slug, pk=pk)


def _page(
    request: HttpRequest, found: Departure, form: DepartureForm, *, status: int = 200
) -> HttpResponse:
    contents = previews.look(found, now=timezone.now)
    shown = leaving_page.whole(found, contents, by=visitor(request), now=timezone.now())
    context = {**shown, "form": form, "stale": status == STATUS[Sort.STALE]}
    return render(request, "onboarding/departure.html", context, status=status)


def _ask(team: Team, form: LeaveForm, *, by: User) -> str:
    said = form.cleaned_data
    body = {name: str(value) for name, value in said.items() if name != "token"}

    def action() -> str:
        now = timezone.now()
        made = actions.ask(team, form.wish(now=now), by=by, now=now)
        return reverse("departure", args=[team.slug, made.pk])

    key = said["token"] or new_key()
    return once(by, route=f"page:leaving:{team.pk}", key=key, body=body, action=action)

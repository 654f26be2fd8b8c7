"""A team lets an application of Entra ID act for it, and stops that."""

from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import (
    add_refusal,
    sent,
    visible_team,
    visitor,
    visitor_whom,
    with_refusal,
)
from accounts.forms import IdentityForm
from accounts.idempotency import new_key, once
from accounts.identities import actions
from accounts.models import Identity, Team, User
from web.refusals import Refused


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, slug: str) -> HttpResponse:
    """The form by which a lead of the team names an application; it says where its ids stand."""
    user = visitor(request)
    team = visible_team(user, slug)
    visitor_whom(request, partial(actions.check_may_add, team=team))
    form, status = IdentityForm(sent(request)), 200
    if request.method == "POST":
        status = _add(form, user, team)
        if status == 201:
            name = form.cleaned_data["name"]
            messages.success(request, f"{name} acts for the team now.")
            return redirect("team-tokens", team.slug)
    context = {
        "team": team,
        "form": form,
        "token": new_key(),
        "audience": f"api://{settings.ENV.entra_client_id}",
    }
    response = render(request, "accounts/team_identity.html", context, status=status)
    return with_refusal(response, form) if status >= 400 else response


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Let an application act no more for a team that one leads, or for any for who looks after access."""
    user = visitor(request)
    rows = Identity.objects.removable_by(user).select_related("team")
    identity = get_object_or_404(rows, pk=pk)
    actions.remove_identity(identity, by=user, now=timezone.now())
    messages.success(request, f"Removed {identity.name}. It acts for the team no more.")
    return redirect("team-tokens", identity.team.slug)


def _add(form: IdentityForm, user: User, team: Team) -> int:
    """The HTTP status of what became of the form; a refusal stands in it."""
    if not form.is_valid():
        return 422
    said: dict[str, Any] = dict(form.cleaned_data)
    key = said.pop("token") or new_key()

    def name_it() -> str:
        actions.add_identity(team=team, by=user, now=timezone.now(), **said)
        return reverse("team-tokens", args=[team.slug])

    try:
        once(
            user,
            route=f"page:identities:{team.slug}",
            key=key,
            body=said,
            action=name_it,
        )
    except Refused as refusal:
        return add_refusal(form, refusal)
    return 201

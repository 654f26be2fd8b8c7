"""The answers the wizard gets while somebody types: they change nothing, and the wizard works without them."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.actions import check_cost_centre
from accounts.current_user import visitor
from accounts.directory.client import graph
from accounts.models import User
from connectors.errors import ConnectorError
from onboarding import journey
from onboarding.actions import check_name_free, slug_for
from onboarding.forms import StartForm
from onboarding.groups import Offer, offers
from onboarding.presenting import answer_to
from provisioning.desired.naming import namespace_of
from web.refusals import Refused


class FoundGroups(TypedDict):
    """Groups to choose from; `away` says why there are none when the directory does not answer."""

    text: str
    chosen: str
    offers: Sequence[Offer]
    away: NotRequired[str]


@require_safe
def check(request: HttpRequest) -> HttpResponse:
    """Whether the one field that was sent can be taken, and what it becomes."""
    field = next((name for name in request.GET if name != "draft"), "")
    ok, text = _said(field, request.GET.get(field, ""), request)
    return render(request, "onboarding/said.html", {"ok": ok, "text": text})


@require_safe
def groups(request: HttpRequest) -> HttpResponse:
    """The groups that match a search, as radio buttons."""
    text, chosen = (
        request.GET.get("group_search", ""),
        request.GET.get("entra_group", ""),
    )
    return render(
        request,
        "onboarding/groups.html",
        found_groups(visitor(request), text=text, chosen=chosen),
    )


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """The policy's answer to the first ask as the form stands."""
    draft = journey.load(request.session, request.GET.get("draft", ""))
    cluster = journey.cluster_of(draft) if draft else None
    if draft is None or cluster is None:
        return render(request, "onboarding/answer.html", {})
    form = StartForm(request.POST, cluster=cluster)
    answer = answer_to(form, draft, person=visitor(request), now=timezone.now())
    context = {**answer, "form": form, "is_preview": True}
    return render(request, "onboarding/preview.html", context)


def found_groups(user: User, *, text: str, chosen: str) -> FoundGroups:
    """The list of groups for its template; says so when the directory does not answer."""
    try:
        return {
            "text": text,
            "chosen": chosen,
            "offers": offers(user, text=text, graph=graph()),
        }
    except ConnectorError as error:
        return {"text": text, "chosen": chosen, "offers": [], "away": error.message}


def _said(field: str, value: str, request: HttpRequest) -> tuple[bool, str]:
    if not value.strip():
        return True, ""
    try:
        if field == "name":
            return (
                True,
                f"Free. Its short name, in addresses and on clusters, is {check_name_free(value)}.",
            )
        if field == "cost_centre":
            return True, f"Costs go to {check_cost_centre(value)}."
        if field == "project":
            return True, _namespace(value, request)
    except Refused as refusal:
        return False, refusal.message
    return True, ""


def _namespace(project: str, request: HttpRequest) -> str:
    slug = slug_for(project, field="project")
    draft = journey.load(request.session, request.GET.get("draft", ""))
    team = slug_for(draft.values.get("name", ""), field="name") if draft else "team"
    return f"The space will be called {namespace_of(team=team, project=slug)}."

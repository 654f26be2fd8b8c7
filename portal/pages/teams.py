"""The teams a person may see, and one of them with everything it holds."""

from typing import Any

from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team
from allocations.models import Allocation
from approvals.requests.links import on_board_link
from portal.pages import team_board
from portal.pages.finding import teams_called
from ui.parts import Cell, Column, Columns, Row

MOST_TEAMS = 200
WHAT_A_TEAM_IS = (
    "A team is one Entra group with its own space and budget. Bring yours on board, "
    "or ask to be added to a group that has one."
)
COLUMNS: Columns = [
    "Team",
    "Cost centre",
    *(Column(label=label, kind="number") for label in ("People", "Clusters", "GPUs")),
]


@require_safe
def teams(request: HttpRequest) -> HttpResponse:
    """The teams this person may see, their own first, found by name."""
    user, q = visitor(request), request.GET.get("q", "").strip()[:60]
    rows = Team.objects.visible_to(user).annotate(
        people=Count(
            "memberships",
            filter=Q(memberships__user__pipelines_of=None),
            distinct=True,
        ),
        clusters=Count(
            "tenancies__cluster", filter=~Q(tenancies__stage="gone"), distinct=True
        ),
    )
    found = teams_called(rows, q) if q else rows
    shown = sorted(
        found[:MOST_TEAMS],
        key=lambda team: (team.pk not in user.team_ids, team.name.casefold()),
    )
    held = dict(
        Allocation.objects.live()
        .of_gpus()
        .filter(team__in=[team.pk for team in shown])
        .values_list("team")
        .annotate(gpus=Sum("gpus"))
    )
    context = {
        "rows": [_line(team, held.get(team.pk, 0)) for team in shown],
        "q": q,
        "columns": COLUMNS,
        "may_onboard": user.may_onboard,
        "what_a_team_is": WHAT_A_TEAM_IS,
        "first": on_board_link(user),
    }
    return render(request, "portal/teams.html", context)


@require_safe
def team(request: HttpRequest, slug: str) -> HttpResponse:
    """What a team holds, where it is, who is in it, what it asked for and what comes next."""
    user, now = visitor(request), timezone.now()
    found = team_board.find(slug, user)
    if found is None:
        raise Http404
    return render(
        request, "portal/team.html", team_board.board(found, by=user, now=now)
    )


def _line(team: Any, gpus: int) -> Row:
    name: Cell = {
        "text": team.name,
        "href": reverse("team", args=[team.slug]),
        "sub": team.entra_group_name,
    }
    return {"cells": [name, team.cost_centre, team.people, team.clusters, gpus]}

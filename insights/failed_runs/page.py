"""The page about failed runs: why they failed, how often, and what they cost."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team
from insights.failed_runs.gathering import DAYS, FailedRuns, OfCause, failed_runs
from ui.amounts import usd
from ui.controls import is_filtered
from ui.parts import Columns, Figure, Row
from web.fields import set_choices
from workloads.runs.models import Run

COLUMNS: Columns = [
    "Why",
    {"label": "Runs", "kind": "number"},
    {"label": "Teams", "kind": "number"},
    {"label": "GPU-hours", "kind": "number"},
    {"label": "Cost", "kind": "number"},
    "The last of them",
]


class FailedRunsFilter(forms.Form):
    """Of which team; all that one sees without it."""

    team = forms.ChoiceField(label="Team", required=False)

    def __init__(self, data: Mapping[str, Any], *, teams: Iterable[Team]) -> None:
        super().__init__(data, label_suffix="")
        choices = [(one.slug, one.name) for one in teams]
        set_choices(self, "team", [("", "All teams"), *choices])


@require_safe
def failed(request: HttpRequest) -> HttpResponse:
    """Why the runs failed that the person may see, what cost most first."""
    user, now = visitor(request), timezone.now()
    teams = Team.objects.visible_to(user).order_by("name")
    form = FailedRunsFilter(request.GET, teams=teams)
    rows = Run.objects.visible_to(user)
    if not form.is_valid():
        rows = rows.none()
    elif slug := form.cleaned_data["team"]:
        rows = rows.filter(team__slug=slug)
    found = failed_runs(rows, now=now)
    context = {
        "filter": form,
        "is_filtered": is_filtered(form),
        "days": DAYS,
        "ended": found.ended,
        "figures": _figures(found),
        "columns": COLUMNS,
        "rows": [_row(one) for one in found.causes],
        "clear": {"label": "Clear the filter", "href": reverse("failed-runs")},
    }
    return render(request, "insights/failed_runs.html", context)


def _figures(found: FailedRuns) -> list[Figure]:
    share = "" if found.percent is None else f"{found.percent:.0f} % of those"
    return [
        {
            "label": "Ended",
            "value": f"{found.ended:,}",
            "note": f"runs in {DAYS} days",
        },
        {"label": "Failed", "value": f"{found.runs:,}", "note": share},
        {
            "label": "Cost of the failed",
            "value": usd(found.usd),
            "note": f"{found.gpu_hours:,.1f} GPU-hours",
        },
    ]


def _row(one: OfCause) -> Row:
    return {
        "cells": [
            {"text": f"{one.label[0].upper()}{one.label[1:]}", "sub": one.advice},
            f"{one.runs:,}",
            f"{one.teams:,}",
            f"{one.gpu_hours:,.1f}",
            {"money": one.usd},
            {
                "text": one.last.title,
                "href": reverse("run", args=[one.last.pk]),
                "sub": one.last.team.name,
            },
        ]
    }

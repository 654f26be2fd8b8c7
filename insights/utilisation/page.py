"""The page about utilisation: who holds GPUs, how much of them work uses, what the rest costs, and giving it back."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team, User
from allocations.ends.actions import may_give_back
from allocations.models import Allocation
from insights.utilisation.gathering import DAYS, Utilisation, utilisation_of
from insights.utilisation.history import History, history_of
from insights.utilisation.presenting import bars_cell, weeks_panel
from insights.utilisation.weeks import WHOLE_WEEKS
from insights.utilisation.weeks_file import csv_file
from ui.amounts import gpus, usd
from ui.controls import is_filtered
from ui.parts import Cell, Columns, Content, Figure, Row
from web.fields import set_choices

MOST_SHOWN = 100
NBSP = "\N{NO-BREAK SPACE}"
# What is held now, or was held in the last weeks.
T = TypeVar("T", Utilisation, History)
COLUMNS: Columns = [
    "Team",
    "Holds",
    {"label": "In use now", "kind": "number"},
    {"label": f"In use, {DAYS} days", "kind": "number"},
    f"{WHOLE_WEEKS} weeks",
    {"label": "Idle a day", "kind": "number"},
    {"label": "Held since", "kind": "end"},
    {"label": "Ends", "kind": "end"},
    {"label": "What to do", "hidden": True, "kind": "end"},
]


class UtilisationFilter(forms.Form):
    """Which kinds of GPU, of which team, in which namespace; of every choice something is or was held."""

    team = forms.ChoiceField(label="Team", required=False)
    namespace = forms.ChoiceField(label="Namespace", required=False)
    flavor = forms.ChoiceField(label="Kind of GPU", required=False)

    def __init__(
        self,
        data: Mapping[str, Any],
        *,
        every: Sequence[Utilisation],
        past: Sequence[History] = (),
        asked: Team | None = None,
    ) -> None:
        super().__init__(data, label_suffix="")
        places = [(one.tenancy, one.flavor) for one in every]
        places += [(one.tenancy, one.flavor) for one in past]
        teams = {tenancy.team.slug: tenancy.team.name for tenancy, _ in places}
        # A team's page leads here before the team holds anything.
        if asked is not None:
            teams[asked.slug] = asked.name
        namespaces = {tenancy.namespace: tenancy.namespace for tenancy, _ in places}
        flavors = {
            flavor.key: f"{flavor.kind} on {flavor.cluster.title}"
            for _, flavor in places
        }
        self._choose("team", "All teams", teams)
        self._choose("namespace", "All namespaces", namespaces)
        self._choose("flavor", "All kinds", flavors)

    def _choose(self, name: str, every: str, choices: Mapping[str, str]) -> None:
        in_order = sorted(choices.items(), key=lambda pair: pair[1].casefold())
        set_choices(self, name, [("", every), *in_order])

    def narrowed(self, every: Iterable[T]) -> list[T]:
        """Those that were chosen; none where nothing is or was held of what was chosen."""
        if not self.is_valid():
            return []
        said = self.cleaned_data
        team, namespace = said.get("team", ""), said.get("namespace", "")
        flavor = said.get("flavor", "")
        return [
            one
            for one in every
            if team in ("", one.tenancy.team.slug)
            and namespace in ("", one.tenancy.namespace)
            and flavor in ("", one.flavor.key)
        ]

    def query(self) -> str:
        """The part of an address from the ? on that asks for the same; empty where nothing is chosen."""
        chosen = {name: value for name, value in self.cleaned_data.items() if value}
        return f"?{urlencode(chosen)}" if chosen else ""


@require_safe
def utilisation(request: HttpRequest) -> HttpResponse:
    """What the teams hold that the person may see, what costs most idle first, and its use week by week."""
    user, now = visitor(request), timezone.now()
    visible = Allocation.objects.visible_to(user)
    every, past = utilisation_of(visible, now=now), history_of(visible, now=now)
    asked = _asked(request, user)
    form = UtilisationFilter(request.GET, every=every, past=past, asked=asked)
    found, histories = form.narrowed(every), form.narrowed(past)
    holds_nothing = asked is not None and not any(
        one.tenancy.team_id == asked.pk for one in every
    )
    context = {
        "filter": form,
        "is_filtered": is_filtered(form),
        "has_any": bool(every or past),
        "figures": _figures(found),
        "weeks": weeks_panel(histories, now=now),
        "file": f"{reverse('utilisation-file')}{form.query()}",
        "columns": COLUMNS,
        "rows": _rows(found[:MOST_SHOWN], histories, user),
        "more": max(len(found) - MOST_SHOWN, 0),
        "holds_nothing": holds_nothing,
        "clear": {"label": "Clear the filter", "href": reverse("utilisation")},
    }
    return render(request, "insights/utilisation.html", context)


@require_safe
def utilisation_file(request: HttpRequest) -> HttpResponse:
    """The weeks of what the filter leaves as a CSV file; not found where the filter names nothing."""
    user, now = visitor(request), timezone.now()
    past = history_of(Allocation.objects.visible_to(user), now=now)
    form = UtilisationFilter(
        request.GET, every=[], past=past, asked=_asked(request, user)
    )
    if not form.is_valid():
        raise Http404
    return csv_file(form.narrowed(past), now=now)


def _asked(request: HttpRequest, user: User) -> Team | None:
    """The team that the address names, where the person sees it."""
    slug = request.GET.get("team", "")
    return Team.objects.visible_to(user).filter(slug=slug).first() if slug else None


def _figures(found: Sequence[Utilisation]) -> list[Figure]:
    known = [one for one in found if one.percent is not None]
    held, told = sum(one.gpus for one in found), sum(one.gpus for one in known)
    idle = sum((one.idle_gpus or Decimal(0) for one in known), Decimal(0))
    cost = sum((one.idle_usd_per_day or Decimal(0) for one in known), Decimal(0))
    young = held - told
    return [
        {
            "label": "Held",
            "value": gpus(held),
            "note": f"the use of {young} is not known yet" if young else "",
        },
        {
            "label": f"Idle, {DAYS} days",
            "value": f"{idle:,.1f}" if told else "–",
            # How many are held now is another number: some came since, or went back.
            "note": "GPUs, on average" if told else "",
        },
        {
            "label": "Idle a day",
            "value": usd(cost) if told else "–",
            "note": "what a day of those costs" if told else "",
        },
    ]


def _rows(
    found: Sequence[Utilisation], histories: Sequence[History], user: User
) -> list[Row]:
    past = {(one.tenancy.pk, one.flavor.pk): one for one in histories}
    return [_row(one, past.get((one.tenancy.pk, one.flavor.pk)), user) for one in found]


def _row(one: Utilisation, history: History | None, user: User) -> Row:
    tenancy, flavor = one.tenancy, one.flavor
    now_used = "–" if one.used_now is None else f"{one.used_now} of {one.gpus}"
    return {
        "cells": [
            {
                "text": tenancy.team.name,
                "href": reverse("team", args=[tenancy.team.slug]),
                "sub": tenancy.namespace,
            },
            # A number and its kind stay in one line.
            {
                "text": gpus(one.gpus, flavor.kind).replace(" ", NBSP),
                "sub": flavor.cluster.title,
            },
            now_used,
            _percent(one),
            bars_cell(history, one.gpus),
            _idle(one),
            {"since": one.measured.since} if one.measured.since else "–",
            one.until,
            _action(one, user),
        ]
    }


def _percent(one: Utilisation) -> Cell:
    if one.percent is not None:
        return {"text": f"{one.percent:.0f} %"}
    return {"text": "–", "sub": "not measured yet"}


def _idle(one: Utilisation) -> Cell:
    if one.idle_usd_per_day is None:
        return {"text": "–"}
    return {"text": usd(one.idle_usd_per_day), "sub": f"{one.idle_gpus} on average"}


def _action(one: Utilisation, user: User) -> Content:
    """The way to give it back, of what is one's own, or to take it back; empty for who may do neither."""
    if not may_give_back(user, one.tenancy.team_id):
        return ""
    is_own = one.tenancy.team_id in user.team_ids
    team = one.tenancy.team
    # Which of several goes back is chosen on the team's page.
    href = (
        reverse("give-back", args=[one.allocations[0].pk])
        if len(one.allocations) == 1
        else f"{reverse('team', args=[team.slug])}#what-the-team-holds"
    )
    return {
        "html": format_html(
            '<a class="button button--small" href="{}">{}<span class="sr-only">: {} of <bdi>{}</bdi></span></a>',
            href,
            "Give back" if is_own else "Take back",
            gpus(one.gpus, one.flavor.kind),
            team.name,
        )
    }

"""The page of costs: what a month costs by team, cost centre, project, kind or person, and the same as a file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team, User
from allocations.budgets.money import month_of, months_between
from allocations.budgets.months import month_named
from allocations.models import Budget
from insights.costs.ahead import ahead_of
from insights.costs.charges import (
    Charge,
    Month,
    charges_of,
    first_month,
    month_at,
    sees_cost_centre,
)
from insights.costs.focus import csv_file
from insights.costs.report import By, Line, lines, of_team, on_cost_centre, summed
from ui.amounts import moment, usd
from ui.parts import Cell, Column, Columns, Content, Figure, Row
from web.fields import set_choices

MOST_CHARGES = 100
# What an address goes on to ask for where its month is replaced.
BESIDE_MONTH = ("team", "by", "cost_centre")


class CostFilter(forms.Form):
    """Which costs, and by what they are added up."""

    month = forms.ChoiceField(label="Month", required=False)
    by = forms.ChoiceField(
        label="Added up by",
        required=False,
        choices=[(each.value, each.words) for each in By],
    )
    team = forms.ChoiceField(label="Team", required=False)
    cost_centre = forms.ChoiceField(label="Cost centre", required=False)

    def __init__(
        self,
        data: Mapping[str, Any],
        *,
        months: Sequence[date],
        teams: Mapping[str, str],
        cost_centres: Sequence[str],
    ) -> None:
        super().__init__(data, label_suffix="")
        set_choices(self, "month", [(f"{one:%Y-%m}", f"{one:%B %Y}") for one in months])
        set_choices(self, "team", [("", "All teams"), *teams.items()])
        codes = [(code, code) for code in cost_centres]
        set_choices(self, "cost_centre", [("", "All cost centres"), *codes])


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the address of the page asks for; no team is all of them, and so is no cost centre."""

    month: Month
    by: By
    team: str
    cost_centre: str

    def query(self, **others: str) -> str:
        """The part of an address behind the ? that asks for the same but for some of it."""
        same = {
            "month": f"{self.month.first:%Y-%m}",
            "by": self.by,
            "team": self.team,
            "cost_centre": self.cost_centre,
        }
        return urlencode({name: text for name, text in (same | others).items() if text})


@require_safe
def costs(request: HttpRequest) -> HttpResponse:
    """What a month costs, added up, and of one team charge by charge."""
    user, now = visitor(request), timezone.now()
    asked = month_named(request.GET.get("month", ""))
    if asked is not None and asked > month_of(now):
        # What is known of it stands below this month.
        rest = {name: request.GET[name] for name in BESIDE_MONTH if name in request.GET}
        query = f"?{urlencode(rest)}" if rest else ""
        return redirect(f"{reverse('costs')}{query}#ahead")
    wanted = _wanted(request, now)
    every = charges_of(user, wanted.month)
    choices, charges = _choices(every, wanted, user), _narrowed(every, wanted)
    cost_centre = choices.cost_centres.get(wanted.cost_centre.casefold(), "")
    found = lines(charges, wanted.by)
    limits = _limits(wanted, found)
    costly = _costly(charges) if wanted.team else []
    context = {
        "month": wanted.month,
        "filter": CostFilter(
            {
                "month": f"{wanted.month.first:%Y-%m}",
                "by": wanted.by,
                "team": wanted.team,
                "cost_centre": cost_centre,
            },
            months=_months(min(first_month(user, now), wanted.month.first), now),
            teams=dict(
                sorted(choices.teams.items(), key=lambda pair: pair[1].casefold())
            ),
            cost_centres=[code for _, code in sorted(choices.cost_centres.items())],
        ),
        "team": choices.teams.get(wanted.team, ""),
        "cost_centre": cost_centre,
        "heading": f"By {wanted.by.words.lower()}",
        "nothing": f"Nothing was charged in {wanted.month.first:%B %Y}"
        if wanted.month.is_over
        else f"Nothing is charged in {wanted.month.first:%B %Y} yet",
        "figures": _figures(summed(charges), wanted.month, now),
        "columns": _columns(wanted),
        "rows": [_row(line, wanted, limits) for line in found],
        "charge_columns": _charge_columns(wanted.month),
        "charges": [_charge(one) for one in costly[:MOST_CHARGES]],
        "more": max(len(costly) - MOST_CHARGES, 0),
        "file": f"{reverse('costs-file')}?{wanted.query(by='')}",
        "ahead": None
        if wanted.month.is_over
        else ahead_of(user, team=wanted.team, cost_centre=wanted.cost_centre, now=now),
    }
    return render(request, "insights/costs.html", context)


@require_safe
def costs_file(request: HttpRequest) -> HttpResponse:
    """The charges of a month as a file of FOCUS 1.2."""
    wanted, user = _wanted(request, timezone.now()), visitor(request)
    every = charges_of(user, wanted.month)
    _choices(every, wanted, user)
    return csv_file(_narrowed(every, wanted), wanted.month)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What can be chosen of a month: names of teams by slug, and cost centres by their code in lower case."""

    teams: Mapping[str, str]
    cost_centres: Mapping[str, str]


def _choices(every: Iterable[Charge], wanted: Wanted, user: User) -> Choices:
    """What something is charged of, with what is asked for; raises Http404 where the person does not see that."""
    teams, codes = {}, {}
    for one in every:
        teams[one.allocation.team.slug] = one.allocation.team.name
        codes[one.cost_centre.casefold()] = one.cost_centre
    if wanted.team and wanted.team not in teams:
        visible = Team.objects.visible_to(user)
        teams[wanted.team] = get_object_or_404(visible, slug=wanted.team).name
    code = wanted.cost_centre
    if code and code.casefold() not in codes:
        if not sees_cost_centre(user, code):
            raise Http404
        codes[code.casefold()] = code
    return Choices(teams=teams, cost_centres=codes)


def _narrowed(every: Sequence[Charge], wanted: Wanted) -> Sequence[Charge]:
    """Those of the team and on the cost centre that are asked for."""
    of = of_team(every, wanted.team) if wanted.team else every
    return on_cost_centre(of, wanted.cost_centre) if wanted.cost_centre else of


def _wanted(request: HttpRequest, now: datetime) -> Wanted:
    """What the address asks for; raises Http404 for a month that is none or has not begun, and for no way to add up."""
    said, query = request.GET.get("month", ""), request.GET
    month = month_named(said) if said else month_of(now)
    by = query.get("by") or By.TEAM
    if month is None or month > month_of(now) or by not in set(By):
        raise Http404
    return Wanted(
        month=month_at(month, now),
        by=By(by),
        team=query.get("team", "")[:40],
        cost_centre=query.get("cost_centre", "")[:20],
    )


def _months(first: date, now: datetime) -> Sequence[date]:
    """The months to choose from, newest first, back to the first of which anything is told."""
    return months_between(first, month_of(now))[::-1]


def _figures(total: Line, month: Month, now: datetime) -> list[Figure]:
    spent = total.spent
    figures: list[Figure] = [
        {
            "label": "Cost" if month.is_over else "Cost so far",
            "value": usd(spent.usd),
            "note": "" if month.is_over else f"until {moment(month.until, now)}",
        }
    ]
    if not month.is_over:
        figures.append(
            {
                "label": "Planned for the month",
                "value": usd(total.to_end.usd),
                "note": "if everything held and booked ends on its date",
            }
        )
    return [
        *figures,
        {"label": "GPU-hours", "value": _hours(spent.gpu_hours)},
        {
            "label": "Of the cost, idle",
            "value": usd(total.idle_usd),
            "note": f"{_percent(total.idle_usd, spent.usd)} at least: used by no work",
        },
    ]


def _columns(wanted: Wanted) -> Columns:
    columns: list[str | Column] = [wanted.by.words, _number(_spent(wanted.month))]
    if not wanted.month.is_over:
        columns.append(_number("Planned"))
    if wanted.by == By.TEAM:
        columns.append(_number("Of its limit"))
    return [*columns, _number("GPU-hours"), _number("Idle")]


def _row(line: Line, wanted: Wanted, limits: Mapping[str, Decimal]) -> Row:
    cells: list[Content] = [_name(line, wanted), usd(line.spent.usd)]
    if not wanted.month.is_over:
        cells.append(usd(line.to_end.usd))
    if wanted.by == By.TEAM:
        cells.append(_share(line, limits.get(line.key)))
    idle: Cell = {"text": usd(line.idle_usd)}
    if line.idle_usd:
        idle["sub"] = _percent(line.idle_usd, line.spent.usd)
    return {"cells": [*cells, _hours(line.spent.gpu_hours), idle]}


def _share(line: Line, limit: Decimal | None) -> Content:
    """How much of its limit a team will have used; none where the cost is not all of the team's."""
    if limit is None:
        return "–"
    if line.is_of_part:
        return {"text": "–", "sub": "only part of the team’s cost"}
    return {"text": _percent(line.to_end.usd, limit), "sub": f"of {usd(limit)}"}


def _name(line: Line, wanted: Wanted) -> Cell:
    """What the line is of; a team leads to what it is made of, and a cost centre to its teams."""
    if wanted.by == By.TEAM:
        return {
            "text": line.name,
            "href": f"?{wanted.query(team=line.key, by=By.KIND)}",
        }
    name: Cell = {"text": line.name}
    if wanted.by == By.COST_CENTRE:
        name["href"] = f"?{wanted.query(cost_centre=line.name, by=By.TEAM)}"
    if wanted.by != By.PROJECT and not wanted.team:
        teams = len(line.teams)
        name["sub"] = f"{teams} team{'' if teams == 1 else 's'}"
    return name


def _limits(wanted: Wanted, found: Sequence[Line]) -> Mapping[str, Decimal]:
    """The limits of the month in USD by team, of those that have one."""
    if wanted.by != By.TEAM:
        return {}
    rows = Budget.objects.filter(
        month=wanted.month.first, team__slug__in=[line.key for line in found]
    )
    return dict(rows.values_list("team__slug", "limit_usd"))


def _charge_columns(month: Month) -> Columns:
    return [
        "For",
        "Cost centre",
        {"label": "From", "kind": "end"},
        {"label": "Until", "kind": "end"},
        _number("GPU-hours"),
        _number(_spent(month)),
        _number("Idle"),
    ]


def _costly(charges: Sequence[Charge]) -> Sequence[Charge]:
    """The highest first, without what is booked: of that nothing is charged yet."""
    begun = [one for one in charges if not one.allocation.is_booked]
    return sorted(begun, key=lambda one: -one.spent.usd)


def _charge(one: Charge) -> Row:
    row = one.allocation
    name: Cell = {"text": row.what, "sub": f"{row.where} · {row.requester.name}"}
    if row.hold.request_id is not None:
        name["href"] = reverse("request", args=[row.hold.request_id])
    return {
        "cells": [
            name,
            one.cost_centre,
            one.start,
            one.end,
            _hours(one.spent.gpu_hours),
            usd(one.spent.usd),
            usd(one.idle_usd),
        ]
    }


def _spent(month: Month) -> str:
    return "Cost" if month.is_over else "So far"


def _number(label: str) -> Column:
    return {"label": label, "kind": "number"}


def _hours(amount: Decimal) -> str:
    """GPU-hours, with a tenth where there are few of them."""
    return f"{amount:,.1f}" if 0 < amount < 10 else f"{amount:,.0f}"


def _percent(part: Decimal, whole: Decimal) -> str:
    """ "17 %", and "0 %" of nothing; what is something is never told as nothing."""
    percent = 100 * part / whole if whole else Decimal(0)
    return "< 1 %" if 0 < percent < 1 else f"{round(percent)} %"

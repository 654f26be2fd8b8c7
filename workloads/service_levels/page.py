"""What the pages of service levels show."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict
from urllib.parse import urlencode

from django import forms
from django.urls import reverse

from accounts.models import Membership, Team, User
from accounts.roles import Permission
from approvals.models import Request
from ui.parts import Badge, Cell, Columns, Fact, Figure, Link, Row
from web.fields import set_choices
from workloads.service_levels.actions import SERVICE, may_set
from workloads.service_levels.budget import DAYS, Budget, Day, State
from workloads.service_levels.models import ServiceLevel
from workloads.service_levels.standing import Standing
from workloads.service_levels.tiers import seconds

TONES = {
    State.UNKNOWN: "waiting",
    State.FEW: "past",
    State.WELL: "good",
    State.FAST: "waiting",
    State.SPENT: "bad",
}
COLUMNS: Columns = [
    "Service",
    "Promised",
    {"label": f"Answered, {DAYS} days", "kind": "number"},
    {"label": "Budget left", "kind": "number"},
    {"label": "Latency", "kind": "number"},
    {"label": "State", "kind": "end"},
]
DAY_COLUMNS: Columns = [
    "Day (UTC)",
    {"label": "Requests", "kind": "number"},
    # What share was answered says as much where there is no room for both.
    {"label": "Failed", "kind": "spare"},
    {"label": "Answered", "kind": "number"},
    {"label": "Of the budget", "kind": "number"},
    {"label": "99 of 100 within", "kind": "number"},
]
NOTHING = "–"


class TeamFilter(forms.Form):
    """Of which team; all that one sees without it."""

    team = forms.ChoiceField(label="Team", required=False)

    def __init__(self, data: Mapping[str, Any], *, teams: Iterable[Team]) -> None:
        super().__init__(data, label_suffix="")
        choices = [(one.slug, one.name) for one in teams]
        set_choices(self, "team", [("", "All teams"), *choices])


class Listed(TypedDict):
    """The list of services."""

    figures: Sequence[Figure]
    columns: Columns
    rows: Sequence[Row]
    is_filtered: bool
    clear: Link


def of_team(team: Team) -> str:
    """The address of the list of a team's services."""
    return f"{reverse('service-levels')}?team={team.slug}"


def add_links(user: User, team: Team | None, teams: Sequence[Team]) -> list[Link]:
    """Where the person has another service measured: of the team that is chosen, or of each that they lead."""
    if team is not None:
        open_to = [team] if may_set(user, team) else []
    else:
        led = user.memberships.filter(part=Membership.Part.LEAD)
        own = set(
            user.team_ids
            if user.may(Permission.DECIDE_AS_PLATFORM)
            else led.values_list("team", flat=True)
        )
        open_to = [one for one in teams if one.pk in own]
    return [
        {
            "label": f"Measure a service of {one.name}",
            "href": reverse("service-level-new", args=[one.slug]),
            "icon": "plus",
        }
        for one in open_to
    ]


def add_link(asked: Request) -> str:
    """The form that has a Service measured, with what is known of it from a request: where, perhaps its name."""
    known = {
        "place": asked.tenancy_id,
        "service": service_of(str(asked.spec.get("model", ""))),
        "request": asked.pk,
    }
    where = reverse("service-level-new", args=[asked.team.slug])
    return f"{where}?{urlencode(known)}"


def with_earlier(asked: Request) -> list[int]:
    """A request and those that it goes on from, by their numbers; one query however many they are."""
    if asked.renews_id is None:
        return [asked.pk]
    renewals = Request.objects.filter(team=asked.team_id, renews__isnull=False)
    before = dict(renewals.values_list("pk", "renews"))
    numbers = [asked.pk]
    while (earlier := before.get(numbers[-1])) and earlier not in numbers:
        numbers.append(earlier)
    return numbers


def service_of(model: str) -> str:
    """What the Service of a model is probably called: "mistral-7b" for "mistralai/Mistral-7B:v2"; else empty."""
    name = model.rpartition("/")[2].partition(":")[0].lower()
    found = re.sub("[^a-z0-9]+", "-", name)[:63].strip("-")
    return found if SERVICE.fullmatch(found) else ""


def listed(found: Sequence[Standing], *, is_filtered: bool) -> Listed:
    """The services with how many stand how."""
    states = [one.budget.state for one in found]
    pressing = sum(one.budget.needs_care for one in found)
    return {
        "figures": [
            {"label": "Services", "value": len(found)},
            {"label": State.WELL.words, "value": states.count(State.WELL)},
            {
                "label": "Need care",
                "value": pressing,
                "note": "budget used up, burning fast, or slow",
                "tone": "bad" if pressing else "",
            },
        ],
        "columns": COLUMNS,
        "rows": [_row(one) for one in found],
        "is_filtered": is_filtered,
        "clear": {"label": "Clear the filter", "href": reverse("service-levels")},
    }


def one(standing: Standing, *, viewer: User) -> dict[str, Any]:
    """A service with its figures and days; `name_it` is where this person names the Prometheus that is missing."""
    level, budget = standing.level, standing.budget
    facts: list[Fact] = [
        {
            "label": "Team",
            "text": level.team.name,
            "href": reverse("team", args=[level.team.slug]),
        },
        {"label": "Cluster", "text": level.cluster.title},
        {"label": "Namespace", "copyable": level.tenancy.namespace},
        *_request(level),
        {"label": "Tier", "text": level.objective.title},
        {"label": "Counted by", "text": level.meter_label},
        {"label": "Counted until", "at": level.measured_until},
        {"label": "Set by", "text": level.set_by.name},
        {"label": "Set", "at": level.set_at},
    ]
    return {
        "level": level,
        "badge": badge(budget),
        "advice": budget.state.advice,
        "unknown": standing.why_unknown,
        "name_it": _name_it(level, viewer),
        "slow": _slow(budget),
        "figures": _figures(budget),
        "facts": facts,
        "columns": DAY_COLUMNS,
        "rows": [_day(each, budget) for each in standing.days],
    }


def _name_it(level: ServiceLevel, viewer: User) -> str:
    if level.cluster.prometheus or not viewer.may(Permission.MANAGE_CLUSTERS):
        return ""
    return f"{reverse('cluster-edit', args=[level.cluster.name])}#id_prometheus"


def _request(level: ServiceLevel) -> list[Fact]:
    number = level.request_id
    if number is None:
        return []
    href = reverse("request", args=[number])
    return [{"label": "Runs on", "text": f"Request {number}", "href": href}]


def badge(budget: Budget) -> Badge:
    """How a service stands, as a badge."""
    return {"tone": TONES[budget.state], "word": budget.state.words}


def _figures(budget: Budget) -> list[Figure]:
    objective = budget.objective
    failed = f"{_count(budget.failed)} of {_count(budget.requests)} failed"
    return [
        {
            "label": "Answered",
            "value": percent(budget.availability),
            "note": f"{objective.availability * 100:.2f} % promised; {failed}",
        },
        {
            "label": "Budget left",
            "value": left(budget),
            "note": _minutes(budget),
        },
        {
            "label": "99 of 100 within",
            "value": budget.latency or NOTHING,
            "note": f"{seconds(objective.p99_seconds)} promised; worst hour since yesterday",
            "tone": "bad" if budget.is_slow else "",
        },
    ]


def _slow(budget: Budget) -> str:
    promised = seconds(budget.objective.p99_seconds)
    if budget.is_unseen:
        return (
            f"Nobody can see whether it is slow: 99 of 100 requests were answered {budget.within}, where the buckets "
            f"of its histogram end, and {promised} is promised. Give the histogram longer buckets."
        )
    if not budget.is_slow:
        return ""
    return f"It is slow: 99 of 100 requests were answered {budget.within}, and {promised} is promised."


def _row(standing: Standing) -> Row:
    level, budget = standing.level, standing.budget
    objective = level.objective
    service: Cell = {
        "text": level.service,
        "href": reverse("service-level", args=[level.pk]),
        "sub": f"{level.team.name}, {level.cluster.title}",
    }
    latency: Cell = {"text": budget.latency or NOTHING}
    if budget.is_slow:
        latency["sub"] = "slow"
    return {
        "cells": [
            service,
            {"text": objective.title, "sub": objective.words},
            percent(budget.availability),
            left(budget),
            latency,
            badge(budget),
        ]
    }


def _day(day: Day, budget: Budget) -> Row:
    answered = 1 - day.failed / day.requests if day.requests else None
    share = (
        f"{100 * day.failed / budget.may_fail:.1f} %" if budget.may_fail else NOTHING
    )
    return {
        "cells": [
            f"{day.day.day} {day.day:%b}",
            _count(day.requests),
            _count(day.failed),
            percent(answered),
            share,
            day.latency or NOTHING,
        ]
    }


def _count(number: float) -> str:
    """A number that Prometheus estimates; less than a half is not told as none."""
    return "less than 1" if 0 < number < 0.5 else f"{number:,.0f}"


def percent(share: float | None) -> str:
    """A share in percent; what is not whole is never told as 100 %."""
    if share is None:
        return NOTHING
    return f"{min(share, 0.99999):.3%}".replace("%", " %") if share < 1 else "100 %"


def left(budget: Budget) -> str:
    """What is left of a budget in percent; neither all nor nothing where it is not."""
    if budget.used is None or budget.state is State.FEW:
        return NOTHING
    share = max(0.0, 1 - budget.used)
    if 0 < share < 0.01:
        return "less than 1 %"
    return f"{min(share, 0.99) if share < 1 else 1:.0%}".replace("%", " %")


def _minutes(budget: Budget) -> str:
    minutes = budget.minutes_left
    if minutes is None or budget.state is State.FEW:
        return f"less than one request in {DAYS} days may fail" if minutes else ""
    whole = round(float(budget.objective.may_fail) * DAYS * 24 * 60)
    return f"{minutes:,.0f} of {whole:,} minutes in {DAYS} days, if all failed"

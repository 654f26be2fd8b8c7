"""Several requests decided together, and how deciding goes."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import TypedDict

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.directory import freshness
from accounts.models import User
from accounts.roles import Permission
from approvals.decisions import bulk
from approvals.decisions.bulk import Effect, Purse
from approvals.decisions.forms import ManyForm
from approvals.decisions.statistics import (
    FEWEST,
    SPANS,
    Pace,
    Statistics,
    span_of,
    statistics,
)
from approvals.models import Request
from approvals.requests import listing
from ui.amounts import hours, span, usd
from ui.parts import BeforeAfter, Column, Columns, Figure, Row
from web.fields import StrictForm
from web.refusals import Refused

DIGITS = 9
NUMBER = "number"
COLUMNS: Mapping[str, Columns] = {
    "pace_columns": [
        "Who",
        *(
            Column(label=label, kind=NUMBER)
            for label in (
                "Decided",
                "Usually",
                "Nine of ten within",
                "Waiting now",
                "Over target",
            )
        ),
    ],
    "week_columns": [
        "Week",
        *(
            Column(label=label, kind=NUMBER)
            for label in ("Asked", "Automatic", "Share")
        ),
    ],
    "because_columns": ["Because", {"label": "Requests", "kind": NUMBER}],
}


class Tables(TypedDict):
    """Pools and money before and after."""

    pools: list[BeforeAfter]
    purses: list[BeforeAfter]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def together(request: HttpRequest) -> HttpResponse:
    """The chosen requests and what approving all of them would do; POST decides each as it was seen."""
    user, now = visitor(request), timezone.now()
    if request.method != "POST":
        return _page(request, _numbers(request.GET.getlist("pk")), ManyForm())
    form = ManyForm(request.POST)
    if form.is_valid():
        freshness.renew(user, now=now)
        try:
            results = bulk.decide_many(form.chosen(), by=user, now=now)
        except Refused as refusal:
            add_refusal(form, refusal)
        else:
            names = _names([result.request for result in results], user, now=now)
            rows = [
                (names.get(result.request, f"Request {result.request}"), result)
                for result in results
            ]
            context = {
                "results": rows,
                "decided": sum(result.decided for result in results),
                "go_on": sum(bool(result.waits_for) for result in results),
            }
            return render(request, "approvals/together_done.html", context)
    return with_refusal(_page(request, form.numbers(), form, status=422), form)


@require_safe
def decision_statistics(request: HttpRequest) -> HttpResponse:
    """How deciding goes; for those who see every team."""
    user, now = visitor(request), timezone.now()
    if not user.may(Permission.SEE_ALL_TEAMS):
        raise PermissionDenied
    found = statistics(days=span_of(request.GET.get("days", "")), now=now)
    context = {
        "found": found,
        "figures": _figures(found),
        "paces": [_pace(each) for each in found.paces],
        "weeks": _weeks(found),
        "spans": SPANS,
        "fewest": FEWEST,
        **COLUMNS,
        "because": [{"cells": list(each)} for each in found.because],
    }
    return render(request, "approvals/statistics.html", context)


def _page(
    request: HttpRequest, numbers: list[int], form: StrictForm, *, status: int = 200
) -> HttpResponse:
    user, now = visitor(request), timezone.now()
    rows = listing.with_all(Request.objects.awaiting(user, now).filter(pk__in=numbers))
    chosen = list(rows.order_by("created_at", "id")[: bulk.MOST])
    effect = bulk.effect_of(chosen, now=now)
    context = {
        "form": form,
        "at": {"reason": "note"},
        "chosen": chosen,
        "effect": effect,
        "missing": len(set(numbers)) - len(chosen),
        "queue": {"label": "Open the queue", "href": reverse("approvals")},
        "usd": usd(effect.usd),
        "set_aside": usd(effect.usd_set_aside) if effect.usd_set_aside else "",
        "columns": listing.QUEUE_COLUMNS,
        "rows": [listing.queue_row(each, now=now) for each in chosen],
        **_tables(effect),
    }
    return render(request, "approvals/together.html", context, status=status)


def _tables(effect: Effect) -> Tables:
    """Capacity and money before and after, as before → after rows."""
    pools: list[BeforeAfter] = [
        {
            "label": f"{pool.flavor.kind} free, {pool.flavor.cluster.title}",
            "before": str(pool.flavor.free),
            "after": str(pool.after) if pool.after >= 0 else f"{-pool.after} missing",
        }
        for pool in effect.pools
    ]
    purses: list[BeforeAfter] = [
        {
            "label": f"{purse.team.name}, {purse.month:%B}",
            "before": f"{usd(purse.before)} left without them",
            "after": f"{usd(purse.after)} left"
            if purse.after >= 0
            else f"{usd(-purse.after)} over",
        }
        for purse in effect.purses
    ]
    purses += [
        _hours_row(purse) for purse in effect.purses if purse.hours_limit is not None
    ]
    return {"pools": pools, "purses": purses}


def _hours_row(purse: Purse) -> BeforeAfter:
    """The same of a month's GPU-hours, where they have a limit."""
    before, after = purse.hours_before or Decimal(0), purse.hours_after or Decimal(0)
    return {
        "label": f"{purse.team.name}, {purse.month:%B}, GPU-hours",
        "before": f"{hours(before)} left without them",
        "after": f"{hours(after)} left" if after >= 0 else f"{hours(-after)} over",
    }


def _numbers(given: list[str]) -> list[int]:
    return [int(each) for each in given if each.isdecimal() and len(each) <= DIGITS][
        : bulk.MOST
    ]


def _names(numbers: list[int], user: User, *, now: datetime) -> dict[int, str]:
    rows = (
        Request.objects.open_to(user, now)
        .filter(pk__in=numbers)
        .select_related("team", "flavor__cluster")
    )
    return {row.pk: f"{row.name()} for {row.team.name}" for row in rows}


def _figures(found: Statistics) -> list[Figure]:
    decided = f"{found.approved} approved, {found.rejected} rejected"
    return [
        {
            "label": "Automatic",
            "value": f"{found.percent_automatic} %",
            "unit": "",
            "note": f"{found.automatic} of {found.asked} asks",
        },
        {"label": "Asked", "value": str(found.asked), "unit": "", "note": decided},
        {
            "label": "Approved for less",
            "value": str(found.approved_less),
            "unit": "",
            "note": f"{found.asked_back} questions asked",
        },
        {
            "label": "Taken back",
            "value": str(found.given_back_early + found.withdrawn),
            "unit": "",
            "note": f"{found.given_back_early} given back early, {found.withdrawn} withdrawn, {found.lapsed} lapsed",
        },
    ]


def _pace(pace: Pace) -> Row:
    few = f"below {FEWEST}"
    return {
        "cells": [
            pace.label[:1].upper() + pace.label[1:],
            pace.done,
            span(pace.median) if pace.median is not None else few,
            span(pace.nine_of_ten) if pace.nine_of_ten is not None else few,
            pace.waiting,
            pace.late,
        ]
    }


def _weeks(found: Statistics) -> list[Row]:
    return [
        {
            "cells": [
                f"Week of {week.start.day} {week.start:%b}",
                week.asked,
                week.automatic,
                f"{week.percent} %",
            ]
        }
        for week in found.weeks
    ]

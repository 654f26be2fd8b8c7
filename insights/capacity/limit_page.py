"""The page of a limit: how much of it is used, what it was, when it is reached, and how Azure is asked for more."""

from collections.abc import Sequence
from typing import TypedDict

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import add_refusal, sent, visitor, visitor_whom, with_refusal
from capacity.chain.forecast import Forecast, Point, forecast, weekly
from capacity.chain.stages import Stage
from capacity.increases import actions
from capacity.increases.actions import Ask
from capacity.metering.keys import quota_key
from capacity.models import Meter, QuotaIncrease
from insights.capacity.charting import Chart, chart
from insights.capacity.expecting import expected_words
from insights.capacity.increasing import IncreaseForm, Quota, panel
from insights.capacity.readings import points_of
from ui.amounts import day
from ui.parts import Columns, Row
from web.refusals import Refused

WEEKS: Columns = [
    "Week until",
    {"label": "Most used", "kind": "number"},
    {"label": "Of the limit", "kind": "number"},
]
AHEAD: Columns = [
    "Day",
    {"label": "Expected", "kind": "number"},
    "Four times out of five between",
]


class LimitPage(TypedDict):
    """A limit: how much of it is used, what it was and what is expected."""

    meter: Meter
    stage: Stage
    expected: str
    chart: Chart | None
    begins: str
    ends: str
    columns: Columns
    rows: Sequence[Row]
    ahead_columns: Columns
    ahead: Sequence[Row]


@require_http_methods(["GET", "HEAD", "POST"])
def limit(request: HttpRequest, pk: int) -> HttpResponse:
    """One limit over time; POST asks Azure for more of a quota. `?limit=` fills in how many vCPUs."""
    user = (
        visitor_whom(request, actions.require_lead)
        if request.method == "POST"
        else visitor(request)
    )
    meter, now = get_object_or_404(Meter, pk=pk), timezone.now()
    points = points_of([meter], now)[meter.pk]
    ahead = forecast(points, limit=meter.limit, now=now)
    quota = Quota.of(meter, ahead, wanted=request.GET.get("limit", ""))
    form, status = None, 200
    if request.method == "POST":
        form, status = _ask(request, meter, quota)
        if form is None:
            return HttpResponseRedirect(reverse("limit", args=[pk]))
    context = {
        **_context(meter, points, ahead),
        **panel(meter, quota, user, now, form=form),
    }
    answer = render(request, "insights/limit.html", context, status=status)
    return answer if form is None else with_refusal(answer, form)


@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw a request that Azure does not have yet."""
    lead = visitor_whom(request, actions.require_lead)
    row = get_object_or_404(QuotaIncrease, pk=pk)
    try:
        actions.withdraw(row.pk, by=lead, now=timezone.now())
        messages.success(request, "Withdrawn: Azure is not asked.")
    except Refused as refusal:
        messages.error(request, refusal.message)
    meter = Meter.objects.filter(
        key=quota_key(row.subscription, row.region, row.family)
    ).first()
    return HttpResponseRedirect(
        reverse("capacity") if meter is None else reverse("limit", args=[meter.pk])
    )


def _ask(
    request: HttpRequest, meter: Meter, quota: Quota | None
) -> tuple[IncreaseForm | None, int]:
    """Ask for what was sent: the form with what is wrong in it and its status; None where there is no form to show."""
    lead, form = visitor(request), None if quota is None else quota.form(sent(request))
    if form is not None and not form.is_valid():
        return form, 422
    try:
        # Of what is no quota the action says so.
        asked = Ask(limit=0, reason="") if form is None else Ask(**form.cleaned_data)
        actions.ask(meter.pk, asked, by=lead, now=timezone.now())
        messages.success(request, "Asked. A worker sends it to Azure now.")
    except Refused as refusal:
        if form is not None:
            return form, add_refusal(form, refusal)
        messages.error(request, refusal.message)
    return None, 302


def _context(meter: Meter, points: list[Point], ahead: Forecast | None) -> LimitPage:
    now = timezone.now()
    drawn = chart(points, limit=meter.limit, forecast=ahead, now=now)
    return {
        "meter": meter,
        "stage": meter.stage,
        "expected": expected_words(ahead, meter, now),
        "chart": drawn,
        "begins": day(drawn.begins, now) if drawn is not None else "",
        "ends": day(drawn.ends, now) if drawn is not None else "",
        "columns": WEEKS,
        "rows": [
            {"cells": [day(one.at, now), round(one.used), _share(one, meter)]}
            for one in reversed(weekly(points))
        ],
        "ahead_columns": AHEAD,
        "ahead": [
            {
                "cells": [
                    day(one.at, now),
                    round(one.used),
                    f"{one.low:,.0f} and {one.high:,.0f}",
                ]
            }
            for one in (ahead.weeks if ahead is not None else ())
        ],
    }


def _share(point: Point, meter: Meter) -> str:
    return f"{round(100 * point.used / meter.limit) if meter.limit else 100} %"

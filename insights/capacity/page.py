"""Pages about capacity: each kind of GPU with its tightest link, the limits that come near, and one limit over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.roles import Permission
from capacity.chain.forecast import FURTHEST, Forecast, Point, forecast, weekly
from capacity.chain.links import Question, tightest
from capacity.chain.stages import Stage
from capacity.chain.words import called
from capacity.connection import is_connected
from capacity.models import Meter, Subscription
from fleet.models import Cluster
from insights.capacity.charting import chart
from insights.capacity.readings import points_of
from insights.quota_chain.gathering import Chain, chains_of
from ui.amounts import ago, capitalized, day

KINDS = [
    "Kind of GPU",
    {"label": "Granted", "kind": "number"},
    {"label": "Can be had", "kind": "number"},
    {"label": "Ready now", "kind": "number"},
    "Tightest link",
    {"label": "More can be granted", "kind": "number"},
]
LIMITS = [
    "Limit",
    {"label": "Used", "kind": "number"},
    "How near",
    "Expected",
]
WEEKS = [
    "Week until",
    {"label": "Most used", "kind": "number"},
    {"label": "Of the limit", "kind": "number"},
]


@require_safe
def capacity(request: HttpRequest) -> HttpResponse:
    """What each kind of GPU still has, and which limits come near."""
    user, now = visitor(request), timezone.now()
    clusters = list(Cluster.objects.filter(enabled=True).prefetch_related("flavors", "node_pools"))
    meters = sorted(Meter.objects.all(), key=lambda one: (-one.stage, -one.percent, one.title))
    near = [one for one in meters if one.stage > Stage.NONE]
    points = points_of(meters, now)
    context = {
        "kinds": KINDS,
        "rows": [_kind(one) for one in chains_of(clusters, now=now)],
        "limits": LIMITS,
        "near": [_limit(one, points[one.pk], now) for one in near],
        "far": [_limit(one, points[one.pk], now) for one in meters if one not in near],
        "azure": _azure(),
        "is_connected": is_connected(),
        "may_manage": user.may(Permission.MANAGE_CLUSTERS),
    }
    return render(request, "insights/capacity.html", context)


@require_safe
def limit(request: HttpRequest, pk: int) -> HttpResponse:
    """One limit: how much of it is used, what it was, and when it will be reached."""
    visitor(request)
    now = timezone.now()
    meter = get_object_or_404(Meter, pk=pk)
    points = points_of([meter], now)[meter.pk]
    ahead = forecast(points, limit=meter.limit, now=now)
    context = {
        "meter": meter,
        "stage": meter.stage,
        "expected": expected_words(ahead, meter, now),
        "chart": chart(points, limit=meter.limit, forecast=ahead, now=now),
        "columns": WEEKS,
        "rows": [_week(one, meter, now) for one in reversed(weekly(points))],
        "ahead_columns": ["Day", {"label": "Expected", "kind": "number"}, "Four times of five between"],
        "ahead": [
            {"cells": [day(one.at, now), round(one.used), f"{one.low:,.0f} and {one.high:,.0f}"]}
            for one in (ahead.weeks if ahead is not None else ())
        ],
    }
    return render(request, "insights/limit.html", context)


def _kind(chain: Chain) -> dict[str, Any]:
    flavor, facts = chain.flavor, chain.facts
    closest = tightest(chain.links(Question.GRANT))
    href = f"{reverse('quota-chain', args=[flavor.cluster.name])}?flavor={flavor.name}"
    return {
        "cells": [
            {"text": flavor.kind, "href": href, "sub": flavor.cluster.title},
            facts.promised.granted,
            facts.promised.obtainable,
            facts.nodes.ready,
            "not known" if closest is None else capitalized(called(closest)),
            "–" if closest is None or closest.room is None else closest.room,
        ]
    }


def _limit(meter: Meter, points: Sequence[Point], now: datetime) -> dict[str, Any]:
    ahead = forecast(points, limit=meter.limit, now=now)
    return {
        "cells": [
            {
                "text": meter.title,
                "href": reverse("limit", args=[meter.pk]),
                "sub": ""
                if now - meter.seen_at < timedelta(minutes=30)
                else f"as of {ago(meter.seen_at, now)}",
            },
            {"text": f"{meter.used:,} of {meter.limit:,} {meter.unit}"},
            {"tone": meter.stage.tone, "word": f"{meter.percent} %"},
            expected_words(ahead, meter, now),
        ]
    }


def _week(point: Point, meter: Meter, now: datetime) -> dict[str, Any]:
    part = round(100 * point.used / meter.limit) if meter.limit else 100
    return {"cells": [day(point.at, now), round(point.used), f"{part} %"]}


def expected_words(ahead: Forecast | None, meter: Meter, now: datetime) -> str:
    """When a limit is expected to be reached, in words with the interval."""
    if meter.used >= meter.limit:
        return "reached"
    if ahead is None:
        return "not known before five weeks of readings"
    weeks = FURTHEST.days // 7
    if ahead.crosses_at is None:
        if ahead.earliest is None:
            return f"not within {weeks} weeks"
        return f"not within {weeks} weeks; it may be from {day(ahead.earliest, now)} on"
    if ahead.latest and ahead.earliest and ahead.latest - ahead.earliest < timedelta(days=2):
        return f"reached about {day(ahead.crosses_at, now)}"
    latest = (
        f"and {day(ahead.latest, now)}"
        if ahead.latest is not None
        else f"and more than {weeks} weeks from now"
    )
    earliest = day(ahead.earliest or ahead.crosses_at, now)
    return f"reached about {day(ahead.crosses_at, now)}, four times of five between {earliest} {latest}"


def _azure() -> list[dict[str, Any]]:
    """How the last look at each subscription went."""
    return [
        {
            "id": one.pk,
            "tone": "waiting" if one.reachable is None else "good" if one.reachable else "bad",
            "word": "Not read yet"
            if one.reachable is None
            else "Read"
            if one.reachable
            else "Does not answer",
            "at": one.answered_at,
            "message": "" if one.reachable else one.message,
        }
        for one in Subscription.objects.all()
    ]

"""The page about capacity: each kind of GPU with its tightest link, the limits that come near, and Azure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import visitor, visitor_whom
from accounts.models import User
from accounts.roles import Permission
from capacity.chain.forecast import Point, forecast
from capacity.chain.links import Question, tightest
from capacity.chain.stages import Stage
from capacity.chain.words import called
from capacity.connection import is_connected
from capacity.models import Meter, Subscription
from capacity.subscriptions import actions as subscriptions
from fleet.models import Cluster
from fleet.presenting import health
from insights.capacity.expecting import expected_words
from insights.capacity.readings import points_of
from insights.capacity.rights import Rights, shown_rights
from insights.quota_chain.gathering import Kind, kinds_of
from ui.amounts import ago, capitalized
from ui.parts import Columns, Row

KINDS: Columns = [
    "Kind of GPU",
    {"label": "Granted", "kind": "number"},
    {"label": "Can be had", "kind": "number"},
    {"label": "Ready now", "kind": "number"},
    "Tightest link",
    {"label": "More can be granted", "kind": "number"},
]
LIMITS: Columns = [
    "Limit",
    {"label": "Used", "kind": "number"},
    "How near",
    "Expected",
]


@dataclass(frozen=True, kw_only=True)
class Looked:
    """How the last look at a subscription went, and what the portal may do there."""

    id: str
    tone: str
    word: str
    at: datetime | None
    message: str
    rights: Rights | None


@require_safe
def capacity(request: HttpRequest) -> HttpResponse:
    """What each kind of GPU still has, and which limits come near."""
    user, now = visitor(request), timezone.now()
    clusters = list(Cluster.objects.looked_after())
    meters = sorted(
        Meter.objects.all(), key=lambda one: (-one.stage, -one.percent, one.title)
    )
    near = [one for one in meters if one.stage > Stage.NONE]
    points = points_of(meters, now)
    context = {
        "kinds": KINDS,
        "rows": [_kind(one, now) for one in kinds_of(clusters, now=now)],
        "limits": LIMITS,
        "near": [_limit(one, points[one.pk], now) for one in near],
        "far": [_limit(one, points[one.pk], now) for one in meters if one not in near],
        "azure": _azure(user),
        "is_connected": is_connected(),
        "may_manage": user.may(Permission.MANAGE_CLUSTERS),
    }
    return render(request, "insights/capacity.html", context)


@require_POST
def check_subscription(request: HttpRequest, pk: str) -> HttpResponse:
    """Have a subscription read now, and with it what the portal may do there."""
    lead = visitor_whom(request, subscriptions.require_lead)
    found = get_object_or_404(Subscription, pk=pk)
    subscriptions.check_again(found.pk, by=lead, now=timezone.now())
    messages.success(
        request, "A worker reads the subscription now; look again in a moment."
    )
    return redirect("capacity")


def _kind(kind: Kind, now: datetime) -> Row:
    """A line of the table; which nodes are ready on a cluster that does not answer, nobody knows."""
    flavor, facts = kind.flavor, kind.facts
    closest = tightest(kind.links(Question.GRANT))
    is_unseen = flavor.cluster.is_observed and flavor.cluster.is_away
    href = f"{reverse('quota-chain', args=[flavor.cluster.name])}?flavor={flavor.name}"
    return {
        "cells": [
            {
                "text": flavor.kind,
                "href": href,
                "sub": _cluster_words(flavor.cluster, now),
            },
            facts.promised.granted,
            facts.promised.obtainable,
            "not known" if is_unseen else facts.nodes.ready,
            "not known" if closest is None else capitalized(called(closest)),
            "–" if closest is None or closest.room is None else closest.room,
        ]
    }


def _cluster_words(cluster: Cluster, now: datetime) -> str:
    if not cluster.is_away:
        return cluster.title
    at = cluster.last_contact_at
    since = f", last contact {ago(at, now)}" if at else ""
    return f"{cluster.title} · {health(cluster)[1]}{since}"


def _limit(meter: Meter, points: Sequence[Point], now: datetime) -> Row:
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


def _azure(user: User) -> list[Looked]:
    """How the last look at each subscription went, and for those who may see it what the portal may do there."""
    may_see = user.may(Permission.SEE_AUDIT)
    return [
        Looked(
            id=one.pk,
            tone="waiting"
            if one.reachable is None
            else "good"
            if one.reachable
            else "bad",
            word="Not read yet"
            if one.reachable is None
            else "Read"
            if one.reachable
            else "Does not answer",
            at=one.answered_at,
            message="" if one.reachable else one.message,
            rights=shown_rights(one) if may_see else None,
        )
        for one in Subscription.objects.all()
    ]

"""What pages show of drift: the panel of a cluster, and one difference with what can be done about it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from audit.models import Event
from fleet.models import Cluster
from provisioning.drift import adopting
from provisioning.drift.actions import held_by, why_not_left_alone
from provisioning.drift.comparing import What
from provisioning.models import Drift
from provisioning.words import plain
from ui.amounts import dated
from ui.parts import Fact

MOST_OPEN, MOST_PAST = 50, 8
LATELY = timedelta(days=7)
STATES = {
    Drift.State.OPEN: ("waiting", "Differs"),
    Drift.State.REPAIRED: ("good", "Put right"),
    Drift.State.ADOPTED: ("past", "Taken over"),
    Drift.State.IGNORED: ("past", "Left alone"),
}


class Line(TypedDict):
    """A difference in a list: what happened, how it stands now, and what comes."""

    row: Drift
    sentence: str
    tone: str
    word: str
    since: datetime
    where: str
    href: str
    note: str
    can_repair: bool


class Panel(TypedDict):
    """The drift of a cluster: what is open and what was dealt with lately."""

    open: Sequence[Line]
    more: bool
    past: Sequence[Line]
    may_act: bool
    braked: bool


class DriftPage(TypedDict):
    """The page of one difference."""

    drift: Drift
    line: Line
    cluster: Cluster
    facts: Sequence[Fact]
    may_act: bool
    adopt_refusal: str
    ignore_refusal: str
    held: Sequence[tuple[str, str]]
    is_resting: bool
    events: Sequence[Event]


def panel(cluster: Cluster, *, by: User, now: datetime) -> Panel:
    """The drift of a cluster that the person may see: open first, then what was dealt with lately."""
    rows = (
        Drift.objects.visible_to(by)
        .filter(tenancy__cluster=cluster)
        .select_related("tenancy__team")
    )
    past = (
        rows.exclude(state=Drift.State.OPEN)
        .filter(ended_at__gt=now - LATELY)
        .order_by("-ended_at", "-id")
    )
    found = list(rows.open()[: MOST_OPEN + 1])
    return {
        "open": [line(row, cluster=cluster) for row in found[:MOST_OPEN]],
        "more": len(found) > MOST_OPEN,
        "past": [line(row, cluster=cluster) for row in past[:MOST_PAST]],
        "may_act": by.may(Permission.MANAGE_CLUSTERS),
        "braked": cluster.braked_at is not None,
    }


def line(row: Drift, *, cluster: Cluster) -> Line:
    """A row with its words: what happened, where it stands now, and what waits for whom."""
    tone, word = STATES[Drift.State(row.state)]
    if row.is_open and row.repair_asked_at:
        tone, word = "moving", "Being put right"
    return {
        "row": row,
        "sentence": row.sentence,
        "tone": tone,
        "word": word,
        "since": row.since,
        "where": f"{row.tenancy.team.name} · {row.tenancy.namespace}",
        "href": reverse("drift", args=[row.pk]),
        "note": _note(row, cluster),
        "can_repair": row.is_open and not row.repair_asked_at and not cluster.braked_at,
    }


def _note(row: Drift, cluster: Cluster) -> str:
    if row.state == Drift.State.IGNORED and row.ignored_until is not None:
        return f"By {row.ended_by}, until {dated(row.ignored_until)}: {row.reason}"
    if not row.is_open:
        return f"By {row.ended_by}"
    if row.repair_asked_at is not None:
        return "The next look puts it right."
    if cluster.braked_at is not None:
        return "Repairs on this cluster have stopped."
    if row.contested:
        return row.reason
    if cluster.on_drift == Cluster.OnDrift.REPAIR:
        return "The portal puts it right."
    return "Nothing is written until a platform lead decides."


def page(row: Drift, *, by: User, now: datetime) -> DriftPage:
    """One difference with its facts, its table, what can be done about it and why not, and what was done."""
    tenancy, cluster = row.tenancy, row.tenancy.cluster
    may_act = by.may(Permission.MANAGE_CLUSTERS)
    refusal = (
        adopting.refusal(row.kind, row.fields)
        if row.what == What.CHANGED
        else "Only a change can be taken over."
    )
    return {
        "drift": row,
        "line": line(row, cluster=cluster),
        "cluster": cluster,
        "facts": _facts(row),
        "may_act": may_act,
        "adopt_refusal": refusal,
        "ignore_refusal": why_not_left_alone(row),
        "held": sorted(held_by(tenancy, row).items()) if may_act else [],
        "is_resting": row.ignored_until is not None and row.ignored_until > now,
        "events": list(Event.objects.about("drift", row.pk)[:10]),
    }


def _facts(row: Drift) -> list[Fact]:
    said = plain(row.kind, row.name)
    facts: list[Fact] = [
        {
            "label": "Object",
            "text": f"{row.kind} {row.name}" + (f", {said}" if said else ""),
        },
        {"label": "Namespace", "copyable": row.namespace or row.tenancy.namespace},
        {
            "label": "Team",
            "text": row.tenancy.team.name,
            "href": reverse("team", args=[row.tenancy.team.slug]),
        },
        {
            "label": "By",
            "text": f"{row.who} ({row.operation})"
            if row.who
            else "the cluster names nobody",
        },
        {"label": "Since", "at": row.since},
        {"label": "First seen", "at": row.first_seen_at},
    ]
    return facts + (
        [{"label": "Dealt with", "at": row.ended_at}] if row.ended_at else []
    )

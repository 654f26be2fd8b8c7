"""The list of reservations: which rows, what a row says, and beside it what is orphaned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from textwrap import shorten
from typing import TypedDict

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from accounts.current_user import visitor
from accounts.models import Team, User
from capacity.models import Orphan, Reservation
from capacity.orphans.comparing import OrphanKind
from capacity.reservations.costs import Costs
from capacity.reservations.naming import pool_name
from capacity.reservations.states import State
from insights.reservations.forms import ANY, ReservationFilter
from insights.reservations.gathering import (
    OrphanPrices,
    costs_by_day,
    days_of,
    summed,
    until_of,
    usd_per_hour,
    waiting_of,
)
from insights.reservations.presenting import (
    Standing,
    orphan_standing,
    place,
    standing,
)
from ui.amounts import usd
from ui.parts import Cell, Columns, Row

PAGE_SIZE, MAX_TEAMS, MAX_ORPHANS, MAX_SENTENCE = 25, 200, 100, 100
MAX_ID = 2**63 - 1
# A number and its size stay in one line.
NBSP = "\N{NO-BREAK SPACE}"
COLUMNS: Columns = [
    "Reservation",
    "Team",
    "State",
    {"label": "In use", "kind": "number"},
    {"label": "An hour", "kind": "number"},
    {"label": "Idle so far", "kind": "number"},
    {"label": "Until", "kind": "end"},
]
ORPHAN_COLUMNS: Columns = [
    "In Azure",
    "What is wrong",
    {"label": "In use", "kind": "number"},
    {"label": "An hour", "kind": "number"},
    {"label": "Found", "kind": "end"},
]
FOREIGN_COLUMNS: Columns = [
    "Reservation",
    "Where",
    {"label": "In use", "kind": "number"},
    {"label": "An hour", "kind": "number"},
]


@dataclass(frozen=True)
class Page:
    """Rows, newest first, and the addresses of the pages beside it; empty where there is none."""

    rows: list[Reservation]
    newer: str
    older: str


class Orphans(TypedDict):
    """What is orphaned and what it costs an hour, and apart from it what other people reserved."""

    orphan_columns: Columns
    orphans: Sequence[Row]
    orphans_usd: Decimal
    foreign_columns: Columns
    foreign: Sequence[Row]
    more_orphans: bool


def filtered(request: HttpRequest) -> tuple[ReservationFilter, QuerySet[Reservation]]:
    """The filter form and the reservations that it leaves, of those that the person may see."""
    user = visitor(request)
    form = ReservationFilter(request.GET, teams=_teams(user))
    rows = Reservation.objects.visible_to(user)
    said = form.cleaned_data if form.is_valid() else {}
    return form, narrowed(rows, team=said.get("team", ""), state=said.get("state", ""))


def narrowed(
    rows: QuerySet[Reservation], *, team: str, state: str
) -> QuerySet[Reservation]:
    """Those of a team (its slug; empty for all), in a state; without one, those that are not released."""
    if team:
        rows = rows.filter(team__slug=team)
    if state == ANY:
        return rows
    return rows.filter(state=state) if state else rows.exclude(state=State.RELEASED)


def page_of(rows: QuerySet[Reservation], query: Mapping[str, str]) -> Page:
    """The page that `before` or `after` in a query string points to; the first for what no number is."""
    rows = rows.select_related("team", "flavor__cluster")
    before, after = (_number(query.get(name, "")) for name in ("before", "after"))
    if after:
        found = list(rows.filter(pk__gt=after).order_by("pk")[: PAGE_SIZE + 1])
        more, shown = len(found) > PAGE_SIZE, found[:PAGE_SIZE][::-1]
        return Page(
            shown,
            _beside(query, "after", shown[:1]) if more else "",
            _beside(query, "before", shown[-1:]),
        )
    found = list(
        (rows.filter(pk__lt=before) if before else rows).order_by("-pk")[
            : PAGE_SIZE + 1
        ]
    )
    more, shown = len(found) > PAGE_SIZE, found[:PAGE_SIZE]
    newer = _beside(query, "after", shown[:1]) if before else ""
    return Page(shown, newer, _beside(query, "before", shown[-1:]) if more else "")


def lines(rows: Sequence[Reservation], *, now: datetime) -> list[Row]:
    """The rows of the list; two queries whatever their number, three where one is refused."""
    days, until, waiting = days_of(rows), until_of(rows), waiting_of(rows)
    return [
        _line(
            one,
            summed(costs_by_day(one, days[one.pk], now)),
            until.get(one.pk),
            standing(one, now, grant_waits=one.pk in waiting),
        )
        for one in rows
    ]


def orphans(prices: OrphanPrices) -> Orphans:
    """What is orphaned, and other people's reservations apart; two queries."""
    ours = list(Orphan.objects.of_ours().order_by("kind", "pk")[: MAX_ORPHANS + 1])
    theirs = list(Orphan.objects.foreign().order_by("pk")[: MAX_ORPHANS + 1])
    has_more = max(len(ours), len(theirs)) > MAX_ORPHANS
    ours, theirs = ours[:MAX_ORPHANS], theirs[:MAX_ORPHANS]
    costly = [
        cost
        for one in ours
        if one.kind == OrphanKind.ORPHANED and (cost := usd_per_hour(one, prices))
    ]
    return {
        "orphan_columns": ORPHAN_COLUMNS,
        "orphans": [_orphan(one, prices) for one in ours],
        "orphans_usd": sum(costly, Decimal(0)),
        "foreign_columns": FOREIGN_COLUMNS,
        "foreign": [_foreign(one, prices) for one in theirs],
        "more_orphans": has_more,
    }


def _line(
    row: Reservation, costs: Costs, until: datetime | None, stands: Standing
) -> Row:
    nodes = (
        f", pool {pool_name(row.pk)} of {row.flavor.cluster.title}"
        if row.flavor
        else ""
    )
    return {
        "cells": [
            {
                "text": titled(row),
                "href": reverse("reservation", args=[row.pk]),
                "sub": f"{place(row)}{nodes}",
            },
            row.team.name,
            {"tone": stands.tone, "word": stands.word, "sub": _short(stands.sentence)},
            {
                "text": f"{row.used} of {row.held}",
                "sub": f"{row.over} beyond" if row.over else "",
            },
            {"text": usd(row.usd_per_hour)},
            {
                "text": usd(costs.idle_usd),
                "sub": f"of {usd(costs.usd)}" if costs.usd else "",
            },
            {"at": until} if until else "–",
        ]
    }


def titled(row: Reservation) -> str:
    """ "2 × Standard_NC24ads_A100_v4"; what is or was released has no number any more."""
    number = row.machines or row.held
    return f"{number}{NBSP}×{NBSP}{row.vm_size}" if number else row.vm_size


def _orphan(row: Orphan, prices: OrphanPrices) -> Row:
    stands, cost = orphan_standing(row), usd_per_hour(row, prices)
    what: Cell = {
        "text": row.title.replace(" × ", f"{NBSP}×{NBSP}"),
        "sub": f"{row.group} in {place(row)}",
    }
    if row.kind == OrphanKind.ORPHANED:
        what["href"] = reverse("orphan", args=[row.pk])
    elif row.reservation_id is not None:
        what["href"] = reverse("reservation", args=[row.reservation_id])
    return {
        "cells": [
            what,
            {"tone": stands.tone, "word": stands.word, "sub": _short(stands.sentence)},
            f"{row.used} of {row.machines}",
            {"text": "no price" if cost is None else usd(cost)},
            row.first_seen_at,
        ]
    }


def _foreign(row: Orphan, prices: OrphanPrices) -> Row:
    cost = usd_per_hour(row, prices)
    return {
        "cells": [
            {"text": row.title, "sub": f"{row.resource_group} / {row.group}"},
            place(row),
            f"{row.used} of {row.machines}",
            "no price" if cost is None else usd(cost),
        ]
    }


def _short(sentence: str) -> str:
    """What fits into a line of a table: all of it, else its first sentence; its page says it all."""
    if len(sentence) <= MAX_SENTENCE:
        return sentence
    first, dot, _ = sentence.partition(". ")
    return shorten(f"{first}{dot.strip()}", MAX_SENTENCE, placeholder=" …")


def _teams(user: User) -> list[tuple[str, str]]:
    return list(Team.objects.visible_to(user).values_list("slug", "name")[:MAX_TEAMS])


def _number(text: str) -> int:
    return (
        min(int(text), MAX_ID)
        if text.isascii() and text.isdigit() and len(text) < 20
        else 0
    )


def _beside(query: Mapping[str, str], name: str, rows: Sequence[Reservation]) -> str:
    if not rows:
        return ""
    kept = {
        key: value
        for key, value in query.items()
        if value and key not in ("before", "after")
    }
    return "?" + urlencode({**kept, name: str(rows[0].pk)})

"""The list of requests and the queue of an approver: which rows, and what a row says."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, Prefetch, Q, Window
from django.http import HttpRequest
from django.urls import reverse

from accounts.current_user import visitor
from accounts.models import Team, User
from approvals.models import Request, RequestQuerySet, Step
from approvals.requests import prices
from approvals.requests.filters import QueueFilter, RequestFilter
from approvals.requests.presenting import shown_name, state_of, state_word, titled
from approvals.states import State
from catalogue.models import switched_off
from ui.amounts import ago, usd
from ui.parts import ChoosableRow, Columns, Row

LARGE = 8
SIZES: Mapping[str, Q] = {"small": Q(gpus__lt=LARGE), "large": Q(gpus__gte=LARGE)}
AGES: Mapping[str, timedelta] = {"day": timedelta(days=1), "week": timedelta(days=7)}
MOST_IN_QUEUE = 50
# What waits for an answer of its requester comes last: nobody needs to decide it before.
IN_TURN = ("turn", "created_at", "id")
TO_DECIDE = Window(Count("pk", filter=Q(turn=Request.Turn.APPROVER)))
OF_ROW = ("team", "requester", "flavor__cluster")
COLUMNS: Columns = [
    "Request",
    "Team",
    "State",
    "Until",
    {"label": "In all", "kind": "number"},
    {"label": "Asked", "kind": "end"},
]
QUEUE_COLUMNS: Columns = [
    "Request",
    "Team",
    "Where",
    "Until",
    {"label": "In all", "kind": "number"},
    {"label": "Waits", "kind": "end"},
]


def with_all(rows: RequestQuerySet) -> RequestQuerySet:
    """With everything that a row says of whose turn it is, in two queries whatever their number."""
    return (
        rows.select_related(*OF_ROW, "tenancy")
        .with_allocation()
        .with_titles()
        .prefetch_related(Prefetch("steps", Step.objects.select_related("stand_in")))
    )


def with_cost(rows: RequestQuerySet) -> RequestQuerySet:
    """With everything that a row of the list says, in three queries whatever their number."""
    return with_all(rows).select_related("hold").prefetch_related("hold__allocations")


def filtered(request: HttpRequest) -> tuple[RequestFilter, RequestQuerySet]:
    """The filter form and the requests it leaves, of those that the person may see."""
    user = visitor(request)
    form = RequestFilter(request.GET, teams=team_choices(user))
    rows = Request.objects.visible_to(user)
    if not form.is_valid():
        return form, rows
    said = form.cleaned_data
    if said["whose"]:
        rows = rows.filter(requester=user)
    if said["team"]:
        rows = rows.filter(team__slug=said["team"])
    return form, _in_state(rows, said["state"])


def queue(user: User, form: QueueFilter, *, now: datetime) -> list[Request]:
    """What waits for this person and the filter leaves, longest first, at most fifty, each with `in_all` to decide."""
    rows = narrowed(
        Request.objects.awaiting(user, now),
        form.cleaned_data if form.is_valid() else {},
        now=now,
    )
    # What waits holds nothing yet, so the row needs neither its holding nor its place.
    return _longest_waiting(
        rows,
        Request.objects.select_related(*OF_ROW).with_titles().prefetch_related("steps"),
    )


def narrowed(
    rows: RequestQuerySet, said: Mapping[str, Any], *, now: datetime
) -> RequestQuerySet:
    """The requests of a queue that a filter leaves: of a team, an offering, a size, older than some time."""
    if team := said.get("team"):
        rows = rows.filter(team__slug=team)
    if offering := said.get("offering"):
        rows = rows.filter(offering=offering)
    if size := said.get("size"):
        rows = rows.filter(SIZES[size])
    if age := said.get("age"):
        rows = rows.filter(created_at__lte=now - AGES[age])
    return rows


def queue_beside(user: User, now: datetime) -> tuple[list[Request], int]:
    """What waits for this person, longest first, at most fifty, and how many are to be decided in all; in one query."""
    rows = (
        Request.objects.awaiting(user, now)
        .order_by(*IN_TURN)
        .select_related("team", "requester", "tenancy", "flavor__cluster")
        .annotate(is_off=Exists(switched_off()))
        .with_orphaned()
    )
    shown = list(rows.annotate(in_all=TO_DECIDE)[:MOST_IN_QUEUE])
    return shown, getattr(shown[0], "in_all", 0) if shown else 0


def _longest_waiting(rows: RequestQuerySet, wide: RequestQuerySet) -> list[Request]:
    """The first fifty of `rows`, read as `wide` reads them, each with `in_all` of these rows that are to be decided.

    Only keys are counted and sorted: with everything that a row shows, thousands of rows would be read for fifty.
    """
    first = rows.order_by(*IN_TURN).annotate(in_all=TO_DECIDE)[:MOST_IN_QUEUE]
    counted: dict[int, int] = dict(first.values_list("pk", "in_all"))
    shown = list(wide.filter(pk__in=counted).order_by(*IN_TURN))
    for each in shown:
        each.in_all = counted[each.pk]  # type: ignore[attr-defined]  # of these rows, not of the request
    return shown


def how_many_follow(shown: Sequence[Request]) -> int:
    """How many are to be decided beside those of a queue that are shown, with their `in_all`."""
    here = sum(each.turn == Request.Turn.APPROVER for each in shown)
    return max(getattr(shown[0], "in_all", 0) - here, 0) if shown else 0


def team_choices(user: User) -> list[tuple[str, str]]:
    """The teams this person may see, for a filter."""
    return list(Team.objects.visible_to(user).values_list("slug", "name")[:200])


def waiting_teams(user: User, now: datetime) -> list[tuple[str, str]]:
    """The teams of what waits for this person, theirs or not, for the queue's filter."""
    waits = Request.objects.awaiting(user, now).order_by().values("team_id")
    return list(Team.objects.filter(pk__in=waits).values_list("slug", "name")[:200])


def row(request: Request, *, now: datetime) -> Row:
    """A line of the list."""
    state = state_of(request, now=now)
    return {
        "cells": [
            {
                "text": shown_name(request),
                "sub": f"{where}, request {request.pk}"
                if (where := request.where)
                else f"request {request.pk}",
                "href": reverse("request", args=[request.pk]),
            },
            {"text": request.team.name, "sub": request.requester.name},
            {
                "tone": state.tone,
                "word": state_word(request, state),
                "sub": waits_for(request),
            },
            _until(request),
            {"text": usd(_in_all(request)), "sub": _price_of_now(request, now=now)},
            {"since": request.created_at},
        ]
    }


def _until(request: Request) -> datetime:
    """When it ends, or ended before that."""
    if request.allocation_id is None:
        return request.until_now
    ends = [row.ended_at for row in request.hold.allocations.all()]
    over = [at for at in ends if at is not None]
    return (
        min(request.until_now, max(over))
        if over and len(over) == len(ends)
        else request.until_now
    )


def _in_all(request: Request) -> Decimal:
    """What was granted costs from its start to its end, as its page says it; before that, the price as asked."""
    if request.allocation_id is None:
        return request.usd
    return sum((row.usd_in_all for row in request.hold.allocations.all()), Decimal(0))


def _price_of_now(request: Request, *, now: datetime) -> str:
    """The price of now, where it is told beside the one as asked; the same on every page."""
    if not prices.differs(request, now=now):
        return ""
    return f"as asked; {usd(prices.usd_now(request, now=now) or Decimal(0))} now"


def queue_row(request: Request, *, now: datetime) -> Row:
    """A line of the queue."""
    return {
        "cells": [
            {
                "text": titled(request),
                "sub": f"request {request.pk}, {request.of.name}",
                "href": reverse("approval", args=[request.pk]),
            },
            {"text": request.team.name, "sub": request.requester.name},
            {
                "text": request.where or "–",
                "sub": flavor.free_words if (flavor := request.flavor) else "",
            },
            request.until_now,
            {"text": usd(request.usd), "sub": _price_of_now(request, now=now)},
            {
                "text": ago(request.created_at, now).removesuffix(" ago"),
                "sub": waits_for(request),
            },
        ]
    }


def choosable(request: Request, *, now: datetime) -> ChoosableRow:
    """A line of the queue with what choosing it needs."""
    name = f"{titled(request)} for {request.team.name}"
    return {
        "pk": request.pk,
        "name": name,
        "cells": queue_row(request, now=now)["cells"],
    }


def waits_for(request: Request) -> str:
    """Whose turn it is, of a request that came from `with_all()`; empty once decided."""
    if request.state != State.WAITING:
        return ""
    if request.turn == Request.Turn.REQUESTER:
        return f"an answer from {request.requester.name}"
    return next(
        (step.words for step in request.current_steps if step.done_at is None), ""
    )


def _in_state(rows: RequestQuerySet, state: str) -> RequestQuerySet:
    if state in ("held", "booked", "ended"):
        granted = rows.filter(state=State.APPROVED)
        if state == "booked":
            return granted.filter(
                allocation__ended_at=None,
                allocation__begun_at=None,
                allocation__isnull=False,
            )
        return (
            granted.held()
            if state == "held"
            else granted.exclude(allocation__ended_at=None)
        )
    return rows.filter(state=state) if state else rows

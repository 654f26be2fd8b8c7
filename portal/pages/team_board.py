"""Everything a team's page shows, gathered in a fixed number of queries however much the team has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypedDict

from django.db.models import Exists, OuterRef, Q, Subquery
from django.urls import reverse
from django.utils import timezone

from accounts.cost_centres.models import is_confirmed, unconfirmed_words
from accounts.models import Membership, Team, User
from accounts.roles import Permission
from allocations import provisioners
from allocations.budgets.money import per_day
from allocations.budgets.months import ThisMonth, this_month
from allocations.ends.actions import may_give_back
from allocations.models import Allocation, Leftover
from allocations.schedule import State
from allocations.use import words as leftover_words
from allocations.use.words import LeftWork
from approvals.fulfilment.page import Apart, of_tenancies
from approvals.models import Request
from approvals.request_form.not_yet import lacks_place
from approvals.requests.presenting import shown_name, state_of, state_word
from approvals.states import State as RequestState
from audit.actors import POLICY
from audit.events import Kind
from audit.models import Event
from capacity.models import RegistryAccess
from catalogue.offerings import OFFERINGS
from fleet.models import Cluster
from notebooks.servers.states import StopReason
from offboarding.models import Departure
from offboarding.page import OpenDeparture, open_of_team
from onboarding.checklist import away_words, checklist, trouble_of
from onboarding.images import access_of
from onboarding.team_changes import may_change
from portal.pages.sentences import sentence
from provisioning.clusters.explaining import explain
from provisioning.models import Tenancy
from ui.parts import Checklist, Columns, Empty, Entry, Person, Row, in_time

MOST_PEOPLE, MOST_REQUESTS, MOST_EVENTS, MOST_NEXT = 24, 6, 8, 6
LOUD = {
    "tenancy.failed": "bad",
    "tenancy.parked": "bad",
    "request.rejected": "bad",
    "refused": "bad",
    "tenancy.converged": "good",
    "request.approved": "good",
    "allocation.issued": "good",
    "allocation.expired": "past",
}


@dataclass(frozen=True)
class Holding:
    """One allocation as a line: what, where, who asked, what it costs, until when; `href` is its request's page.

    `why_not_kept` is why its GPUs cannot be kept longer, empty where they can; `renewal` the number of the request to
    keep them, while it waits.
    """

    pk: int
    what: str
    kind: str
    where: str
    who: str
    usd_per_day: Decimal
    is_charged: bool
    begins: datetime | None
    until: datetime
    kept_until: datetime
    tone: str
    word: str
    has_gpus: bool
    why_not_kept: str
    renewal: int | None
    href: str
    reservation: int | None = None


class Figures(TypedDict):
    """What a team holds, what ends next, what it costs a day, and where its month leads."""

    gpus: int
    kinds: str
    ends: datetime | None
    ends_what: str
    ends_tone: str
    usd_per_day: Decimal
    usd_of: str
    month: str
    spent: Decimal
    limit: Decimal
    close: str
    says: Sequence[str]


class Place(TypedDict):
    """Where a team works, with its objects and what stands in the way; `apart` is how far its own subscription is."""

    drift_url: str
    shares_url: str
    tenancy: Tenancy
    cluster: Cluster
    checklist: Checklist
    trouble: str
    retry: str
    away: str
    announced: str
    apart: Apart | None


class Board(TypedDict):
    """The page of a team."""

    team: Team
    figures: Figures
    is_member: bool
    lacking: Empty | None
    unconfirmed: str
    may_change: bool
    may_give_back: bool
    holdings: Sequence[Holding]
    departures: Sequence[OpenDeparture]
    left: Sequence[LeftWork]
    places: Sequence[Place]
    images: RegistryAccess | None
    may_retry_images: bool
    people: Sequence[Person]
    more_people: bool
    ask_columns: Columns
    asked: Sequence[Row]
    story: Sequence[Entry]
    live: str


def find(slug: str, user: User) -> Team | None:
    """The team, if the person may see it; `leaves` says whether any of its leaving is asked for or under way.

    `has_confirmed` says whether anybody has confirmed its cost centre.
    """
    leaves = Exists(Departure.objects.open().filter(team=OuterRef("pk")))
    rows = Team.objects.visible_to(user).select_related("owner", "created_by")
    return (
        rows.annotate(leaves=leaves, has_confirmed=is_confirmed("cost_centre"))
        .filter(slug=slug)
        .first()
    )


def board(team: Team, *, by: User, now: datetime) -> Board:
    """The page's context; `team` comes from `find`."""
    month = Allocation.objects.of_month(now).filter(team=team)
    renewal = Request.objects.filter(
        renews__hold=OuterRef("hold"), state=RequestState.WAITING
    )
    rows = list(month.described().annotate(renewal=Subquery(renewal.values("pk")[:1])))
    held = [row for row in rows if row.ended_at is None]
    booked = list(
        Allocation.objects.booked()
        .filter(team=team)
        .described()
        .order_by("starts_at", "pk")
    )
    left = leftover_words.open_of_team(team.pk)
    tenancies = list(
        Tenancy.objects.present().filter(team=team).select_related("cluster", "project")
    )
    apart = of_tenancies(tenancies, viewer=by)
    asked = list(
        Request.objects.with_allocation()
        .with_titles()
        .filter(team=team)
        .select_related("flavor__cluster", "tenancy", "requester")[:MOST_REQUESTS]
    )
    people = list(
        team.memberships.of_people()
        .select_related("user")
        .order_by("-part", "user__name")[: MOST_PEOPLE + 1]
    )
    return {
        "team": team,
        "figures": figures(
            held, this_month(team, now=now, rows=[*rows, *booked]), now=now
        ),
        "is_member": team.pk in by.team_ids,
        "unconfirmed": ""
        if getattr(team, "has_confirmed", True)
        else unconfirmed_words(team.cost_centre),
        "lacking": lacks_place(team, tenancies),
        "may_change": may_change(team, by),
        "may_give_back": may_give_back(by, team.pk),
        "holdings": [
            *(
                holding(row, now=now, renewal=getattr(row, "renewal", None))
                for row in held
            ),
            *(holding(row, now=now) for row in booked),
        ],
        "departures": open_of_team(team, now=now) if getattr(team, "leaves") else [],  # noqa: B009
        "left": leftover_words.lines(left, now=now),
        "places": [place(row, by=by, apart=apart.get(row.pk)) for row in tenancies],
        "images": (images := access_of(team)),
        "may_retry_images": images is not None
        and images.parked_at is not None
        and by.may(Permission.MANAGE_CLUSTERS),
        "people": [person(row) for row in people[:MOST_PEOPLE]],
        "more_people": len(people) > MOST_PEOPLE,
        "ask_columns": ["Asked for", "By", "State", {"label": "When", "kind": "end"}],
        "asked": [ask_line(row, now=now) for row in asked],
        "story": story(
            team, held, tenancies, left, products=_products(held, asked), now=now
        ),
        "live": live_names(team, tenancies),
    }


def figures(held: Sequence[Allocation], month: ThisMonth, *, now: datetime) -> Figures:
    """Held, ends next, cost a day, what this month has set aside of its budget, and where it leads."""
    first = min(held, key=lambda row: row.until, default=None)
    gpus = [row for row in held if row.flavor_id is not None]
    charged = [row for row in held if row.charged_from is not None]
    others = len(held) - len(gpus)
    kinds = [
        *_kinds(gpus),
        *([f"{others} more thing{'' if others == 1 else 's'}"] if others else []),
    ]
    return {
        "gpus": sum(row.gpus for row in gpus),
        "kinds": " + ".join(kinds),
        "ends": first.until if first else None,
        "ends_what": first.what if first else "",
        "ends_tone": "ending"
        if first and provisioners.state_of(first, now=now) is State.ENDING_SOON
        else "",
        # Added up before it is rounded, as it is wherever a team's cost a day is told.
        "usd_per_day": per_day(
            gpus=1, price=sum((row.usd_per_hour for row in charged), Decimal(0))
        ),
        "usd_of": "for what is held now"
        if len(charged) == len(held)
        else "for what is in place; what is being set up costs nothing yet",
        "month": f"{now:%B}",
        "spent": month.budget.held_usd,
        "limit": month.budget.limit_usd,
        "close": month.close,
        "says": month.says,
    }


def _kinds(held: Sequence[Allocation]) -> list[str]:
    count: dict[str, int] = {}
    for row in held:
        if row.flavor is not None:
            count[row.flavor.kind] = count.get(row.flavor.kind, 0) + row.gpus
    return [f"{gpus} {product}" for product, gpus in sorted(count.items())]


def holding(row: Allocation, *, now: datetime, renewal: int | None = None) -> Holding:
    """An allocation with its flavor and cluster as a line."""
    state, flavor = provisioners.state_of(row, now=now), row.flavor
    in_place = state is State.HELD and flavor is None
    return Holding(
        pk=row.pk,
        what=row.what if flavor is None else f"{row.gpus} × {flavor.words}",
        kind=""
        if row.offering in ("gpus", "training")
        else OFFERINGS[row.offering].name,
        where=row.where,
        who=row.requester.name,
        usd_per_day=row.usd_per_day,
        is_charged=row.charged_from is not None,
        begins=row.starts_at if row.is_booked else None,
        until=row.until,
        kept_until=row.kept_until,
        tone=state.tone,
        word="In place" if in_place else state.words,
        has_gpus=flavor is not None and not row.is_booked,
        why_not_kept=row.why_not_kept,
        renewal=renewal,
        href=_request_page(row.hold.request_id),
        reservation=row.reservation_id,
    )


def _request_page(number: int | None) -> str:
    """The page of the request that something was granted for."""
    return "" if number is None else reverse("request", args=[number])


def place(row: Tenancy, *, by: User, apart: Apart | None) -> Place:
    """A tenancy with its checklist; the retry button is for members and platform leads."""
    may_retry = row.team_id in by.team_ids or by.may(Permission.MANAGE_CLUSTERS)
    retry = reverse("look-again", args=[row.pk]) if may_retry else ""
    may_share = by.may(Permission.MANAGE_CLUSTERS)
    listed = checklist(row, title=row.cluster.title, retry=retry)
    return {
        "drift_url": f"{reverse('cluster', args=[row.cluster.name])}#drift"
        if may_share and row.is_drifting
        else "",
        "shares_url": reverse("tenancy-shares", args=[row.pk]) if may_share else "",
        "tenancy": row,
        "cluster": row.cluster,
        "checklist": listed,
        "trouble": trouble_of(row, listed),
        "retry": retry,
        "away": away_words(row.cluster, by=by),
        "announced": row.cluster.announces(timezone.now()),
        "apart": apart,
    }


def person(row: Membership) -> Person:
    """A member as a chip."""
    role = row.get_part_display() if row.part == Membership.Part.LEAD else ""
    return {"name": row.user.name, "initials": row.user.initials, "role": role}


def ask_line(row: Request, *, now: datetime) -> Row:
    """A request as cells of a table."""
    state = state_of(row, now=now)
    return {
        "cells": [
            {
                "text": shown_name(row),
                "href": reverse("request", args=[row.pk]),
                "sub": row.where,
            },
            row.requester.name,
            {"tone": state.tone, "word": state_word(row, state)},
            row.created_at,
        ]
    }


def _products(held: Sequence[Allocation], asked: Sequence[Request]) -> dict[str, str]:
    flavors = [*(row.flavor for row in held), *(row.flavor for row in asked)]
    return {flavor.name: flavor.kind for flavor in flavors if flavor is not None}


def story(
    team: Team,
    held: Sequence[Allocation],
    tenancies: Sequence[Tenancy],
    left: Sequence[Leftover],
    *,
    products: Mapping[str, str],
    now: datetime,
) -> list[Entry]:
    """The newest events in order of time, what moves now, and every step of the ends that are known.

    `products` says how people call a flavor.
    """
    events = Event.objects.visible_to_teams([team.pk]).exclude(
        kind=Kind.TENANCY_CHANGED
    )
    # What the policy approves is given in the same moment, and that is told.
    given_at_once = Q(kind=Kind.REQUEST_APPROVED, actor_kind=POLICY.kind)
    events = events.filter(outcome=Event.Outcome.DONE).exclude(given_at_once)
    told = sorted(events[:MOST_EVENTS], key=lambda event: event.seq)
    past = [event_entry(event, products=products) for event in told]
    moving = [_moving(row) for row in tenancies if not row.is_settled]
    ends: list[Entry] = [
        {
            "phase": "future",
            "title": step.words,
            "at": step.at,
            "why": f"{row.what} in {row.where}" if row.where else row.what,
        }
        for row in held
        for step in row.next_steps(now)
    ]
    ahead = in_time([*ends, *leftover_words.coming_stops(left, now=now)])
    return (
        past + moving + [*leftover_words.now_running(left, now=now)] + ahead[:MOST_NEXT]
    )


def _moving(row: Tenancy) -> Entry:
    failed = row.has_failed
    title = (
        f"Could not be set up in {row.cluster.title}"
        if failed
        else f"Setting up in {row.cluster.title}"
    )
    why = "" if row.ready["reason"] == "NotLookedYet" else row.ready["message"]
    if row.cluster.is_away and not failed:
        why = "The cluster does not answer now: it goes on once it does."
    return {
        "phase": "now",
        "tone": "bad" if failed else "moving",
        "title": title,
        "at": row.changed_at,
        "why": why,
    }


def event_entry(event: Event, *, products: Mapping[str, str]) -> Entry:
    """An audit event as an entry of a timeline."""
    details = event.details
    why = str(details.get("message") or details.get("reason") or "")
    if event.subject_type == "notebook" and why in set(StopReason):
        why = StopReason(why).words
    title, who = sentence(event, products=products)
    if event.kind == Kind.TENANCY_FAILED and details.get("reason") == "WillTryAgain":
        # The words of a client library are in the audit log; here they read as if it were up to the team.
        title, why = "Not set up yet", str(explain(why, will_try_again=True))
    return {
        "phase": "past",
        "tone": LOUD.get(event.kind, "past"),
        "title": title,
        "at": event.at,
        "who": who,
        "why": why,
    }


def live_names(team: Team, tenancies: Sequence[Tenancy]) -> str:
    """What the page listens to."""
    return " ".join(
        [f"team-{team.pk}", *(f"cluster-{row.cluster_id}" for row in tenancies)]
    )

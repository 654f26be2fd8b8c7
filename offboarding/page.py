"""What the pages about leaving show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from django.db.models import Q
from django.urls import reverse

from accounts.models import Team, User
from accounts.roles import Permission
from approvals.models import Request
from offboarding import preview as previews
from offboarding.actions import may_ask
from offboarding.models import Departure, DeparturePlace
from offboarding.notices import what
from offboarding.plan import Step, Story, steps
from provisioning.clusters.contents import Contents
from provisioning.models import Tenancy
from provisioning.stages import Stage
from ui.amounts import size, usd
from ui.parts import Cell, Columns, Row

HISTORY, MOST_ON_HOME = 20, 5
PLACES = "places__tenancy__cluster"
ENDS = {
    "asked": ("waiting", "Waits to be confirmed"),
    "withdrawn": ("past", "Taken back"),
    "restored": ("good", "Restored"),
    "gone": ("past", "Gone"),
}
HELD_COLUMNS: Columns = [
    "GPUs",
    {"label": "Money freed", "kind": "number"},
    {"label": "Would have ended", "kind": "end"},
]
ASKED_COLUMNS: Columns = ["Asked for", "By", "What becomes of it"]
COLUMNS: Columns = [
    "What it leaves",
    "State",
    "Asked by",
    {"label": "Work stops", "kind": "end"},
]


@dataclass(frozen=True, kw_only=True)
class PlaceShown(previews.GoingPlace):
    """A place that goes, with its disks as they are now or, when it cannot be read, as they were last seen."""

    claim_columns: Columns
    claims: Sequence[Row]
    claims_caption: str
    read_at: datetime | None
    is_read: bool


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Where leaving takes longer, and why."""

    where: str
    why: str
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class OpenDeparture:
    """A departure that is asked for or under way, in a line."""

    title: str
    tone: str
    word: str
    href: str
    by: str
    since: datetime
    waits: bool
    held_back: bool


class Overview(TypedDict):
    """The page on which a team's leaving begins."""

    team: Team
    places: Sequence[Tenancy]
    here: Sequence[Tenancy]
    may_ask: bool
    may_protect: bool
    columns: Columns
    rows: Sequence[Row]


class Goes(TypedDict):
    """What goes, as the tables of a departure's page."""

    preview: previews.Preview
    usd_freed: str
    places: Sequence[PlaceShown]
    held_columns: Columns
    held: Sequence[Row]
    asked_columns: Columns
    asked: Sequence[Row]


class Whole(Goes):
    """The page of one departure."""

    is_ahead: bool
    deleted_at: datetime
    departure: Departure
    team: Team
    what: str
    crumb: str
    badge: tuple[str, str]
    steps: Sequence[Step]
    stays: Sequence[str]
    seen: str
    protected: Sequence[Tenancy]
    may_confirm: bool
    is_own: bool
    may_withdraw: bool
    may_restore: bool
    restore: str
    may_agree: bool
    trouble: Sequence[Trouble]
    live: str


def story_of(departure: Departure) -> Story:
    """The departure as the pure plan takes it."""
    return Story(
        asked_at=departure.asked_at,
        asked_by=departure.asked_by.name,
        leaves_at=departure.leaves_at,
        retained_until=departure.retained_until,
        days=departure.retention_days,
        hold=departure.hold,
        confirmed_at=departure.confirmed_at,
        confirmed_by=departure.confirmed_by.name if departure.confirmed_by else "",
        ended_at=departure.ended_at,
        ended_by=departure.ended_by,
        end=departure.end,
        is_held_back=departure.is_held_back,
        is_stopped=departure.is_stopped,
        took_gpus=departure.took_gpus,
    )


def state_name(departure: Departure, *, now: datetime) -> str:
    """How far it is, for machines."""
    if departure.end:
        return departure.end
    if departure.confirmed_at is None:
        return "asked"
    if departure.leaves_at > now or not departure.is_stopped:
        return Stage.LEAVING.value
    return (Stage.RETAINED if departure.retained_until > now else Stage.REMOVING).value


def state_of(departure: Departure, *, now: datetime) -> tuple[str, str]:
    """The badge, tone and word, that a departure has by its dates."""
    name = state_name(departure, now=now)
    if name in ENDS:
        return ENDS[name]
    return Stage(name).tone, Stage(name).words


def overview(team: Team, *, by: User, now: datetime) -> Overview:
    """The page on which a team's leaving begins: its places with their protection, and earlier departures."""
    places = list(
        Tenancy.objects.present()
        .filter(team=team)
        .select_related("cluster")
        .order_by("cluster__name")
    )
    rows = list(
        team.departures.select_related("asked_by").prefetch_related(PLACES)[:HISTORY]
    )
    return {
        "team": team,
        "places": places,
        "here": [place for place in places if place.is_here],
        "may_ask": may_ask(team, by),
        "may_protect": by.may(Permission.REMOVE_TEAMS),
        "columns": COLUMNS,
        "rows": [_line(team, row, now=now) for row in rows],
    }


def whole(
    departure: Departure, found: Mapping[int, Contents], *, by: User, now: datetime
) -> Whole:
    """One departure: what happens next, what goes, what stays, and what this person may do about it."""
    leaving, story = previews.of(departure), story_of(departure)
    is_open, is_confirmed = (
        departure.ended_at is None,
        departure.confirmed_at is not None,
    )
    stages = {place.stage for place in leaving.tenancies}
    tone, word = state_of(departure, now=now)
    mine, lead = may_ask(departure.team, by), by.may(Permission.REMOVE_TEAMS)
    due = is_open and is_confirmed and departure.retained_until <= now
    return {
        "is_ahead": (not departure.end and departure.leaves_at > now)
        or not is_confirmed,
        "deleted_at": story.deleted_at(now),
        "restore": "Restore the team"
        if Stage.RETAINED not in stages
        else "Restore everything but the GPUs",
        "departure": departure,
        "team": departure.team,
        "what": what(departure),
        "crumb": _capital(what(departure)),
        "badge": (tone, word),
        "steps": steps(story, now=now),
        "stays": previews.STAYS,
        "seen": previews.seen(departure),
        **_goes(departure, previews.preview(leaving, found, now=now)),
        "protected": [
            place for place in leaving.tenancies if place.is_protected and place.is_here
        ],
        "may_confirm": is_open and not is_confirmed and lead,
        "is_own": previews.needs_second(leaving.tenancies)
        and departure.asked_by_id == by.pk,
        "may_withdraw": is_open
        and not is_confirmed
        and (mine or departure.asked_by_id == by.pk),
        "may_restore": is_open
        and is_confirmed
        and mine
        and not stages & {Stage.REMOVING, Stage.GONE},
        "may_agree": due and lead and departure.is_held_back,
        "trouble": [_trouble(place) for place in leaving.tenancies if _is_stuck(place)],
        "live": " ".join(
            [
                f"team-{departure.team_id}",
                *(f"cluster-{p.cluster_id}" for p in leaving.tenancies),
            ]
        ),
    }


def open_of_team(team: Team, *, now: datetime) -> list[OpenDeparture]:
    """What of a team's leaving is asked for or under way, for the team's page."""
    rows = (
        team.departures.open()
        .select_related("team", "asked_by")
        .prefetch_related(PLACES)
    )
    return [_open_line(row, now=now) for row in rows]


def to_confirm(*, now: datetime) -> list[OpenDeparture]:
    """The oldest departures that wait for a platform lead, to be confirmed or deleted, for their home page."""
    waits = Q(confirmed_at=None) | Q(held_back_at__isnull=False, agreed_at=None)
    rows = (
        Departure.objects.open()
        .filter(waits)
        .select_related("team", "asked_by")
        .prefetch_related(PLACES)
    )
    return [
        _open_line(row, now=now) for row in rows.order_by("asked_at")[:MOST_ON_HOME]
    ]


def _open_line(row: Departure, *, now: datetime) -> OpenDeparture:
    tone, word = state_of(row, now=now)
    return OpenDeparture(
        title=f"{row.team.name} leaves {what(row)}",
        tone=tone,
        word=word,
        href=reverse("departure", args=[row.team.slug, row.pk]),
        by=row.asked_by.name,
        since=row.asked_at,
        waits=row.confirmed_at is None,
        held_back=row.is_held_back,
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _goes(departure: Departure, preview: previews.Preview) -> Goes:
    """What goes, as the tables of the page."""
    kept = {row.tenancy_id: row for row in departure.places.all()}
    return {
        "preview": preview,
        "usd_freed": usd(preview.usd_freed),
        "places": [
            _place(place, kept.get(place.tenancy.pk)) for place in preview.places
        ],
        "held_columns": HELD_COLUMNS,
        "held": [
            {
                "cells": [
                    {"text": row.what, "sub": row.where},
                    {"money": row.usd_freed},
                    row.until,
                ]
            }
            for row in preview.allocations
        ],
        "asked_columns": ASKED_COLUMNS,
        "asked": [
            _asked_line(row, word)
            for rows, word in (
                (preview.requests, "Withdrawn when confirmed"),
                (preview.ends, "Ends when work stops"),
                (
                    [row for row in preview.kept if row.usd],
                    "Kept, and paid, until it is deleted or its end comes",
                ),
                (
                    [row for row in preview.kept if not row.usd],
                    "Kept until it is deleted or its end comes",
                ),
                (preview.paid, "Stays until its end: it is paid"),
            )
            for row in rows
        ],
    }


def _asked_line(row: Request, word: str) -> Row:
    name: Cell = {"text": row.name(), "href": reverse("request", args=[row.pk])}
    return {"cells": [name, row.requester.name, word]}


def _place(place: previews.GoingPlace, kept: DeparturePlace | None) -> PlaceShown:
    found = place.found
    is_read = found is not None and not found.away
    claims = previews.claims_of(found) if is_read else kept.claims if kept else []
    read_at = found.read_at if found is not None and is_read else None
    if not is_read and kept is not None:
        read_at = kept.claims_at
    return PlaceShown(
        tenancy=place.tenancy,
        cluster=place.cluster,
        found=found,
        objects=place.objects,
        claim_columns=["Disk", {"label": "Size", "kind": "number"}],
        claims=[{"cells": [claim["name"], size(claim["size"])]} for claim in claims],
        claims_caption=f"Disks on {place.cluster.title}",
        read_at=read_at,
        is_read=is_read,
    )


def _is_stuck(place: Tenancy) -> bool:
    return (
        place.stage == Stage.REMOVING
        and place.ready["status"] != "True"
        and place.last_looked_at is not None
    )


def _trouble(place: Tenancy) -> Trouble:
    return Trouble(
        where=place.cluster.title, why=place.ready["message"], at=place.last_looked_at
    )


def _line(team: Team, row: Departure, *, now: datetime) -> Row:
    tone, word = state_of(row, now=now)
    name: Cell = {
        "text": _capital(what(row)),
        "href": reverse("departure", args=[team.slug, row.pk]),
    }
    stops: str | datetime = "–" if row.end == Departure.End.WITHDRAWN else row.leaves_at
    if story_of(row).goes_at_once(now):
        stops = "as soon as it is confirmed"
    return {"cells": [name, {"tone": tone, "word": word}, row.asked_by.name, stops]}

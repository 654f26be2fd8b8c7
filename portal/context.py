"""What the frame around every page shows: who, where one may go, and how much waits."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

from django.db.models import Count, QuerySet, Subquery, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django_htmx.middleware import HtmxDetails

from accounts.directory.freshness import notice_since
from accounts.models import User
from accounts.roles import Permission
from approvals.decisions import deciders
from approvals.decisions.empty_seats import vacant
from approvals.models import Request
from manual.models import Task
from policy.models import PolicyDraft
from provisioning.models import Drift
from ui.parts import Link, RailEntry

THEMES = ("system", "light", "dark")
# A page of a team, by its slug and its section, whose route has the same name.
TEAM_PAGE = re.compile(r"^/teams/([a-z0-9-]+)/([a-z-]*)$")
SECTIONS = ("work", "runs", "notebooks")


@dataclass(frozen=True)
class Place:
    """One entry of the left rail; `key` is its shortcut after g.

    One of a team is that of the team on the page, or of the person's first one; `also` begins the addresses of what
    belongs to it.
    """

    label: str
    route: str
    icon: str
    key: str
    of_team: bool = False
    also: str = ""


class Viewer(TypedDict):
    """Who looks at the page."""

    id: str
    name: str
    role_words: str
    initials: str
    decides: bool
    may_ask: bool


class TeamsSwitch(TypedDict):
    """The team that is shown, and where the same is of the viewer's other ones."""

    current: str
    items: list[Link]


HOME = Place("Home", "home", "house", "g h")
REQUESTS = Place("Requests", "requests", "inbox", "g r")
TEAMS = Place("Teams", "teams", "users", "g t")
RUNS = Place("Runs", "runs", "play", "g u", of_team=True, also="/runs/")
NOTEBOOKS = Place(
    "Notebooks", "notebooks", "code", "g n", of_team=True, also="/notebooks/"
)
CLUSTERS = Place("Clusters", "clusters", "server", "g c")
CAPACITY = Place("Capacity", "capacity", "gauge", "g y")
COSTS = Place("Costs", "costs", "wallet", "g m")
APPROVALS = Place("Approvals", "approvals", "stamp", "g a")
CATALOGUE = Place("Catalogue", "catalogue", "tag", "g o")
TASKS = Place("Tasks", "tasks", "box", "g k")
POLICY = Place("Policy", "policy", "scale", "g p")
AUDIT = Place("Audit", "audit", "scroll-text", "g l")
HELP = Place("Help", "help", "circle-help", "g e")


def frame(request: HttpRequest) -> dict[str, object]:
    """Context of every page; who is not signed in gets the theme and the request's id only.

    What is read from the database is read when a template shows it: a part of a page has no frame around it.
    """
    theme = request.COOKIES.get("qm_theme", "system")
    context: dict[str, object] = {
        "theme": theme if theme in THEMES else "system",
        "request_id": getattr(request, "request_id", ""),
    }
    user = getattr(request, "user", None)
    if isinstance(user, User):
        context |= {
            # What an error page stands in, so that rail and search are there.
            "frame_template": "base.html",
            "is_renewal": _is_renewal(request),
            "person": SimpleLazyObject(partial(_person, request, user)),
            "directory_notice": SimpleLazyObject(
                partial(_directory_notice, request, user)
            ),
            "rail": SimpleLazyObject(partial(_rail, request, user)),
            "teams_switch": SimpleLazyObject(partial(teams_switch, user, request.path)),
        }
    return context


def _is_renewal(request: HttpRequest) -> bool:
    """Whether a page that is open fetches something of itself anew, of which htmx takes what it selects."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    return (
        htmx is not None
        and bool(htmx)
        and not htmx.boosted
        and not htmx.history_restore_request
    )


def _person(request: HttpRequest, user: User) -> Viewer:
    return {
        "id": str(user.pk),
        "name": user.name,
        "role_words": user.role_words,
        "initials": user.initials,
        "decides": decides(request, user),
        "may_ask": bool(user.teams),
    }


def _directory_notice(request: HttpRequest, user: User) -> str:
    return (
        notice_since(user.directory_silent_since, timezone.now())
        if decides(request, user)
        else ""
    )


def _rail(request: HttpRequest, user: User) -> list[RailEntry]:
    deciding, waiting = decides(request, user), getattr(request, "awaiting", None)
    return rail(user, request.path, decides=deciding, waiting=waiting)


def decides(request: HttpRequest, user: User) -> bool:
    """Whether deciding is this person's, by a role or by a seat; asked once for a page and all that is on it."""
    known: bool | None = getattr(request, "decides", None)
    if known is None:
        known = deciders.decides(user, now=timezone.now())
        request.decides = known  # type: ignore[attr-defined]
    return known


def rail(
    user: User, path: str, *, decides: bool, waiting: int | None = None
) -> list[RailEntry]:
    """The places this person may use; approvals with the number that waits for them, counted unless it is given."""
    team = _team_at(user, path)
    places = [
        HOME,
        REQUESTS,
        TEAMS,
        *([RUNS, NOTEBOOKS] if team else []),
        CLUSTERS,
        CAPACITY,
        *([COSTS] if team or user.may(Permission.SEE_ALL_TEAMS) else []),
    ]
    counts: dict[Place, int] = {}
    if decides:
        places.append(APPROVALS)
        counts = _counts(user, waiting)
    if user.may(Permission.DECIDE_AS_PLATFORM):
        places.append(TASKS)
    places += [CATALOGUE, POLICY, AUDIT, HELP]
    urls = {
        place: reverse(place.route, args=[team] if place.of_team else [])
        for place in places
    }
    # The page of a team's runs is below that of the team, which is below that of all teams.
    here = max(
        (one for one in places if _is_here(one, urls[one], path)),
        key=lambda one: len(urls[one]),
        default=None,
    )
    return [
        {
            "label": place.label,
            "url": urls[place],
            "icon": place.icon,
            "key": place.key,
            "count": counts.get(place, 0),
            "current": place is here,
        }
        for place in places
    ]


def _team_at(user: User, path: str) -> str:
    """The team of one's own whose page this is, by its slug, or one's first team; empty for who has none."""
    found = TEAM_PAGE.match(path)
    slugs = [team.slug for team in user.teams]
    return found[1] if found and found[1] in slugs else next(iter(slugs), "")


def _counts(user: User, waiting: int | None) -> dict[Place, int]:
    """How much waits for this person, in one query; the requests are not counted when their number is given."""
    each = Count("pk")
    counted: list[tuple[Place, QuerySet[Any], Count]] = [
        (TASKS, Task.objects.unfinished(), each)
    ]
    if user.may(Permission.MANAGE_CLUSTERS):
        counted.append((CLUSTERS, Drift.objects.waiting_for_lead(), each))
    if user.may(Permission.MANAGE_POLICY):
        # A seat counts once, however many requests wait for it.
        counted.append((POLICY, vacant(), Count("seat", distinct=True)))
    if user.may(Permission.ACTIVATE_POLICY):
        counted.append((POLICY, PolicyDraft.objects.waiting_for(user), each))
    if waiting is None:
        requests = Request.objects.awaiting(user, timezone.now()).without_question()
        counted.append((APPROVALS, requests, each))
    numbers = [
        Subquery(
            rows.order_by()
            .values(one=Value(1))
            .annotate(number=number)
            .values("number")
        )
        for _, rows, number in counted
    ]
    found = User.objects.filter(pk=user.pk).values_list(*numbers).get()
    totals = {APPROVALS: waiting or 0}
    for (place, *_), number in zip(counted, found, strict=True):
        totals[place] = totals.get(place, 0) + (number or 0)
    return totals


def teams_switch(user: User, path: str) -> TeamsSwitch | None:
    """The person's own teams, for jumping between them; None for who has none."""
    if not user.teams:
        return None
    found = TEAM_PAGE.match(path)
    # From the notebooks of one team to those of another.
    section = found[2] if found and found[2] in SECTIONS else "team"
    items: list[Link] = [
        {
            "label": team.name,
            "href": reverse(section, args=[team.slug]),
            "current": path.startswith(f"/teams/{team.slug}/"),
        }
        for team in user.teams
    ]
    current = next(
        (item["label"] for item in items if item.get("current")), "Your teams"
    )
    return {"current": current, "items": items}


def _is_here(place: Place, url: str, path: str) -> bool:
    return path == url if url == "/" else path.startswith((url, place.also or url))

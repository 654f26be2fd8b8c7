"""The command palette: anything by name, and the actions a person may take."""

import re
from collections.abc import Iterator
from typing import NotRequired, TypedDict

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from accounts.current_user import visitor
from accounts.models import Team, User
from accounts.roles import Permission
from approvals.models import Request
from fleet.models import Cluster
from portal.context import decides, rail
from portal.guide import PAGES, address_of, page_of

MOST = 5
NUMBERED = re.compile(r"(?:request[- ]?|#)?(\d{1,12})", re.ASCII | re.IGNORECASE)


class Item(TypedDict):
    """Something that is found, with where it is."""

    label: str
    href: str
    icon: str
    sub: NotRequired[str]
    key: NotRequired[str]


class Group(TypedDict):
    """What was found of one kind."""

    group: str
    items: list[Item]


@require_safe
@vary_on_headers("HX-Request")
def palette(request: HttpRequest) -> HttpResponse:
    """What is called like `q`: a fragment for htmx, a page for everybody else."""
    user, q = visitor(request), " ".join(request.GET.get("q", "").split())[:60]
    groups = found(user, q, decides=decides(request, user))
    context = {"q": q, "results": [group for group in groups if group["items"]]}
    is_part = getattr(request, "htmx", False)
    return render(
        request,
        "parts/palette_results.html" if is_part else "portal/palette.html",
        context,
    )


def found(user: User, q: str, *, decides: bool) -> Iterator[Group]:
    """Groups of what matches: teams, clusters and requests the person may see, then actions and pages."""
    if q:
        yield {"group": "Teams", "items": list(_teams(user, q))}
        yield {"group": "Clusters", "items": list(_clusters(q))}
        yield {"group": "Requests", "items": list(_requests(user, q))}
    if q:
        yield {
            "group": "Help",
            "items": [item for item in _help() if _matches(item, q)][:MOST],
        }
    yield {
        "group": "Do",
        "items": [item for item in _actions(user) if _matches(item, q)],
    }
    yield {
        "group": "Go to",
        "items": [item for item in _places(user, decides=decides) if _matches(item, q)],
    }


def _requests(user: User, q: str) -> Iterator[Item]:
    number = NUMBERED.fullmatch(q)
    wanted = (
        Q(pk=int(number[1]))
        if number
        else (
            Q(requester__name__icontains=q)
            | Q(team__name__icontains=q)
            | Q(flavor__product__icontains=q)
        )
    )
    rows = (
        Request.objects.visible_to(user)
        .filter(wanted)
        .select_related("team", "flavor__cluster", "requester")
    )
    for row in rows[:MOST]:
        yield {
            "label": f"{row.name()} for {row.team.name}",
            "icon": "inbox",
            "sub": f"request {row.pk}, {row.requester.name}",
            "href": reverse("request", args=[row.pk]),
        }


def _teams(user: User, q: str) -> Iterator[Item]:
    for team in Team.objects.visible_to(user).filter(name__icontains=q)[:MOST]:
        yield {
            "label": team.name,
            "sub": team.cost_centre,
            "icon": "users",
            "href": reverse("team", args=[team.slug]),
        }


def _clusters(q: str) -> Iterator[Item]:
    rows = Cluster.objects.filter(
        Q(name__icontains=q) | Q(title__icontains=q) | Q(flavors__product__icontains=q)
    )
    for row in rows.distinct()[:MOST]:
        yield {
            "label": row.title,
            "sub": row.region,
            "icon": "server",
            "href": reverse("cluster", args=[row.name]),
        }
        yield {
            "label": f"Queue of {row.title}",
            "sub": "who runs and who waits",
            "icon": "history",
            "href": reverse("queue", args=[row.name]),
        }


def _actions(user: User) -> Iterator[Item]:
    if user.teams:
        yield {
            "label": "Ask for GPUs",
            "icon": "plus",
            "href": reverse("request-new"),
            "key": "",
        }
    for team in user.teams[:MOST]:
        yield {
            "label": "Start a run",
            "sub": team.name,
            "icon": "play",
            "href": reverse("run-new", args=[team.slug]),
        }
    if user.may_onboard:
        yield {
            "label": "Bring a team on board",
            "icon": "users",
            "href": reverse("onboard"),
        }
    if user.may(Permission.MANAGE_CLUSTERS):
        yield {
            "label": "Add a cluster",
            "icon": "server",
            "href": reverse("cluster-new"),
        }
    yield {"label": "Create a token", "icon": "key-round", "href": reverse("tokens")}


def _places(user: User, *, decides: bool) -> Iterator[Item]:
    for place in rail(user, "", decides=decides):
        yield {
            "label": place["label"],
            "icon": place["icon"],
            "href": place["url"],
            "key": place.get("key", ""),
        }
    yield {"label": "Tokens", "icon": "key-round", "href": reverse("tokens")}


def _help() -> Iterator[Item]:
    """Every section of the guide and of what it leads to."""
    for name in PAGES:
        page, address = page_of(name), address_of(name)
        for section in page.sections:
            href = f"{address}#{section.anchor}"
            yield {
                "label": section.title,
                "sub": page.title,
                "icon": "book-open",
                "href": href,
            }


def _matches(item: Item, q: str) -> bool:
    """Whether every word that was typed begins a word of the label."""
    words = item["label"].casefold().split()
    return all(
        any(word.startswith(part) for word in words) for part in q.casefold().split()
    )

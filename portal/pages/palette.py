"""The command palette: anything by name, and the actions a person may take."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypedDict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from accounts.current_user import visitor
from accounts.models import User
from accounts.roles import Permission
from portal.context import decides, rail
from portal.guide import PAGES, address_of, page_of
from portal.pages import finding
from portal.pages.finding import MAX_FOUND, Item
from portal.pages.matching import matcher

# Pages that no entry of the rail leads to at once, and whom each is for; None for everybody.
BESIDE_THE_RAIL = (
    ("Tokens", "key-round", "tokens", None),
    ("Notices: what I am told", "bell", "notice-settings", None),
    ("Stand-in while I am away", "user-round", "stand-in", None),
    ("Cost centres", "building-2", "cost-centres", None),
    ("Prices", "tag", "prices", None),
    ("Utilisation: which GPUs are idle", "gauge", "utilisation", None),
    ("Failed runs: why, and what they cost", "gauge", "failed-runs", None),
    ("Service levels: error budgets of services", "gauge", "service-levels", None),
    ("Reservations", "server", "reservations", None),
    ("Versions: driver and CUDA of each cluster", "server", "versions", None),
    ("Drafts of the policy", "pencil", "policy-drafts", Permission.SEE_POLICY_DRAFTS),
    (
        "History of the policy",
        "history",
        "policy-versions",
        Permission.SEE_POLICY_DRAFTS,
    ),
    ("Templates of runs", "file-code", "templates", Permission.MANAGE_CATALOGUE),
    ("Notebook profiles", "code", "profiles", Permission.MANAGE_CATALOGUE),
    ("JupyterHubs", "network", "hubs", Permission.MANAGE_CLUSTERS),
    ("Directory", "users", "directory", Permission.SEE_AUDIT),
    ("Channels that are told", "send", "channels", Permission.MANAGE_NOTICES),
    ("Notices that were given up", "archive", "deliveries", Permission.MANAGE_NOTICES),
)


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
    """Groups of what matches: what the person may see, then what may be asked for, help, actions and pages."""
    if q:
        yield {"group": "Teams", "items": list(finding.teams(user, q))}
        yield {"group": "Clusters", "items": list(finding.clusters(q))}
        yield {"group": "Requests", "items": list(finding.requests(user, q))}
        yield {"group": "Runs", "items": list(finding.runs(user, q))}
        yield {"group": "Notebooks", "items": list(finding.notebooks(user, q))}
        yield {"group": "Ask for", "items": _offered(user, q)}
        yield {"group": "Help", "items": list(islice(_named(_help(), q), MAX_FOUND))}
    do = list(_named(_actions(user), q))
    if q:
        do += islice(finding.holdings(user, q), MAX_FOUND)
    yield {"group": "Do", "items": do}
    yield {"group": "Go to", "items": list(_named(_places(user, decides=decides), q))}


def _offered(user: User, q: str) -> list[Item]:
    """GPUs first, of which somebody typed how many."""
    return [*finding.gpus(user, q), *finding.offerings(user, q)]


def _named(items: Iterable[Item], q: str) -> Iterator[Item]:
    matches = matcher(q)
    return (item for item in items if matches(item["label"]))


def _actions(user: User) -> Iterator[Item]:
    if user.teams:
        yield {
            "label": "Ask for GPUs",
            "icon": "plus",
            "href": reverse("request-new"),
            "key": "",
        }
    for team in user.teams[:MAX_FOUND]:
        yield {
            "label": "Start a run",
            "sub": team.name,
            "icon": "play",
            "href": reverse("run-new", args=[team.slug]),
        }
    for team in user.teams[:MAX_FOUND]:
        yield {
            "label": "Look at the budget",
            "sub": team.name,
            "icon": "wallet",
            "href": reverse("team-budget", args=[team.slug]),
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
    for label, icon, route, permission in BESIDE_THE_RAIL:
        if permission is None or user.may(permission):
            yield {"label": label, "icon": icon, "href": reverse(route)}


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

"""The page of a team's work."""

from collections import Counter
from dataclasses import fields
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import visible_team, visitor
from accounts.models import Team
from ui.words import isolate
from web.refusals import NoRight, Refused
from workloads.board import work_of_team
from workloads.freshness import Seen
from workloads.listing import OVER, State
from workloads.presenting import Lines
from workloads.runs import actions
from workloads.stopping import Target, stop_work

LINES = 50
TABS = (("", "Now"), ("waiting", "Waiting"), ("over", "Over"))


@require_safe
def work(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything that runs and waits in a team's namespaces, each with one sentence; renews itself."""
    user, now = visitor(request), timezone.now()
    team = visible_team(user, slug)
    board = work_of_team(team, by=user, now=now)
    tab = request.GET.get("show", "")
    meant = [state for state in State if _is_of(state, tab)]
    chosen = [place for place, state in enumerate(board.states) if state in meant]
    page = Paginator(chosen, LINES).get_page(request.GET.get("page"))
    counts = Counter(board.states)
    lines = Lines(
        titles={
            seen.cluster.name: isolate(seen.cluster.title) for seen in board.clusters
        },
        tenancies=board.tenancies,
        flavors=board.flavors,
        may_stop=actions.may_stop(team.pk, user),
        may_ask=team.pk in user.team_ids,
        now=now,
        busy=board.busy,
    )
    context = {
        "team": team,
        "board": board,
        "is_member": team.pk in user.team_ids,
        "lines": [lines.line(one) for one in (board.work[place] for place in page)],
        "place": _place(page),
        "previous": _address(tab, page.previous_page_number())
        if page.has_previous()
        else "",
        "next": _address(tab, page.next_page_number()) if page.has_next() else "",
        "tab": tab,
        "tabs": [
            {
                "label": label,
                "href": f"?show={key}" if key else request.path,
                "current": key == tab,
                "count": sum(counts[state] for state in State if _is_of(state, key)),
            }
            for key, label in TABS
        ],
        "notes": [note for one in board.clusters if (note := _note(one, now))],
        "unread": [
            one.cluster.title
            for one in board.clusters
            if not one.is_known and not one.silent_since
        ],
    }
    return render(request, "workloads/work.html", context)


@require_POST
def work_stop(request: HttpRequest, slug: str) -> HttpResponse:
    """End one piece of work."""
    user = visitor(request)
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    target = _target(request.POST.get("work", ""))
    try:
        stop_work(team, target, by=user, now=timezone.now())
        messages.success(request, f"{target.name} is being stopped.")
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except Refused as refusal:
        messages.error(request, refusal.message)
    return HttpResponseRedirect(reverse("work", args=[slug]))


def _target(given: str) -> Target:
    """What a button of a line names; for what no line does, work that is nowhere."""
    names = [field.name for field in fields(Target)]
    found = given.split("/")
    if len(found) != len(names):
        found = [""] * len(names)
    return Target(**dict(zip(names, found, strict=True)))


def _place(page: Page[int]) -> str:
    """Which lines a page shows, of how many; empty where it shows all."""
    if not page.has_other_pages():
        return ""
    return f"{page.start_index():,} to {page.end_index():,} of {page.paginator.count:,}"


def _address(tab: str, number: int) -> str:
    """The address of another page of what a tab shows."""
    return "?" + urlencode({"show": tab, "page": number} if tab else {"page": number})


def _is_of(state: State, tab: str) -> bool:
    if tab == "over":
        return state in OVER
    if tab == "waiting":
        return state is State.WAITING
    return state not in OVER


def _note(seen: Seen, now: Any) -> str:
    silence = seen.silence(now)
    return f"{silence}: what you see of it is from then." if silence else ""

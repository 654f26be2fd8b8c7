"""The page of a team's work."""

from dataclasses import fields
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import visitor
from accounts.models import Team
from ui.amounts import gpus, moment
from web.refusals import NoRight, Refused
from workloads.answers import Outlook
from workloads.board import Seen, TeamWork, work_of_team
from workloads.listing import State, Work
from workloads.models import Run
from workloads.runs import actions
from workloads.runs.steps import link_of
from workloads.stopping import KINDS, Target, stop_work

TONES = {
    State.RUNNING: ("good", "Running"),
    State.STARTING: ("moving", "Starting"),
    State.WAITING: ("waiting", "Waiting"),
    State.STOPPED: ("past", "Stopped"),
    State.FAILED: ("bad", "Failed"),
    State.FINISHED: ("past", "Finished"),
}
# What waits for somebody's hand, or for nothing that could come, does not look as if it only had to wait.
WAITING = {
    Outlook.CHANGE: ("ending", "Needs a change"),
    Outlook.ESCALATE: ("waiting", "Waits for others"),
    Outlook.NEVER: ("bad", "Cannot start"),
}
MOST_LINES = 200
TABS = (("", "Now"), ("waiting", "Waiting"), ("over", "Over"))


@require_safe
def work(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything that runs and waits in a team's namespaces, each with one sentence; renews itself."""
    user, now = visitor(request), timezone.now()
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    board = work_of_team(team, by=user, now=now)
    tab = request.GET.get("show", "")
    runs, may_stop = _runs(team, board), actions.may_stop(team.pk, user)
    shown = [one for one in board.work if _is_of(one, tab)]
    context = {
        "team": team,
        "board": board,
        "is_member": team.pk in user.team_ids,
        "lines": [
            _line(one, board, runs, may_stop=may_stop, may_ask=team.pk in user.team_ids)
            for one in shown[:MOST_LINES]
        ],
        "more": max(len(shown) - MOST_LINES, 0),
        "tab": tab,
        "tabs": [
            {
                "label": label,
                "href": f"?show={key}" if key else request.path,
                "current": key == tab,
                "count": sum(_is_of(one, key) for one in board.work),
            }
            for key, label in TABS
        ],
        "notes": [note for one in board.clusters if (note := _note(one, now))],
        "unread": [one.cluster.title for one in board.clusters if not one.is_known and not one.silent_since],
    }
    return render(request, "workloads/work.html", context)


@require_POST
def work_stop(request: HttpRequest, slug: str) -> HttpResponse:
    """End one piece of work."""
    user = visitor(request)
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    said = {field.name: request.POST.get(field.name, "")[:253] for field in fields(Target)}
    try:
        stop_work(team, Target(**said), by=user, now=timezone.now())
        messages.success(request, f"{said['name']} is being stopped.")
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except Refused as refusal:
        messages.error(request, refusal.message)
    return HttpResponseRedirect(reverse("work", args=[slug]))


def _is_of(one: Work, tab: str) -> bool:
    if tab == "over":
        return one.is_over
    if tab == "waiting":
        return one.state in (State.WAITING, State.STARTING)
    return not one.is_over


def _runs(team: Team, board: TeamWork) -> dict[tuple[str, str, str], int]:
    """The runs among the work: what was started in the portal has a page of its own."""
    rows = Run.objects.filter(team=team, name__in=[one.key.name for one in board.work])
    return {
        (cluster, namespace, name): pk
        for cluster, namespace, name, pk in rows.values_list(
            "tenancy__cluster__name", "tenancy__namespace", "name", "pk"
        )
    }


def _line(
    one: Work, board: TeamWork, runs: dict[tuple[str, str, str], int], *, may_stop: bool, may_ask: bool
) -> dict[str, Any]:
    tone, word = TONES[one.state]
    if one.state == State.WAITING:
        tone, word = WAITING.get(one.why.outlook, (tone, word))
    run = runs.get((one.cluster, one.key.namespace, one.key.name))
    titles = {seen.cluster.name: seen.cluster.title for seen in board.clusters}
    return {
        "work": one,
        "tone": tone,
        "word": word,
        "where": titles[one.cluster],
        "href": reverse("run", args=[run]) if run else "",
        "step": _step(one, board, run) if may_ask and not one.is_over else None,
        "may_stop": may_stop and not one.is_over and one.key.kind in KINDS,
        "gpus": gpus(one.gpus) if one.gpus else "none",
        "says_when": not one.is_over and one.state != State.RUNNING,
    }


def _step(one: Work, board: TeamWork, run: int | None) -> dict[str, Any] | None:
    """The link of what can be done about it."""
    here = (one.cluster, one.key.namespace)
    tenancy = next((each for each in board.tenancies if (each.cluster.name, each.namespace) == here), None)
    if tenancy is None:
        return None
    return link_of(
        one.why, tenancy, run=run, tenancies=board.tenancies, flavors=board.flavors, now=timezone.now()
    )


def _note(seen: Seen, now: Any) -> str:
    if seen.silent_since is None:
        return ""
    title, since = seen.cluster.title, moment(seen.silent_since, now)
    return f"{title} has said nothing since {since}: what you see of it is from then."

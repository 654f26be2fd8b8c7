"""The page of a team's work."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team
from ui.amounts import gpus, moment
from workloads.answers import Outlook
from workloads.board import Seen, TeamWork, work_of_team
from workloads.listing import State, Work

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
    shown = [one for one in board.work if _is_of(one, tab)]
    context = {
        "team": team,
        "board": board,
        "lines": [_line(one, board) for one in shown[:MOST_LINES]],
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


def _is_of(one: Work, tab: str) -> bool:
    if tab == "over":
        return one.is_over
    if tab == "waiting":
        return one.state in (State.WAITING, State.STARTING)
    return not one.is_over


def _line(one: Work, board: TeamWork) -> dict[str, Any]:
    tone, word = TONES[one.state]
    if one.state == State.WAITING:
        tone, word = WAITING.get(one.why.outlook, (tone, word))
    titles = {seen.cluster.name: seen.cluster.title for seen in board.clusters}
    return {
        "work": one,
        "tone": tone,
        "word": word,
        "where": titles[one.cluster],
        "gpus": gpus(one.gpus) if one.gpus else "none",
        "says_when": not one.is_over and one.state != State.RUNNING,
    }


def _note(seen: Seen, now: Any) -> str:
    if seen.silent_since is None:
        return ""
    title, since = seen.cluster.title, moment(seen.silent_since, now)
    return f"{title} has said nothing since {since}: what you see of it is from then."

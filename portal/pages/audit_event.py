"""One audit event, whole: what happened, who did it, what it was about, what changed, and its place in the chain."""

import json
from typing import TypedDict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team, User
from audit import chain
from audit.models import Event
from portal.pages import audit_words
from portal.pages.audit import kinds_by_name, seen_by
from portal.pages.audit_links import whole
from portal.pages.sentences import sentence
from ui.parts import Fact

ACTORS = {
    "person": "A person",
    "pipelines": "A team’s pipelines, with a token of the team",
    "policy": "The policy, by itself",
    "portal": "The portal, by itself",
}


class Chain(TypedDict):
    """Whether an event's hash fits what it holds and its neighbours, with the numbers of those that one may open."""

    holds: bool
    words: str
    before: int | None
    after: int | None


@require_safe
def event(request: HttpRequest, pk: int) -> HttpResponse:
    """An event of one's own teams, or any for who sees the whole log; anybody else's looks like a missing one."""
    user = visitor(request)
    found = get_object_or_404(seen_by(user), seq=pk)
    teams = {team.pk: team for team in Team.objects.visible_to(user)}
    title, _ = sentence(found)
    kinds = kinds_by_name()
    context = {
        "event": found,
        "title": title,
        "facts": _facts(found, user, teams),
        "changes": audit_words.changes(found.details, kinds),
        "others": audit_words.others(found.details, kinds),
        "kept": json.dumps(found.details, indent=2, ensure_ascii=False),
        "call": _call(found),
        "chain": _chain(found, user),
        "story": _story(found),
    }
    return render(request, "portal/audit_event.html", context)


def _facts(event: Event, user: User, teams: dict[int, Team]) -> list[Fact]:
    about, team = whole(event, by=user, teams=teams), teams.get(event.team_id or 0)
    rows: list[Fact] = [
        {"label": "When", "at": event.at},
        {"label": "Exactly", "copyable": event.at.isoformat()},
        {"label": "Who", "text": event.actor_name},
        {"label": "As", "text": ACTORS.get(event.actor_kind, event.actor_kind)},
    ]
    if about.text and event.subject_type != "team":
        rows.append({"label": "About", "text": about.text, "href": about.href})
    if team:
        rows.append(
            {
                "label": "Team",
                "text": team.name,
                "href": reverse("team", args=[team.slug]),
            }
        )
    return rows


def _call(event: Event) -> list[Fact]:
    """What is kept of where it came from; what the portal did by itself came from nowhere."""
    rows: list[Fact] = []
    if event.actor_id:
        rows.append({"label": "Object ID in Entra ID", "copyable": event.actor_id})
    if event.request_id:
        rows.append({"label": "Id of the call", "copyable": event.request_id})
    details = event.details
    if "called_with" in details:
        rows.append({"label": "Called with", "text": str(details["called_with"])})
    if event.outcome == Event.Outcome.REFUSED and "where" in details:
        address = f"{details.get('method', '')} /{details['where']}".strip()
        rows.append({"label": "Address", "text": address})
        answer = f"{details.get('status', '')} {details.get('code') or ''}".strip()
        rows.append({"label": "Answer", "text": answer})
    return rows


def _chain(event: Event, user: User) -> Chain:
    """Its hash, checked now against what it holds and against its neighbours."""
    fits = (
        chain.digest(seq=event.seq, body=event.body(), previous=event.previous)
        == event.hash
    )
    near = {
        row.seq: row
        for row in Event.objects.filter(seq__in=(event.seq - 1, event.seq + 1))
    }
    before, after = near.get(event.seq - 1), near.get(event.seq + 1)
    follows = event.previous == (before.hash if before else chain.GENESIS)
    led_on = after is None or after.previous == event.hash
    may_open = set(seen_by(user).filter(seq__in=near).values_list("seq", flat=True))
    return {
        "holds": fits and follows and led_on and (before is not None or event.seq == 1),
        "words": _chain_words(event, fits=fits, follows=follows, led_on=led_on),
        "before": before.seq if before and before.seq in may_open else None,
        "after": after.seq if after and after.seq in may_open else None,
    }


def _chain_words(event: Event, *, fits: bool, follows: bool, led_on: bool) -> str:
    if not fits:
        return f"Event {event.seq} was changed after it was written: its hash is another one."
    if not follows:
        return f"Event {event.seq} does not follow event {event.seq - 1}."
    if not led_on:
        return f"Event {event.seq + 1} does not follow event {event.seq}."
    return "Its hash is that of what it holds and of the event before it."


def _story(event: Event) -> str:
    """What the list is narrowed to for more of the same kind."""
    return f"{reverse('audit')}?kind={event.kind}"

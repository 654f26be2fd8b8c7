"""The audit log: what happened, who did it, and whether the chain holds."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Team, User
from accounts.roles import Permission
from accounts.visitors import visitor
from audit.events import Kind
from audit.models import Event, EventQuerySet, verify
from portal.pages.sentences import sentence

PAGE = 50
FORM = "the form"
LONGEST = 160
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):")
PAGES = {"request": "request", "drift": "drift"}
# Of the call and not of what was asked: the API has them.
INTERNAL = frozenset({"where", "method", "status", "code"})
COLUMNS = ["What", "Team", "Details", {"label": "When", "kind": "end"}]


class AuditFilter(forms.Form):
    """What the list is narrowed to."""

    q = forms.CharField(label="Who", required=False, max_length=100)
    kind = forms.ChoiceField(
        label="What", required=False, choices=[("", "anything"), *((k.value, f"… {k.label}") for k in Kind)]
    )
    team = forms.ModelChoiceField(
        label="Team", required=False, queryset=Team.objects.none(), to_field_name="slug", empty_label="any"
    )
    outcome = forms.ChoiceField(
        label="Outcome", required=False, choices=[("", "any"), *Event.Outcome.choices]
    )
    since = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = Team.objects.visible_to(user)  # type: ignore[attr-defined]


@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Events this person may see, newest first; a cursor is the number of the event before the page."""
    user = visitor(request)
    form = AuditFilter(request.GET, user=user)
    rows = _narrowed(_seen_by(user), form) if form.is_valid() else Event.objects.none()
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        rows = rows.filter(seq__lt=int(before))
    page = list(rows[: PAGE + 1])
    names = {team.pk: team for team in form.fields["team"].queryset}  # type: ignore[attr-defined]
    context = {
        "form": form, "columns": COLUMNS, "rows": [_line(event, names) for event in page[:PAGE]],
        "next": _older(request, page[PAGE - 1].seq) if len(page) > PAGE else "",
        "first": _older(request, None) if before else "",
        "narrowed": any(request.GET.get(field) for field in form.fields),
        "may_check": user.may(Permission.SEE_AUDIT),
    }  # fmt: skip
    return render(request, "portal/audit.html", context)


@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """Walk the whole chain of hashes and say whether it holds; for who may see all of it."""
    if not visitor(request).may(Permission.SEE_AUDIT):
        raise PermissionDenied
    verdict = verify()
    if verdict.broken_at is None:
        messages.success(request, f"The chain holds: {verdict.reason}")
    else:
        messages.error(request, f"The chain is broken at event {verdict.broken_at}: {verdict.reason}")
    return redirect("audit")


def _seen_by(user: User) -> EventQuerySet:
    return Event.objects.visible_to_teams(None if user.may(Permission.SEE_AUDIT) else user.team_ids)


def _narrowed(rows: EventQuerySet, form: AuditFilter) -> EventQuerySet:
    wanted = form.cleaned_data
    if wanted["q"]:
        rows = rows.filter(actor_name__icontains=wanted["q"])
    if wanted["kind"]:
        rows = rows.filter(kind=wanted["kind"])
    if wanted["team"]:
        rows = rows.filter(team_id=wanted["team"].pk)
    if wanted["since"]:
        rows = rows.filter(at__gte=_midnight(wanted["since"]))
    if wanted["until"]:
        rows = rows.filter(at__lt=_midnight(wanted["until"]) + timedelta(days=1))
    return rows.filter(outcome=wanted["outcome"]) if wanted["outcome"] else rows


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _line(event: Event, teams: dict[int, Team]) -> dict[str, Any]:
    team = teams.get(event.team_id or 0)
    subject = f"{event.subject_type} {event.subject_id}".strip()
    title, who = sentence(event)
    sub = " · ".join(part for part in (f"event {event.seq}", subject, who) if part)
    what = {"text": title, "sub": sub, "href": _page_of(event)}
    where = {"text": team.name, "href": reverse("team", args=[team.slug])} if team else {"text": ""}
    moment = {"text": f"{event.at:%a %d %b, %H:%M:%S}", "sub": f"{event.at:%Y}, UTC"}
    return {"cells": [what, where, {"text": _details(event)}, moment]}


def _page_of(event: Event) -> str:
    """The page of what an event is about; empty for what has none."""
    has_page = event.subject_type in PAGES and event.subject_id.isascii() and event.subject_id.isdigit()
    return reverse(PAGES[event.subject_type], args=[int(event.subject_id)]) if has_page else ""


def _details(event: Event) -> str:
    """The details in one line: values, with their names where they are not plain from the value."""
    parts = [
        f"{key.replace('_', ' ')} {_short(value)}"
        for key, value in event.details.items()
        if value and key not in INTERNAL
    ]
    text = ", ".join(parts)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        named = ((FORM if key == "__all__" else key.replace("_", " "), inner) for key, inner in value.items())
        return " ".join(f"{key} {_short(inner)}" for key, inner in named)
    if isinstance(value, list):
        return " ".join(map(_short, value))
    moment = MOMENT.match(str(value))
    return f"{moment[1]} {moment[2]}" if moment else str(value)


def _older(request: HttpRequest, seq: int | None) -> str:
    kept = {key: value for key, value in request.GET.items() if key != "before" and value}
    return "?" + urlencode(kept | ({"before": str(seq)} if seq else {}))

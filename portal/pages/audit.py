"""The audit log: what happened, who did it, and whether the chain holds."""

import re
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from operator import or_
from typing import Any, TypedDict
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.cost_centres.api import visible_to
from accounts.current_user import visitor
from accounts.models import Team, User
from accounts.roles import Permission
from allocations.models import Allocation
from audit.events import Kind
from audit.models import Event, EventQuerySet, RefusalCount, verify
from fleet.models import Cluster, Flavor
from portal.pages.audit_links import SEARCHABLE, Subjects
from portal.pages.audit_words import Kinds, in_one_line
from portal.pages.sentences import sentence
from ui.parts import Cell, Columns, Row

PAGE = 50
LONGEST = 160
COLUMNS: Columns = [
    "What",
    "About",
    "Team",
    "Details",
    {"label": "When", "kind": "end"},
]
COUNTED_FOR = timedelta(days=7)
MAX_COUNTS = 50
COUNT_COLUMNS: Columns = ["Day", "Who", "Why", {"label": "Calls", "kind": "number"}]
# What a refusal that touched no object was about, by the status of its answer.
WHY = {
    400: "Could not be read",
    403: "Without the right",
    404: "Not there, or of others",
    405: "Not possible at that address",
    409: "Not as it had to be",
    412: "Not the version that was seen",
    415: "Not in a format that is taken",
    422: "Typing errors and missing fields",
    428: "Without the version that was seen",
    429: "Too many calls",
}


# One thing that events are about: "request 12", "policy draft 3", "cluster #2".
ABOUT_ONE = re.compile(r"(?P<kind>[a-z_ ]+?)[ #-]*(?P<number>[0-9]{1,12})", re.ASCII)
# What events are about, as the filter groups them: the first part of their kind.
ABOUT = {
    "request": "Requests",
    "task": "Tasks",
    "allocation": "Allocations",
    "run": "Runs",
    "service_level": "Service levels",
    "work": "Work on the clusters",
    "template": "Templates of runs",
    "notebook": "Notebooks",
    "profile": "Notebook profiles",
    "hub": "JupyterHubs",
    "budget": "Budgets",
    "cost_centre": "Cost centres",
    "policy": "Policy",
    "offering": "Catalogue",
    "team": "Teams",
    "delegation": "Stand-ins",
    "departure": "Offboarding",
    "tenancy": "Namespaces",
    "drift": "Drift",
    "cluster": "Clusters",
    "flavor": "Kinds of GPU",
    "reservation": "Reservations in Azure",
    "orphan": "Orphaned reservations",
    "model_endpoint": "Models in Azure OpenAI",
    "model_account": "Models in Azure OpenAI",
    "registry": "Access to the registry",
    "limit": "Limits",
    "prices": "Azure's list prices",
    "subscription": "Azure subscriptions",
    "quota_increase": "Limits",
    "expiry": "Ends held back",
    "person": "People",
    "token": "Tokens",
    "identity": "Identities of teams",
    "directory": "Directory",
    "notices": "Notices",
    "notice": "Notices",
    "channel": "Channels",
    "audit": "Audit log",
    "invariants": "Audit log",
    "refused": "Refused calls",
}


def kinds_by_subject() -> list[tuple[str, Any]]:
    """Every kind of event under what it is about; the words begin with the verb."""
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ABOUT.values()}
    for kind in Kind:
        groups[ABOUT[kind.value.partition(".")[0]]].append((kind.value, kind.label))
    return [("", "anything"), *groups.items()]


class AuditFilter(forms.Form):
    """What the list is narrowed to."""

    q = forms.CharField(label="Who", required=False, max_length=100)
    about = forms.CharField(
        label="About",
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": "request 12"}),
    )
    kind = forms.ChoiceField(label="What", required=False, choices=kinds_by_subject)
    team = forms.ModelChoiceField(
        label="Team",
        required=False,
        queryset=Team.objects.none(),
        to_field_name="slug",
        empty_label="any",
    )
    outcome = forms.ChoiceField(
        label="Outcome", required=False, choices=[("", "any"), *Event.Outcome.choices]
    )
    since = forms.DateField(
        label="From", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label="To", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        self.fields["team"].queryset = Team.objects.visible_to(user)  # type: ignore[attr-defined]

    def clean_about(self) -> tuple[str, str] | None:
        """What kind of thing, and which; raises ValidationError where it is none that events are about."""
        text = self.cleaned_data["about"].strip().lower()
        if not text:
            return None
        named = self._named(text)
        if named is not None:
            return named
        found = ABOUT_ONE.fullmatch(text)
        kind = found["kind"].strip().replace(" ", "_") if found else ""
        if found is None or kind not in SEARCHABLE:
            raise forms.ValidationError(
                "Write what it is and its number or name, such as request 12, policy 3 or team vision.",
                code="invalid",
            )
        return kind, str(int(found["number"]))

    def _named(self, text: str) -> tuple[str, str] | None:
        """A team, a cluster or a cost centre by the name that people know it by; None where there is no such one."""
        for words, kind, rows, fields in (
            ("team", "team", self.fields["team"].queryset, ("slug", "name")),  # type: ignore[attr-defined]
            ("cluster", "cluster", Cluster.objects.all(), ("name", "title")),
            ("cost centre", "cost_centre", visible_to(self._user), ("code",)),
        ):
            name = text.removeprefix(words).strip()
            if name and name != text:
                any_of = (Q(**{f"{field}__iexact": name}) for field in fields)
                pk = rows.filter(reduce(or_, any_of)).values_list("pk", flat=True)
                if found := pk.first():
                    return kind, str(found)
        return None

    def clean(self) -> dict[str, Any]:
        """Both days in their order."""
        said = super().clean() or self.cleaned_data
        since, until = said.get("since"), said.get("until")
        if since and until and until < since:
            self.add_error("until", "Choose the day From or a later one.")
        return said


@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Events this person may see, newest first; a cursor is the number of the event before the page."""
    return show(request, AuditFilter(request.GET, user=visitor(request)))


def show(request: HttpRequest, form: AuditFilter, *, status: int = 200) -> HttpResponse:
    """The page with a form that is filled in."""
    user = visitor(request)
    rows = narrowed(seen_by(user), form) if form.is_valid() else Event.objects.none()
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        rows = rows.filter(seq__lt=int(before))
    page = list(rows[: PAGE + 1])
    names = {team.pk: team for team in form.fields["team"].queryset}  # type: ignore[attr-defined]
    subjects, sees_all = Subjects(page, teams=names), user.may(Permission.SEE_AUDIT)
    kinds = kinds_by_name()
    context = {
        "form": form,
        "columns": COLUMNS,
        "rows": [_line(event, names, subjects, kinds) for event in page[:PAGE]],
        "next": _older(request, page[PAGE - 1].seq) if len(page) > PAGE else "",
        "first": _older(request, None) if before else "",
        "is_wrong": bool(form.errors),
        "narrowed": any(form.data.get(field) for field in form.fields),
        "kept": [
            (field, form.data.get(field))
            for field in form.fields
            if form.data.get(field)
        ],
        "may_check": sees_all,
        "counts": _refusals(now=timezone.now()) if sees_all and not before else None,
    }
    return render(request, "portal/audit.html", context, status=status)


class Refusals(TypedDict):
    """Calls that were refused and are no events, and how many there were."""

    columns: Columns
    rows: list[Row]
    calls: int


def _refusals(*, now: datetime) -> Refusals:
    """Calls of the last days that were refused and are no events: newest day first."""
    since = now.astimezone(UTC).date() - COUNTED_FOR
    found = RefusalCount.objects.filter(day__gt=since)
    rows = list(found[:MAX_COUNTS])
    lines: list[Row] = [
        {
            "cells": [
                f"{row.day:%a} {row.day.day} {row.day:%b}",
                {"text": row.actor_name},
                WHY.get(row.status, f"Answer {row.status}"),
                row.count,
            ]
        }
        for row in rows
    ]
    return {
        "columns": COUNT_COLUMNS,
        "rows": lines,
        "calls": found.aggregate(calls=Sum("count"))["calls"] or 0,
    }


@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """Walk the whole chain of hashes and say whether it holds; for who may see all of it."""
    if not visitor(request).may(Permission.SEE_AUDIT):
        raise PermissionDenied
    verdict = verify()
    if verdict.broken_at is None:
        messages.success(request, f"The chain holds: {verdict.reason}")
    else:
        messages.error(
            request,
            f"The chain is broken at event {verdict.broken_at}: {verdict.reason}",
        )
    return redirect("audit")


def seen_by(user: User) -> EventQuerySet:
    """The events that this person may see: of their teams, or all."""
    return Event.objects.visible_to_teams(
        None if user.may(Permission.SEE_AUDIT) else user.team_ids
    )


def narrowed(rows: EventQuerySet, form: AuditFilter) -> EventQuerySet:
    """Those that a valid form leaves of them."""
    wanted = form.cleaned_data
    if wanted["q"]:
        rows = rows.filter(actor_name__icontains=wanted["q"])
    if wanted["about"]:
        rows = rows.filter(about_one(*wanted["about"]))
    if wanted["kind"]:
        rows = rows.filter(kind=wanted["kind"])
    if wanted["team"]:
        rows = rows.filter(team_id=wanted["team"].pk)
    if wanted["since"]:
        rows = rows.filter(at__gte=_in_utc(wanted["since"], time.min))
    if wanted["until"]:
        # Not before the midnight that follows: the last day of the calendar has none.
        rows = rows.filter(at__lte=_in_utc(wanted["until"], time.max))
    return rows.filter(outcome=wanted["outcome"]) if wanted["outcome"] else rows


def about_one(kind: str, number: str) -> Q:
    """What is about one thing; of a request, what was granted under it, too."""
    about = Q(subject_type=kind, subject_id=number)
    if kind != "request":
        return about
    granted = Allocation.objects.filter(hold__request=int(number)).values_list(
        "pk", flat=True
    )
    return about | Q(
        subject_type="allocation", subject_id__in=[str(pk) for pk in granted]
    )


def _in_utc(day: date, at: time) -> datetime:
    return datetime.combine(day, at, tzinfo=UTC)


def kinds_by_name() -> Kinds:
    """What people call each flavor, by its name in the log: clusters call the same kind alike; one query."""
    return {flavor.name: flavor.kind for flavor in Flavor.objects.all()}


def _line(
    event: Event, teams: dict[int, Team], subjects: Subjects, kinds: Kinds
) -> Row:
    team, about = teams.get(event.team_id or 0), subjects.of(event)
    title, who = sentence(event)
    sub = " · ".join(part for part in (f"event {event.seq}", who) if part)
    what: Cell = {
        "text": title,
        "sub": sub,
        "href": reverse("audit-event", args=[event.seq]),
    }
    where: Cell = (
        {"text": team.name, "href": reverse("team", args=[team.slug])}
        if team
        else {"text": ""}
    )
    moment: Cell = {
        "text": f"{event.at:%a} {event.at.day} {event.at:%b %Y}",
        "sub": f"{event.at:%H:%M:%S} UTC",
    }
    thing: Cell = {"text": about.text, "href": about.href}
    details: Cell = {"text": _details(event, title, kinds)}
    return {"cells": [what, thing, where, details, moment]}


def _details(event: Event, title: str, kinds: Kinds) -> str:
    if event.kind == Kind.MEMBERS_CHANGED:
        return ""  # all of it is said
    text = in_one_line(event.details, title=title, kinds=kinds)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _older(request: HttpRequest, seq: int | None) -> str:
    kept = {
        key: value for key, value in request.GET.items() if key != "before" and value
    }
    return "?" + urlencode(kept | ({"before": str(seq)} if seq else {}))

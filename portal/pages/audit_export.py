"""The audit log as a file: the events that the page's filters leave, newest first, in pieces."""

import json
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.current_user import visitor, with_refusal
from accounts.models import Team
from audit.exporting import begin_export
from audit.models import Event
from portal.pages.audit import AuditFilter, narrowed, seen_by, show
from web.downloads import rows_as_csv
from web.throttling import seconds_to_wait, too_many

COLUMNS = (
    "event",
    "at",
    "outcome",
    "kind",
    "who",
    "who_kind",
    "who_id",
    "did",
    "team",
    "about",
    "about_id",
    "details",
    "call",
    "hash_before",
    "hash",
)


@require_POST
def export(request: HttpRequest) -> HttpResponseBase:
    """A CSV file of every event that the filters leave of those one may see; that it was asked for is an event, too."""
    user = visitor(request)
    if wait := seconds_to_wait("export", user.pk, rate=settings.RATES["export"]):
        return too_many(request, wait)
    form = AuditFilter(request.POST, user=user)
    if not form.is_valid():
        response: HttpResponse = show(request, form, status=422)
        return with_refusal(response, form)
    team: Team | None = form.cleaned_data["team"]
    wanted = {
        name: str(form[name].value()) for name in form.fields if form.cleaned_data[name]
    }
    rows = begin_export(
        narrowed(seen_by(user), form),
        by=user.as_actor(),
        narrowed=wanted,
        team_id=team.pk if team else None,
    )
    teams = dict(Team.objects.visible_to(user).values_list("pk", "name"))
    return rows_as_csv(
        request,
        rows,
        columns=COLUMNS,
        cells=partial(_cells, teams=teams),
        name=f"audit-{timezone.now():%Y-%m-%d-%H%M%S}.csv",
    )


def _cells(event: Event, *, teams: dict[int, str]) -> tuple[Any, ...]:
    details = json.dumps(event.details, ensure_ascii=False, sort_keys=True)
    return (
        event.seq,
        event.at.isoformat(),
        event.outcome,
        event.kind,
        event.actor_name,
        event.actor_kind,
        event.actor_id,
        event.words,
        teams.get(event.team_id or 0, ""),
        event.subject_type,
        event.subject_id,
        details,
        event.request_id,
        event.previous,
        event.hash,
    )

"""Who was given what, by whom and why: a line for each verdict, as the API lists it and as a file holds it."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe
from rest_framework import serializers

from accounts.api import PersonSerializer, TeamNameSerializer
from accounts.current_user import visitor
from approvals.decisions.statistics import span_of
from approvals.models import Decision, Request
from approvals.requests.serializers import STATES, DecisionSerializer
from web import downloads
from web.output import OutputSerializer
from web.strict import Choice, Moment, PageQuery, Text
from web.throttling import seconds_to_wait, too_many


class DecidedRequestSerializer(OutputSerializer[Request]):
    """What a verdict was about, as it is asked for now."""

    id = serializers.IntegerField()
    name = serializers.CharField(
        source="whole_name", help_text="What is asked for, in a few words."
    )
    team = TeamNameSerializer()
    requester = PersonSerializer()
    count = serializers.IntegerField(help_text="How many units were asked for.")
    until = serializers.DateTimeField(help_text="Until when it was asked for.")
    reason = serializers.CharField(help_text="Why it was asked for.")
    state = serializers.ChoiceField(choices=STATES)


class DecidedSerializer(DecisionSerializer):
    """One verdict with what it was about; `by` is null for the policy."""

    request = DecidedRequestSerializer()
    counts = serializers.BooleanField(
        help_text="False of a vote on an earlier version of the request, which is void."
    )
    policy = serializers.IntegerField(
        allow_null=True,
        source="policy_number",
        help_text="The number of the policy by which the request was judged last before.",
    )


class DecisionQuery(PageQuery):
    """Which verdicts to list."""

    team = Text(required=False, max_length=40, help_text="The slug of a team.")
    requester = serializers.UUIDField(
        required=False, help_text="The object id of who asked."
    )
    by = serializers.UUIDField(
        required=False, help_text="The object id of who decided."
    )
    automatic = Choice(
        choices=["true", "false"],
        required=False,
        help_text="Only what the policy decided; or only what people did.",
    )
    verdict = Choice(choices=Decision.Verdict.choices, required=False)
    since = Moment(required=False, help_text="Decided then or later.")
    before = Moment(required=False, help_text="Decided before then.")


# A parameter of the address, and what it narrows the rows by.
NARROWED_BY: Mapping[str, str] = {
    "team": "request__team__slug",
    "requester": "requester__oid",
    "by": "by__oid",
    "verdict": "verdict",
    "since": "at__gte",
    "before": "at__lt",
}


@require_safe
def decisions_file(request: HttpRequest) -> HttpResponseBase:
    """A CSV file of every verdict of the last `days` on requests that the person may see, newest first."""
    user, now = visitor(request), timezone.now()
    if wait := seconds_to_wait("export", user.pk, rate=settings.RATES["export"]):
        return too_many(request, wait)
    days = span_of(request.GET.get("days", ""))
    decided = Decision.objects.visible_to(user).filter(
        at__gte=now - timedelta(days=days)
    )
    return downloads.rows_as_csv(
        request,
        decided.with_request(),
        columns=COLUMNS,
        cells=_cells,
        name=f"decisions-{days}-days-to-{now:%Y-%m-%d}.csv",
    )


def _cells(one: Decision) -> list[object]:
    return [cell(one) for cell in COLUMNS.values()]


def _or_empty(value: Any) -> Any:
    return "" if value is None else value


# In the order of the file.
COLUMNS: Mapping[str, Callable[[Any], object]] = {
    "at": lambda one: one.at.isoformat(),
    "verdict": lambda one: one.verdict,
    "counts": lambda one: "yes" if one.counts else "no",
    "decided_by": lambda one: one.by_words,
    "seat": lambda one: one.step.seat if one.step else "",
    "why_decided": lambda one: one.reason,
    "reason_code": lambda one: one.because,
    "policy": lambda one: _or_empty(one.policy_number),
    "request": lambda one: one.request_id,
    "what": lambda one: one.request.whole_name,
    "team": lambda one: one.request.team.slug,
    "team_name": lambda one: one.request.team.name,
    "requester": lambda one: one.request.requester.name,
    "why_asked": lambda one: one.request.reason,
    "asked_count": lambda one: one.request.count,
    "asked_until": lambda one: one.request.until.isoformat(),
    "count": lambda one: _or_empty(one.count),
    "until": lambda one: one.until.isoformat() if one.until else "",
    "usd": lambda one: one.usd,
    "state": lambda one: one.request.state,
}

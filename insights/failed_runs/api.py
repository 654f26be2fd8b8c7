"""Why runs failed, how often, and what they cost, over the API."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from insights.failed_runs.gathering import (
    CHOICES,
    DAYS,
    FailedRuns,
    OfCause,
    failed_runs,
)
from web.output import OutputSerializer
from web.strict import StrictSerializer, Text
from workloads.runs.models import Run


def _hours(told: str) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=14, decimal_places=2, help_text=told)


def _usd(told: str) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=18, decimal_places=2, help_text=told)


class OfCauseSerializer(OutputSerializer[OfCause]):
    """The runs that failed for one cause; money is USD."""

    cause = serializers.ChoiceField(choices=CHOICES)
    advice = serializers.CharField(help_text="What to do about it.")
    runs = serializers.IntegerField()
    teams = serializers.IntegerField(help_text="Of how many teams they are.")
    gpu_hours = _hours("That they took.")
    usd = _usd("What those cost.")
    last_run = serializers.IntegerField(
        source="last.pk", help_text="The newest of them."
    )


class FailedRunsSerializer(OutputSerializer[FailedRuns]):
    """How many runs have ended, and those of them that failed, by cause, the most expensive first."""

    since = serializers.DateTimeField(help_text=f"{DAYS} days ago.")
    ended = serializers.IntegerField(help_text="Well or not, since then.")
    failed = serializers.IntegerField(source="runs")
    gpu_hours = _hours("That the failed ones took.")
    usd = _usd("What those cost.")
    results = OfCauseSerializer(source="causes", many=True)


class FailedRunsQuery(StrictSerializer):
    """Of which team; all that one sees without it."""

    team = Text(required=False, max_length=40, help_text="The slug of a team.")


class FailedRunsEndpoint(Endpoint):
    """Runs that have failed, of teams that one may see."""

    queryset = Run.objects.none()
    serializer_class = FailedRunsSerializer
    asks = {"list": FailedRunsQuery}
    refuses_values = frozenset({"list"})

    @extend_schema(operation_id="failed_runs_list", responses=FailedRunsSerializer)
    def list(self, request: Request) -> Response:
        """Why the runs of the last 30 days failed, how often, and what they cost."""
        rows = Run.objects.visible_to(self.caller)
        if slug := self.asked.get("team", ""):
            self.check_sees_team(slug)
            rows = rows.filter(team__slug=slug)
        found = failed_runs(rows, now=timezone.now())
        return Response(FailedRunsSerializer(found).data)

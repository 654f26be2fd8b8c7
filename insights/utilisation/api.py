"""How much of what teams hold is in use, now and week by week, over the API."""

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from allocations.models import Allocation, AllocationQuerySet
from fleet.models import Flavor
from insights.utilisation.gathering import DAYS, Utilisation, utilisation_of
from insights.utilisation.history import History, history_of
from insights.utilisation.weeks import WHOLE_WEEKS, Week, summed
from insights.utilisation.weeks_file import csv_file
from web.output import OutputSerializer
from web.refusals import BadInput
from web.strict import StrictSerializer, Text


def _hours(told: str, **options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=14, decimal_places=2, help_text=told, **options
    )


class UtilisationSerializer(OutputSerializer[Utilisation]):
    """What a namespace holds of a kind of GPU, and how much of it work has used; money is USD."""

    team = TeamNameSerializer(source="tenancy.team")
    tenancy = serializers.IntegerField(source="tenancy.pk")
    namespace = serializers.CharField(source="tenancy.namespace")
    flavor = serializers.CharField(
        source="flavor.key", help_text="As cluster/name: `training/a100`."
    )
    gpus = serializers.IntegerField(help_text="Held now.")
    used_now = serializers.IntegerField(
        allow_null=True,
        help_text="Of those, reserved by work at the last look; null where nobody has looked for ten minutes.",
    )
    used_percent = serializers.DecimalField(
        source="percent",
        max_digits=4,
        decimal_places=1,
        allow_null=True,
        help_text=f"Of those, reserved by work on average over {DAYS} days; null for what is held for less than a day.",
    )
    idle_gpus = serializers.DecimalField(
        max_digits=8,
        decimal_places=1,
        allow_null=True,
        help_text=f"Used by no work on average over {DAYS} days; what came since counts for as long as it was there.",
    )
    idle_usd_per_day = serializers.DecimalField(
        max_digits=14,
        decimal_places=2,
        allow_null=True,
        help_text="What a day of those costs.",
    )
    held_since = serializers.DateTimeField(
        source="measured.since",
        allow_null=True,
        help_text=f"Without a gap, as far as {DAYS} days back.",
    )
    until = serializers.DateTimeField(help_text="When the first of it ends.")
    allocations = serializers.SerializerMethodField()

    def get_allocations(self, one: Utilisation) -> list[int]:
        """Their ids: what can be given back."""
        return [row.pk for row in one.allocations]


class UtilisationListSerializer(serializers.Serializer[Any]):
    """What is held, what costs most idle first."""

    results = UtilisationSerializer(many=True)


class UseInWeekSerializer(OutputSerializer[Week]):
    """An ISO week in UTC, from Monday to Sunday; money is USD."""

    week = serializers.CharField(source="name", help_text="Such as 2026-W48.")
    begins = serializers.DateField(help_text="Its Monday.")
    until = serializers.DateTimeField(
        help_text="How far it has come: its end, or the moment of the answer."
    )
    is_over = serializers.BooleanField()
    held_gpu_hours = _hours("Held in it, for as long as it was held.", source="held")
    measured_gpu_hours = _hours(
        "Of those, held on days on which somebody looked at the use.",
        source="measured",
    )
    used_gpu_hours = _hours(
        "Of the measured ones, reserved by work; null where nothing was measured.",
        source="used",
        allow_null=True,
    )
    used_percent = serializers.DecimalField(
        source="percent",
        max_digits=4,
        decimal_places=1,
        allow_null=True,
        help_text="Of the measured ones, reserved by work; null, and never 0, where nothing was held or measured.",
    )
    unused_usd = serializers.DecimalField(
        max_digits=14,
        decimal_places=2,
        allow_null=True,
        help_text="What the rest of the measured ones cost; null where nothing was measured.",
    )


class UseByWeekSerializer(OutputSerializer[History]):
    """The use of what a namespace holds, or held, of a kind of GPU, week by week."""

    team = TeamNameSerializer(source="tenancy.team")
    tenancy = serializers.IntegerField(source="tenancy.pk")
    namespace = serializers.CharField(source="tenancy.namespace")
    flavor = serializers.CharField(
        source="flavor.key", help_text="As cluster/name: `training/a100`."
    )
    weeks = UseInWeekSerializer(
        many=True,
        help_text=f"The {WHOLE_WEEKS} last whole ones and the one under way, oldest first.",
    )


class UseByWeekListSerializer(serializers.Serializer[Any]):
    """The use by week of everything that was held in the last weeks, and of all of it together."""

    total = UseInWeekSerializer(
        many=True, help_text="All results added up, week by week."
    )
    results = UseByWeekSerializer(many=True)


class UtilisationQuery(StrictSerializer):
    """Of which team, and which kind of GPU; all without it."""

    team = Text(required=False, max_length=40, help_text="The slug of a team.")
    flavor = Text(
        required=False, max_length=81, help_text="A kind of GPU, as cluster/name."
    )


class UtilisationEndpoint(Endpoint):
    """What is held of teams that one may see."""

    queryset = Allocation.objects.none()
    serializer_class = UtilisationListSerializer
    asks = {
        "list": UtilisationQuery,
        "weeks": UtilisationQuery,
        "weeks_file": UtilisationQuery,
    }
    refuses_values = frozenset({"list", "weeks", "weeks_file"})

    @extend_schema(operation_id="utilisation_list", responses=UtilisationListSerializer)
    def list(self, request: Request) -> Response:
        """What each namespace holds of each kind of GPU, how much of it work has used, and what the rest costs."""
        found = utilisation_of(self._narrowed(), now=timezone.now())
        return Response(UtilisationListSerializer({"results": found}).data)

    @extend_schema(responses=UseByWeekListSerializer)
    @action(detail=False, methods=["get"])
    def weeks(self, request: Request) -> Response:
        """How much of what was held work has used, week by week (UTC), also of what has ended since."""
        now = timezone.now()
        results = history_of(self._narrowed(), now=now)
        found = {
            "total": summed((one.weeks for one in results), now=now),
            "results": results,
        }
        return Response(UseByWeekListSerializer(found).data)

    @extend_schema(
        responses={
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR,
                description="A line for each week, namespace and kind of GPU.",
            )
        }
    )
    @action(detail=False, methods=["get"], url_path="weeks/file")
    def weeks_file(self, request: Request) -> HttpResponse:
        """The same weeks as a CSV file for spreadsheets."""
        now = timezone.now()
        return csv_file(history_of(self._narrowed(), now=now), now=now)

    def _narrowed(self) -> AllocationQuerySet:
        """The allocations that the caller may see and asks for; raises BadInput for a name of nothing."""
        rows = Allocation.objects.visible_to(self.caller)
        if slug := self.asked.get("team", ""):
            self.check_sees_team(slug)
            rows = rows.filter(team__slug=slug)
        if key := self.asked.get("flavor", ""):
            rows = rows.filter(flavor=_flavor(key))
        return rows


def _flavor(key: str) -> Flavor:
    """The kind of GPU of a key; raises BadInput for none."""
    found = Flavor.objects.of_key(key).first()
    if found is None:
        raise BadInput(
            "There is no kind of GPU of this name.",
            code="no_such_flavor",
            field="flavor",
        )
    return found

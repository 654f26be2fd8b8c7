"""Service levels over the API."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import replay
from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from web.output import OutputSerializer
from web.strict import Choice, Integer, StrictSerializer, Text
from workloads.runs.api import as_missing
from workloads.service_levels import actions, meters, tiers
from workloads.service_levels.budget import Day, State
from workloads.service_levels.models import ServiceLevel
from workloads.service_levels.standing import Standing, present_levels, standings
from workloads.service_levels.tiers import Objective

STATES = [(state.value, state.words) for state in State]


class DaySerializer(OutputSerializer[Day]):
    """What was counted on a day (UTC); Prometheus estimates between its samples, so these are no integers."""

    day = serializers.DateField()
    requests = serializers.FloatField()
    failed = serializers.FloatField()
    p99_seconds = serializers.FloatField(
        source="p99",
        allow_null=True,
        help_text="Within which 99 of 100 requests were answered in the worst hour; null where no hour had a hundred.",
    )
    p99_is_more = serializers.BooleanField(
        source="is_beyond",
        help_text="Whether they took longer than that, where the buckets of the histogram end.",
    )


class ObjectiveSerializer(OutputSerializer[Objective]):
    """What a tier promises."""

    availability = serializers.FloatField(
        help_text="The share of requests that must not fail, from 0 to 1."
    )
    p99_seconds = serializers.FloatField(
        help_text="Within which 99 of 100 requests are answered."
    )


class ServiceLevelSerializer(OutputSerializer[Standing]):
    """A service, what it promises, and how it stood over the last 30 days."""

    id = serializers.IntegerField(source="level.pk")
    team = TeamNameSerializer(source="level.team")
    tenancy = serializers.IntegerField(source="level.tenancy_id")
    cluster = serializers.CharField(source="level.cluster.name")
    namespace = serializers.CharField(source="level.tenancy.namespace")
    service = serializers.CharField(source="level.service")
    request = serializers.IntegerField(
        source="level.request_id",
        allow_null=True,
        help_text="The number of the request for what it runs on; null where nobody said which.",
    )
    meter = serializers.ChoiceField(
        source="level.meter",
        choices=meters.CHOICES,
        help_text="What counts its requests.",
    )
    tier = serializers.ChoiceField(source="level.tier", choices=tiers.CHOICES)
    promised = ObjectiveSerializer(source="level.objective")
    state = serializers.ChoiceField(
        source="budget.state",
        choices=STATES,
        help_text="`fast` is half of its error budget within seven days, `few` a budget of less than one request.",
    )
    advice = serializers.CharField(
        source="budget.state.advice", help_text="What to do; empty where nothing is."
    )
    requests = serializers.FloatField(source="budget.requests")
    failed = serializers.FloatField(source="budget.failed")
    may_fail = serializers.FloatField(
        source="budget.may_fail",
        help_text="The error budget of 30 days, in requests; while fewer are counted, at as many requests a day.",
    )
    availability = serializers.FloatField(
        source="budget.availability",
        allow_null=True,
        help_text="The share that was answered, from 0 to 1; null without requests.",
    )
    budget_used = serializers.FloatField(
        source="budget.used",
        allow_null=True,
        help_text="The share of the budget that is used: above 1 it is overspent; null without requests.",
    )
    p99_seconds = serializers.FloatField(
        source="budget.p99",
        allow_null=True,
        help_text="Of the worst hour since yesterday; null where no hour had a hundred requests.",
    )
    p99_is_more = serializers.BooleanField(
        source="budget.is_beyond",
        help_text="Whether they took longer than that, where the buckets of the histogram end.",
    )
    is_slow = serializers.BooleanField(
        source="budget.is_slow", help_text="Whether that is more than is promised."
    )
    measured_until = serializers.DateTimeField(
        source="level.measured_until",
        allow_null=True,
        help_text="Until when its requests are counted.",
    )
    problem = serializers.CharField(
        source="why_unknown",
        help_text="Why nothing, or nothing new, is known of it; empty where it is measured.",
    )


class ServiceLevelsSerializer(OutputSerializer[Any]):
    """The services that one may see, the most pressing first."""

    results = ServiceLevelSerializer(many=True)


class OneServiceLevelSerializer(ServiceLevelSerializer):
    """The same with its days, the newest first; those without a request are left out."""

    days = DaySerializer(many=True)


class ServiceLevelQuery(StrictSerializer):
    """Of which team; all that one sees without it."""

    team = Text(required=False, max_length=40, help_text="The slug of a team.")


class PromiseSerializer(StrictSerializer):
    """What a service promises, and what counts its requests."""

    meter = Choice(choices=meters.CHOICES)
    tier = Choice(choices=tiers.CHOICES)


class NewServiceLevelSerializer(PromiseSerializer):
    """A Service of a namespace that is measured from now on."""

    tenancy = Integer(
        min_value=1, help_text="The namespace, by its id in `/api/v1/tenancies/`."
    )
    service = Text(max_length=63, help_text="The name of the Service.")
    request = Integer(
        min_value=1,
        required=False,
        help_text="The number of the request for what it runs on, in the same namespace.",
    )


class ServiceLevelEndpoint(Endpoint):
    """Services of teams, what they promise, and how much of their error budget is left."""

    serializer_class = OneServiceLevelSerializer
    lookup_value_converter = "int"
    asks = {"list": ServiceLevelQuery}
    refuses_values = frozenset({"list"})
    keyed = frozenset({"create"})
    bodyless = frozenset({"destroy"})

    def get_queryset(self) -> QuerySet[ServiceLevel]:
        """Those of teams that the caller may see."""
        return present_levels(self.caller)

    @extend_schema(
        operation_id="service_levels_list", responses=ServiceLevelsSerializer
    )
    def list(self, request: Request) -> Response:
        """Services, what they promise and how they stand, the most pressing first."""
        rows = present_levels(self.caller)
        if slug := self.asked.get("team", ""):
            self.check_sees_team(slug)
            rows = rows.filter(tenancy__team__slug=slug)
        found = standings(rows, now=timezone.now())
        return Response(ServiceLevelsSerializer({"results": found}).data)

    @extend_schema(responses=OneServiceLevelSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """A service with what was counted of it day by day."""
        return Response(self._shown(self.get_object()))

    @extend_schema(
        request=NewServiceLevelSerializer, responses={201: OneServiceLevelSerializer}
    )
    def create(self, request: Request) -> Response:
        """Have a Service measured from now on and held against a tier, as a lead of its team or a platform lead."""
        wanted = self.body(NewServiceLevelSerializer)
        return replay.answer_once(request, lambda: self._add(wanted))

    def _add(self, wanted: dict[str, Any]) -> replay.Answer:
        tenancy = wanted["tenancy"]
        with as_missing(tenancy, to=self.caller):
            level = actions.add_level(
                tenancy,
                service=wanted["service"],
                meter=wanted["meter"],
                tier=wanted["tier"],
                request_id=wanted.get("request"),
                by=self.caller,
                now=timezone.now(),
            )
        where = f"/api/v1/service-levels/{level.pk}/"
        return replay.Answer(self._shown(level), 201, where)

    @extend_schema(request=PromiseSerializer, responses=OneServiceLevelSerializer)
    def update(self, request: Request, pk: int) -> Response:
        """Have a service promise something else, or be counted by something else; the same again changes nothing."""
        level, wanted = self.get_object(), self.body(PromiseSerializer)
        level = actions.change_level(
            level.pk, by=self.caller, now=timezone.now(), **wanted
        )
        return Response(self._shown(level))

    @extend_schema(
        request=None,
        responses={204: OpenApiResponse(description="It is measured no more.")},
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Measure a service no more, and forget what was counted of it."""
        actions.remove_level(self.get_object().pk, by=self.caller)
        return Response(status=204)

    def _shown(self, level: ServiceLevel) -> dict[str, Any]:
        rows = ServiceLevel.objects.filter(pk=level.pk)
        [found] = standings(rows, now=timezone.now())
        return self.shown(found, OneServiceLevelSerializer)

"""Limits with their readings and what is expected of them, over the API."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from capacity.chain.forecast import forecast
from capacity.increases.quotas import increases_of
from capacity.models import Meter
from insights.capacity.increases_api import QuotaIncreaseSerializer
from insights.capacity.increasing import SHOWN
from insights.capacity.readings import points_of
from web.strict import PageQuery


class LimitSerializer(serializers.Serializer[Meter]):
    """A limit as it was read last: a quota of Azure, the nodes of a pool, or what was granted of a kind of GPU."""

    id = serializers.IntegerField()
    key = serializers.CharField()
    title = serializers.CharField()
    unit = serializers.CharField(help_text="vCPUs, nodes or GPUs.")
    limit = serializers.IntegerField()
    used = serializers.IntegerField()
    percent = serializers.IntegerField()
    stage = serializers.IntegerField(
        help_text="0, or the stage that it has reached: 60 (ask for more), 80 (little left), 95 (almost reached)."
    )
    seen_at = serializers.DateTimeField()


class ReadingSerializer(serializers.Serializer[Any]):
    """The most that was used on one day."""

    at = serializers.DateTimeField()
    used = serializers.IntegerField()


class ExpectedSerializer(serializers.Serializer[Any]):
    """What is expected at a moment; four times out of five it lies between low and high."""

    at = serializers.DateTimeField()
    used = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class ForecastSerializer(serializers.Serializer[Any]):
    """A line through the highest readings of each week, with its 80 % interval."""

    per_week = serializers.FloatField()
    crosses_at = serializers.DateTimeField(
        allow_null=True, help_text="Null where not within twelve weeks."
    )
    earliest = serializers.DateTimeField(allow_null=True)
    latest = serializers.DateTimeField(allow_null=True)
    weeks = ExpectedSerializer(many=True)


class LimitHistorySerializer(LimitSerializer):
    """A limit with its readings of the last twelve weeks, and what is expected of the next twelve."""

    readings = ReadingSerializer(many=True)
    forecast = ForecastSerializer(
        allow_null=True, help_text="Null before five weeks of readings."
    )
    increases = QuotaIncreaseSerializer(
        many=True,
        help_text="The ten newest requests to Azure for more; none for a limit that is no quota of Azure's.",
    )


class LimitEndpoint(mixins.ListModelMixin, Endpoint):
    """Limits, each as a series of readings."""

    queryset = Meter.objects.all()
    serializer_class = LimitSerializer
    lookup_value_converter = "int"
    ordering = "id"
    asks = {"list": PageQuery}

    @extend_schema(responses=LimitHistorySerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """One limit with its readings and its forecast."""
        meter, now = self.get_object(), timezone.now()
        points = points_of([meter], now)[meter.pk]
        shown = self.shown(meter, LimitSerializer)
        shown["readings"] = ReadingSerializer(points, many=True).data
        ahead = forecast(points, limit=meter.limit, now=now)
        shown["forecast"] = None if ahead is None else ForecastSerializer(ahead).data
        shown["increases"] = [
            self.shown(one, QuotaIncreaseSerializer)
            for one in increases_of(meter)[:SHOWN]
        ]
        return Response(shown)

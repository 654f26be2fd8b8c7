"""Requests for more Azure quota over the API."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from capacity.increases import actions
from capacity.increases.actions import LONGEST_REASON, Ask
from capacity.increases.quotas import told_of
from capacity.increases.states import State
from capacity.increases.words import sentence
from capacity.models import Meter, QuotaIncrease
from web.strict import Choice, Integer, PageQuery, StrictSerializer, Text


class AskIncreaseSerializer(StrictSerializer):
    """Which limit Azure is asked for, in vCPUs, and why; Azure is not told the reason."""

    limit = Integer()
    reason = Text(max_length=LONGEST_REASON)


class QuotaIncreaseSerializer(serializers.Serializer[QuotaIncrease]):
    """A request for a higher limit of one quota of Azure's, in vCPUs, and what became of it."""

    id = serializers.IntegerField()
    subscription = serializers.CharField()
    region = serializers.CharField()
    family = serializers.CharField(help_text="The quota's name as Azure writes it.")
    title = serializers.CharField()
    limit_before = serializers.IntegerField()
    limit = serializers.IntegerField()
    reason = serializers.CharField()
    asked_by = serializers.CharField(source="asked_by.name")
    asked_at = serializers.DateTimeField()
    state = serializers.ChoiceField(
        choices=[(each.value, each.words) for each in State]
    )
    sentence = serializers.SerializerMethodField(help_text="How it stands.")
    message = serializers.CharField(
        help_text="What Azure said last, or why it is not sent."
    )
    azure_id = serializers.CharField(
        help_text="The name of Azure's own request; empty before it is sent."
    )
    sent_at = serializers.DateTimeField(allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True)

    def get_sentence(self, row: QuotaIncrease) -> str:
        """The sentence of the page."""
        return sentence(told_of(row), timezone.now())


class QuotaIncreaseQuery(PageQuery):
    """Which requests to list."""

    state = Choice(choices=[each.value for each in State], required=False)


class QuotaIncreaseEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """Requests for more Azure quota, the newest first."""

    queryset = QuotaIncrease.objects.select_related("asked_by")
    serializer_class = QuotaIncreaseSerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": QuotaIncreaseQuery}
    keyed = frozenset({"withdraw"})
    bodyless = frozenset({"withdraw"})

    def filter_queryset(self, queryset: Any) -> Any:
        """In one state, as asked."""
        asked = getattr(self, "asked", {})
        return queryset.filter(state=asked["state"]) if "state" in asked else queryset

    @extend_schema(request=None, responses=QuotaIncreaseSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, pk: int) -> Response:
        """Withdraw a request that Azure does not have yet (platform leads)."""
        found = self.get_object().pk

        def change() -> Answer:
            row = actions.withdraw(found, by=self.caller, now=timezone.now())
            return Answer(self.shown(row, QuotaIncreaseSerializer))

        return answer_once(request, change)


class LimitIncreaseEndpoint(Endpoint):
    """Requests for more of one limit."""

    queryset: QuerySet[Meter] = Meter.objects.all()
    serializer_class = QuotaIncreaseSerializer
    keyed = frozenset({"create"})

    @extend_schema(
        operation_id="limit_increase",
        request=AskIncreaseSerializer,
        responses={201: QuotaIncreaseSerializer},
    )
    def create(self, request: Request, pk: int) -> Response:
        """Ask Azure for a higher limit of a quota (platform leads); the same while one is open is that one."""
        actions.require_lead(self.caller)
        found = get_object_or_404(Meter, pk=pk).pk

        def ask() -> Answer:
            asked = Ask(**self.body(AskIncreaseSerializer))
            row = actions.ask(found, asked, by=self.caller, now=timezone.now())
            shown = self.shown(row, QuotaIncreaseSerializer)
            return Answer(shown, 201, location=f"/api/v1/quota-increases/{row.pk}/")

        return answer_once(request, ask)

"""The Azure subscriptions that the portal reads, and what it may do in them, over the API."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from capacity.models import Subscription
from capacity.subscriptions import actions
from insights.capacity.rights import rights_of


class RightSerializer(serializers.Serializer[Any]):
    """One thing that the portal does in Azure, and which actions it lacks for it; none where it may."""

    purpose = serializers.CharField()
    may = serializers.BooleanField()
    missing = serializers.ListField(child=serializers.CharField())


class SubscriptionSerializer(serializers.Serializer[Subscription]):
    """An Azure subscription as it was read last."""

    id = serializers.CharField()
    reachable = serializers.BooleanField(
        allow_null=True, help_text="Null before it was read."
    )
    message = serializers.CharField()
    looked_at = serializers.DateTimeField(allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True)
    rights = serializers.SerializerMethodField(
        help_text="What the portal may do there, purpose by purpose; null before that was read."
    )
    rights_checked_at = serializers.DateTimeField(allow_null=True)
    rights_message = serializers.CharField(
        help_text="Why the rights could not be read the last time."
    )

    @extend_schema_field(RightSerializer(many=True, allow_null=True))
    def get_rights(self, row: Subscription) -> Any:
        """Purpose by purpose."""
        rights = rights_of(row)
        if rights is None:
            return None
        return [
            {"purpose": purpose, "may": not lacking, "missing": lacking}
            for purpose, lacking in rights
        ]


class SubscriptionsSerializer(serializers.Serializer[Any]):
    """All of them; an installation has a handful."""

    results = SubscriptionSerializer(many=True)


class SubscriptionEndpoint(Endpoint):
    """The Azure subscriptions of the fleet, for platform leads and auditors."""

    queryset = Subscription.objects.all()
    serializer_class = SubscriptionSerializer
    lookup_value_converter = "slug"
    keyed = frozenset({"check"})
    bodyless = frozenset({"check"})

    @extend_schema(operation_id="subscriptions", responses=SubscriptionsSerializer)
    def list(self, request: Request) -> Response:
        """Every subscription with how it was read last, and what the portal may do there (leads and auditors)."""
        actions.require_sight(self.caller)
        return Response(
            self.shown({"results": Subscription.objects.all()}, SubscriptionsSerializer)
        )

    @extend_schema(request=None, responses={202: SubscriptionSerializer})
    @action(detail=True, methods=["post"])
    def check(self, request: Request, pk: str) -> Response:
        """Have a subscription read now, and with it what the portal may do there (platform leads)."""
        actions.require_lead(self.caller)
        found = get_object_or_404(Subscription, pk=pk).pk

        def change() -> Answer:
            row = actions.check_again(found, by=self.caller, now=timezone.now())
            return Answer(self.shown(row, SubscriptionSerializer), 202)

        return answer_once(request, change)

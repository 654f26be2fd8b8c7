"""A team's share of a cluster and its distance to others, over the API."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from approvals.shares.actions import set_shares
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.spec import LARGEST_WEIGHT
from provisioning.models import Isolation, Tenancy
from web.strict import Choice, Integer, StrictSerializer


class SharesSerializer(serializers.Serializer[Tenancy]):
    """How much a tenancy weighs when several want more than they hold, and how far apart it is."""

    weight = serializers.IntegerField()
    isolation = serializers.ChoiceField(choices=Isolation.choices)
    priority_limit = serializers.CharField(
        help_text="The highest priority of its pods as a platform lead set it; empty when none did."
    )
    open_priorities = serializers.ListField(
        child=serializers.CharField(),
        help_text="The priorities that its pods may have, the highest first.",
    )


class SharesChangeSerializer(StrictSerializer):
    """What may be said about shares; what is not named stays."""

    weight = Integer(min_value=1, max_value=LARGEST_WEIGHT, required=False)
    isolation = Choice(choices=Isolation.choices, required=False)
    priority_limit = Choice(choices=["", *PRIORITIES], required=False)


class ShareEndpoint(Endpoint):
    """A tenancy's share and isolation."""

    queryset = Tenancy.objects.none()
    serializer_class = SharesSerializer

    def get_queryset(self) -> QuerySet[Tenancy]:
        """Those of one's own teams; all of them for leads and auditors."""
        return Tenancy.objects.visible_to(self.request.user)

    @extend_schema(operation_id="tenancy_shares", responses=SharesSerializer)
    def show(self, request: Request, pk: int) -> Response:
        """The share and isolation of a tenancy."""
        return Response(self.shown(self.get_object(), SharesSerializer))

    @extend_schema(
        operation_id="tenancy_shares_set",
        request=SharesChangeSerializer,
        responses=SharesSerializer,
    )
    def change(self, request: Request, pk: int) -> Response:
        """Set the share or the isolation of a tenancy (platform leads)."""
        said: dict[str, Any] = self.body(SharesChangeSerializer)
        tenancy = set_shares(
            self.get_object().pk, by=self.caller, now=timezone.now(), **said
        )
        return Response(self.shown(tenancy, SharesSerializer))

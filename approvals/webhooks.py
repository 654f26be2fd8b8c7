"""What webhooks are told about requests."""

from collections.abc import Mapping
from datetime import datetime

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import TeamNameSerializer
from approvals.models import Request
from approvals.requests.prices import usd_of
from approvals.states import STORED, State
from catalogue.offerings import CHOICES
from notices.actions import tell_webhooks
from notices.channels.events import WebhookEvent
from web.output import OutputSerializer

STATES = [(state.value, state.words) for state in STORED]
CLOSED: Mapping[State, WebhookEvent] = {
    State.REJECTED: WebhookEvent.REQUEST_REJECTED,
    State.WITHDRAWN: WebhookEvent.REQUEST_WITHDRAWN,
    State.LAPSED: WebhookEvent.REQUEST_LAPSED,
}


class ApprovedSerializer(OutputSerializer[Request]):
    """What the approval of a request comes to."""

    approved_usd = serializers.SerializerMethodField()

    @extend_schema_field(
        serializers.DecimalField(
            max_digits=12,
            decimal_places=2,
            allow_null=True,
            help_text="In all, as approved, which may be for fewer or for a shorter time.",
        )
    )
    def get_approved_usd(self, request: Request) -> str | None:
        """In all, as approved, which may be for fewer or for a shorter time; null before."""
        return f"{usd_of(request):.2f}" if request.state == State.APPROVED else None


class RequestEventSerializer(ApprovedSerializer):
    """A request when something became of it, in the fields of the API; reasons and people stay in the portal."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    offering = serializers.ChoiceField(choices=CHOICES)
    name = serializers.CharField(
        source="whole_name", help_text="What is asked for, in a few words."
    )
    place = serializers.CharField(
        help_text="The cluster or region; empty where it has none."
    )
    cluster = serializers.CharField(
        source="flavor.cluster.name", default=None, allow_null=True
    )
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    count = serializers.IntegerField(help_text="How many units of the offering.")
    approved_count = serializers.IntegerField(allow_null=True)
    gpus = serializers.IntegerField(
        help_text="GPUs in all, as asked; 0 for what has none."
    )
    usd = serializers.DecimalField(
        max_digits=12, decimal_places=2, help_text="In all, as asked."
    )
    starts_at = serializers.DateTimeField(
        allow_null=True, help_text="From when on, where it was asked to begin later."
    )
    until = serializers.DateTimeField()
    approved_until = serializers.DateTimeField(
        allow_null=True, help_text="Until when it was approved, which may be earlier."
    )
    purpose = serializers.ChoiceField(choices=Request.Purpose.choices)
    state = serializers.ChoiceField(choices=STATES)
    content_version = serializers.IntegerField(
        help_text="Counts the changes of what is asked."
    )


def tell_of(event: WebhookEvent, request: Request, *, now: datetime) -> None:
    """Tell webhooks what became of a request; promises and errors as for `tell_webhooks`."""
    tell_webhooks(
        event,
        subject=("request", request.pk),
        link=reverse("request", args=[request.pk]),
        data=lambda: RequestEventSerializer(request).data,
        now=now,
    )

"""What webhooks are told about allocations."""

from datetime import datetime

from django.urls import reverse
from rest_framework import serializers

from accounts.api import TeamNameSerializer
from allocations.models import Allocation
from allocations.schedule import Provisioner
from notices.actions import tell_webhooks
from notices.channels.events import WebhookEvent
from web.output import OutputSerializer


class AllocationEventSerializer(OutputSerializer[Allocation]):
    """An allocation when something became of it, in the fields of the API."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    offering = serializers.CharField(
        help_text="The key of the catalogue: `gpus`, `volume`, …"
    )
    what = serializers.CharField(
        help_text="In a few words: `2 × A100`, `500 GiB volume corpus`."
    )
    where = serializers.CharField(
        help_text="The title of its cluster, or its region; empty for neither."
    )
    cluster = serializers.CharField(
        source="tenancy.cluster.name", default=None, allow_null=True
    )
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    gpus = serializers.IntegerField(
        help_text="Those whose GPU-hours count against the budget."
    )
    usd_per_day = serializers.DecimalField(max_digits=14, decimal_places=2)
    reference = serializers.CharField(
        source="hold.reference", help_text="What it was granted for: `request-17`."
    )
    part_of = serializers.IntegerField(
        source="part_of_id",
        allow_null=True,
        help_text="What this was a part of until it went back or was renewed.",
    )
    provisioner = serializers.ChoiceField(
        choices=[(each.value, each.words) for each in Provisioner],
        help_text="What makes it.",
    )
    starts_at = serializers.DateTimeField()
    begun_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Null for a booking, which begins by itself at starts_at, also when that was cancelled.",
    )
    charged_from = serializers.DateTimeField(
        allow_null=True,
        help_text="It costs from then on; null, and it costs nothing, before it is there.",
    )
    until = serializers.DateTimeField(help_text="It is paid until then.")
    ended_at = serializers.DateTimeField(allow_null=True)
    end_reason = serializers.ChoiceField(
        choices=["", *Allocation.End.values],
        help_text="`renewed`: its GPUs go on under another allocation.",
    )


def tell_of(event: WebhookEvent, allocation: Allocation, *, now: datetime) -> None:
    """Tell webhooks what became of an allocation; promises and errors as for `tell_webhooks`."""
    tell_webhooks(
        event,
        subject=("allocation", allocation.pk),
        link=reverse("team", args=[allocation.team.slug]),
        data=lambda: AllocationEventSerializer(allocation).data,
        now=now,
    )

"""What webhooks are told about runs."""

from datetime import datetime

from django.urls import reverse
from rest_framework import serializers

from accounts.api import TeamNameSerializer
from notices.actions import tell_webhooks
from notices.channels.events import WebhookEvent
from web.output import OutputSerializer
from workloads.failures.causes import CHOICES
from workloads.runs.models import Run
from workloads.runs.states import OVER, State

STATES = [(state.value, state.words) for state in State if state in OVER]


class RunEventSerializer(OutputSerializer[Run]):
    """A run that has ended, in the fields of the API."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    name = serializers.CharField(
        help_text="What its objects on the cluster are called."
    )
    template = serializers.CharField()
    team = TeamNameSerializer()
    cluster = serializers.CharField(source="tenancy.cluster.name")
    namespace = serializers.CharField(source="tenancy.namespace")
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    gpus = serializers.IntegerField()
    state = serializers.ChoiceField(choices=STATES)
    cause = serializers.ChoiceField(
        choices=CHOICES,
        allow_blank=True,
        help_text="Why its program failed; empty where that is not known. Where its pods tell too little, the event "
        "waits for its log, for five minutes at most.",
    )
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(
        allow_null=True, help_text="Null for one that never began."
    )
    ended_at = serializers.DateTimeField(allow_null=True)


def tell_ended(run: Run, *, now: datetime) -> None:
    """Tell webhooks that a run has ended, however short it was; promises and errors as for `tell_webhooks`."""
    tell_webhooks(
        WebhookEvent.RUN_ENDED,
        subject=("run", run.pk),
        link=reverse("run", args=[run.pk]),
        data=lambda: RunEventSerializer(run).data,
        now=now,
    )

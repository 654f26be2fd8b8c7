"""Models that teams call in Azure OpenAI, over the API."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from capacity.models import ModelEndpoint
from capacity.openai import actions
from capacity.openai.calling import example, network_words
from capacity.openai.states import State
from web.output import OutputSerializer
from web.strict import Choice, PageQuery, Text

STATES = [(each.value, each.words) for each in State]


class ModelEndpointQuery(PageQuery):
    """Which ones; without a state also those that are deleted."""

    team = Text(required=False, max_length=40)
    state = Choice(choices=[state.value for state in State], required=False)


class CallerSerializer(OutputSerializer[Any]):
    """Whose members may call it: an Entra group."""

    id = serializers.UUIDField(source="entra_group")
    name = serializers.CharField(source="entra_group_name")


class ModelEndpointSerializer(OutputSerializer[ModelEndpoint]):
    """A model that a team calls: a deployment in Azure OpenAI with a ceiling of tokens a minute."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    state = serializers.ChoiceField(choices=STATES)
    region = serializers.CharField(source="account.region")
    endpoint = serializers.CharField(
        source="account.endpoint",
        help_text="Where it is called; empty while it is not there.",
    )
    deployment = serializers.CharField(help_text="What it is called in calls of it.")
    model = serializers.CharField()
    version = serializers.CharField(help_text="Empty while it is not there.")
    deployment_type = serializers.CharField(
        source="sku", help_text="Standard or GlobalStandard."
    )
    thousand_tokens_per_minute = serializers.IntegerField(
        source="capacity",
        help_text="What was granted, 0 once it goes; Azure has `held_thousand_tokens_per_minute`.",
    )
    held_thousand_tokens_per_minute = serializers.IntegerField(source="held")
    is_network_open = serializers.BooleanField(
        source="account.is_open",
        help_text="Whether it may be reached from anywhere; closed at first.",
    )
    has_keys = serializers.BooleanField(
        source="account.has_keys",
        help_text="Whether somebody switched keys on in Azure: whoever has one may call it; off at first.",
    )
    called_by = CallerSerializer(source="team")
    message = serializers.SerializerMethodField(
        help_text="What keeps it from being as it was granted; empty for nothing."
    )
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    def get_message(self, row: ModelEndpoint) -> str:
        """What Azure refused, or what a worker met."""
        return row.refusal or ("" if row.is_true else row.account.message)


class ModelEndpointFullSerializer(ModelEndpointSerializer):
    """The same with how it is called."""

    network = serializers.SerializerMethodField(
        help_text="From where it may be called, in a sentence."
    )
    example = serializers.SerializerMethodField(
        help_text="A call of it in a shell; empty while it is not there."
    )

    def get_network(self, row: ModelEndpoint) -> str:
        """As the page of its request says it."""
        return network_words(row)

    def get_example(self, row: ModelEndpoint) -> str:
        """As the page of its request says it."""
        return example(row)


class ModelEndpointEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """Models of one's teams in Azure OpenAI."""

    queryset = ModelEndpoint.objects.none()
    serializer_class = ModelEndpointSerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": ModelEndpointQuery}
    keyed = frozenset({"retry"})
    bodyless = frozenset({"retry"})

    @extend_schema(request=None, responses=ModelEndpointSerializer)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: int) -> Response:
        """Have a worker try its account now, parked or not (platform leads)."""
        row = self.get_object()
        return answer_once(request, lambda: self._retry(row.pk))

    def _retry(self, number: int) -> Answer:
        actions.try_again(number, by=self.caller, now=timezone.now())
        return Answer(self.shown(self.get_object(), ModelEndpointSerializer))

    def get_queryset(self) -> QuerySet[ModelEndpoint]:
        """Those of one's own teams; all of them for leads and auditors."""
        return ModelEndpoint.objects.visible_to(self.request.user).described()

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Short in a list."""
        return (
            ModelEndpointSerializer
            if self.action == "list"
            else ModelEndpointFullSerializer
        )

    def filter_queryset(self, queryset: Any) -> Any:
        """What was asked for in the address."""
        asked = getattr(self, "asked", {})
        names = {"team": "team__slug", "state": "state"}
        return queryset.filter(
            **{names[key]: asked[key] for key in names if key in asked}
        )

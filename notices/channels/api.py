"""The channels that are told, over the API."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.replay import Answer, answer_once, earlier_answer
from connectors.webhooks import Target
from notices.api import DeliverySerializer, Managed
from notices.channels import actions as channels
from notices.channels import webhook_actions
from notices.kinds import Way
from notices.models import CHANNEL_KINDS, CHANNEL_WAYS, WEBHOOK_EVENTS, Channel
from web.refusals import BadInput
from web.strict import Boolean, Choice, PageQuery, StrictSerializer, Text

HTTP_CREATED = 201


class ChannelSerializer(serializers.Serializer[Channel]):
    """A channel; of its address only the host and the last four characters are ever told, of its secret nothing."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    way = serializers.ChoiceField(choices=CHANNEL_WAYS)
    address = serializers.CharField()
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=CHANNEL_KINDS),
        help_text="What a channel of Teams or Slack is told; empty for a webhook.",
    )
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=WEBHOOK_EVENTS),
        help_text="What a webhook is told; empty for a channel of Teams or Slack.",
    )
    former_secret_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Until when a webhook's messages are signed with the secret before the last as well.",
    )
    enabled = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class ChannelSecretSerializer(ChannelSerializer):
    """A channel with the secret that was made now, which is told this once."""

    secret = serializers.SerializerMethodField(
        help_text="A webhook's secret; null for Teams and Slack, and when this call is repeated."
    )

    def get_secret(self, channel: Channel) -> str | None:
        """Never what is stored: the one answer that tells a secret puts it in."""
        return None


class ChannelChangeSerializer(StrictSerializer):
    """What may be said about a channel; `url` is kept and never told again."""

    name = Text(max_length=60)
    url = Text(max_length=2000, write_only=True)
    kinds = serializers.ListField(
        child=Choice(choices=CHANNEL_KINDS),
        max_length=len(CHANNEL_KINDS),
        required=False,
        help_text="For a channel of Teams or Slack, which needs one.",
    )
    events = serializers.ListField(
        child=Choice(choices=WEBHOOK_EVENTS),
        max_length=len(WEBHOOK_EVENTS),
        required=False,
        help_text="For a webhook, which needs one.",
    )
    enabled = Boolean(required=False)


class NewChannelSerializer(ChannelChangeSerializer):
    """A channel to add."""

    way = Choice(choices=CHANNEL_WAYS)


class ChannelEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Managed):
    """The channels of Teams and Slack, and the webhooks, that are told (platform leads)."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    lookup_value_converter = "int"
    ordering = "name"
    asks = {"list": PageQuery}
    keyed = frozenset({"create", "test", "rotate_secret"})
    bodyless = frozenset({"destroy", "test", "rotate_secret"})

    @extend_schema(
        request=NewChannelSerializer, responses={201: ChannelSecretSerializer}
    )
    def create(self, request: Request) -> Response:
        """Add a channel; its address is looked up now, and before each message."""
        if (earlier := earlier_answer(request)) is not None:
            return earlier
        values = self.body(NewChannelSerializer)
        target = channels.checked(values.pop("url"), way=values["way"])

        def effect() -> Answer:
            channel, secret = self._added(target, values)
            return self._told_once(channel, secret, status=201)

        return answer_once(request, effect)

    @extend_schema(request=None, responses=ChannelSecretSerializer)
    @action(detail=True, methods=["post"], url_path="rotate-secret")
    def rotate_secret(self, request: Request, pk: int) -> Response:
        """Make a webhook a new secret; for a day its messages are signed with the one before as well."""
        found = self.get_object()

        def effect() -> Answer:
            channel, secret = webhook_actions.rotate_secret(
                found.pk, by=self.caller, now=timezone.now()
            )
            return self._told_once(channel, secret, status=200)

        return answer_once(request, effect)

    def _added(
        self, target: Target, values: dict[str, Any]
    ) -> tuple[Channel, str | None]:
        is_webhook = values["way"] == Way.WEBHOOK
        told, other = ("events", "kinds") if is_webhook else ("kinds", "events")
        if other in values:
            raise BadInput(channels.WRONG_FIELD, code="unknown_field", field=other)
        values = {told: [], **values, "target": target, "by": self.caller}
        if not is_webhook:
            return channels.add_channel(**values), None
        del values["way"]
        return webhook_actions.add_webhook(**values)

    def _told_once(
        self, channel: Channel, secret: str | None, *, status: int
    ) -> Answer:
        """The channel with its secret; what is kept for a repetition of the call is without."""
        kept = self.shown(channel, ChannelSecretSerializer)
        return Answer(
            {**kept, "secret": secret},
            status,
            f"/api/v1/channels/{channel.pk}/" if status == HTTP_CREATED else "",
            kept=kept,
        )

    @extend_schema(request=ChannelChangeSerializer, responses=ChannelSerializer)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a channel."""
        channel, values = (
            self.get_object(),
            self.body(ChannelChangeSerializer, partial=True),
        )
        url = values.pop("url", None)
        target = channels.checked(url, way=channel.way) if url is not None else None
        channel = channels.change_channel(
            channel.pk, values=values, target=target, by=self.caller
        )
        return Response(self.shown(channel, ChannelSerializer))

    @extend_schema(
        request=None, responses={204: OpenApiResponse(description="It is removed.")}
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Remove a channel, and forget its address."""
        channels.remove_channel(self.get_object().pk, by=self.caller)
        return Response(status=204)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: int) -> Response:
        """Send a test to the channel; `/deliveries/{id}/` says how it went."""
        channel = self.get_object()

        def effect() -> Answer:
            delivery = channels.test_channel(
                channel.pk, by=self.caller, now=timezone.now()
            )
            shown = self.shown(delivery, DeliverySerializer)
            return Answer(shown, 202, f"/api/v1/deliveries/{delivery.pk}/")

        return answer_once(request, effect)

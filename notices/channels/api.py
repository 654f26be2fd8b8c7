"""The channels that are told, over the API."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.replay import Answer, answer_once, earlier_answer
from notices.api import DeliverySerializer, Managed
from notices.channels import actions as channels
from notices.models import CHANNEL_WAYS, CHOOSABLE_KINDS, Channel
from web.strict import Boolean, Choice, PageQuery, StrictSerializer, Text


class ChannelSerializer(serializers.Serializer[Channel]):
    """A channel; of its address only the host and the last four characters are ever told."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    way = serializers.ChoiceField(choices=CHANNEL_WAYS)
    address = serializers.CharField()
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=CHOOSABLE_KINDS)
    )
    enabled = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class ChannelChangeSerializer(StrictSerializer):
    """What may be said about a channel; `url` is kept and never told again."""

    name = Text(max_length=60)
    url = Text(max_length=2000, write_only=True)
    kinds = serializers.ListField(
        child=Choice(choices=CHOOSABLE_KINDS), max_length=len(CHOOSABLE_KINDS)
    )
    enabled = Boolean(required=False)


class NewChannelSerializer(ChannelChangeSerializer):
    """A channel to add."""

    way = Choice(choices=CHANNEL_WAYS)


class ChannelEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Managed):
    """The channels of Teams and Slack that are told (platform leads)."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    lookup_value_converter = "int"
    ordering = "name"
    asks = {"list": PageQuery}
    keyed = frozenset({"create", "test"})
    bodyless = frozenset({"destroy", "test"})

    @extend_schema(request=NewChannelSerializer, responses={201: ChannelSerializer})
    def create(self, request: Request) -> Response:
        """Add a channel; its address is looked up now, and before each message."""
        if (earlier := earlier_answer(request)) is not None:
            return earlier
        values = self.body(NewChannelSerializer)
        target = channels.checked(values.pop("url"))

        def effect() -> Answer:
            channel = channels.add_channel(target=target, by=self.caller, **values)
            shown = self.shown(channel, ChannelSerializer)
            return Answer(shown, 201, f"/api/v1/channels/{channel.pk}/")

        return answer_once(request, effect)

    @extend_schema(request=ChannelChangeSerializer, responses=ChannelSerializer)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a channel."""
        channel, values = (
            self.get_object(),
            self.body(ChannelChangeSerializer, partial=True),
        )
        url = values.pop("url", None)
        target = channels.checked(url) if url is not None else None
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

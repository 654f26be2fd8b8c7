"""Notices over the API: what one is told, the channels that are told, and what could not be delivered."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.directory import backstage
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once, earlier_answer
from notices import actions, channels, choosing
from notices.kinds import NoticeKind, Pace
from notices.models import CHANNEL_WAYS, CHOOSABLE_KINDS, PACES, WAYS, Channel, Delivery
from notices.servers import mail_is_configured
from web.strict import Boolean, Choice, Integer, PageQuery, StrictSerializer, Text


class NoticePaceSerializer(serializers.Serializer[Any]):
    """How soon one is told about a kind of thing."""

    kind = serializers.ChoiceField(choices=CHOOSABLE_KINDS)
    words = serializers.CharField()
    pace = serializers.ChoiceField(choices=PACES)


class NoticeSettingsSerializer(serializers.Serializer[Any]):
    """What the caller is told; `digest_hour` is UTC."""

    digest_hour = serializers.IntegerField()
    mail_is_configured = serializers.BooleanField()
    is_in_backstage = serializers.BooleanField(
        help_text="Whether notices stand in Backstage's notifications as well."
    )
    kinds = NoticePaceSerializer(many=True)


class NoticePaceChangeSerializer(StrictSerializer):
    """A kind and how soon to be told about it."""

    kind = Choice(choices=CHOOSABLE_KINDS)
    pace = Choice(choices=PACES)


class NoticeSettingsChangeSerializer(StrictSerializer):
    """What to change; the rest stays."""

    digest_hour = Integer(min_value=0, max_value=23, required=False)
    kinds = NoticePaceChangeSerializer(many=True, required=False)


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


class DeliverySerializer(serializers.Serializer[Delivery]):
    """A message on its way, and how far it has come."""

    id = serializers.IntegerField()
    kind = serializers.SerializerMethodField()
    title = serializers.SerializerMethodField()
    to = serializers.SerializerMethodField()
    way = serializers.ChoiceField(choices=WAYS)
    state = serializers.ChoiceField(choices=Delivery.State.choices)
    attempts = serializers.IntegerField()
    next_at = serializers.DateTimeField()
    last_error = serializers.CharField()
    sent_at = serializers.DateTimeField(allow_null=True)

    def get_kind(self, delivery: Delivery) -> str:
        """What it is about; `digest` for a daily mail."""
        return delivery.notice.kind if delivery.notice else "digest"

    def get_title(self, delivery: Delivery) -> str:
        """Its title; empty for a daily mail."""
        return delivery.notice.said.title if delivery.notice else ""

    def get_to(self, delivery: Delivery) -> str:
        """The person's or the channel's name."""
        notice, digest = delivery.notice, delivery.digest
        person = digest.person if digest else notice.person if notice else None
        return (
            person.name
            if person
            else notice.channel.name
            if notice and notice.channel
            else ""
        )


class DeliveryQuery(PageQuery):
    """Which deliveries to list."""

    state = Choice(choices=Delivery.State.choices, required=False)


class NoticeSettingsEndpoint(Endpoint):
    """What the caller is told."""

    serializer_class = NoticeSettingsSerializer
    keyed = frozenset({"test"})
    bodyless = frozenset({"test"})

    @extend_schema(operation_id="notice_settings", responses=NoticeSettingsSerializer)
    def list(self, request: Request) -> Response:
        """How soon the caller is told about what."""
        return Response(self._shown())

    @extend_schema(
        operation_id="notice_settings_change",
        request=NoticeSettingsChangeSerializer,
        responses=NoticeSettingsSerializer,
    )
    def change(self, request: Request) -> Response:
        """Change some of it; the rest stays."""
        wanted = self.body(NoticeSettingsChangeSerializer)
        paces = {
            NoticeKind(row["kind"]): Pace(row["pace"])
            for row in wanted.get("kinds", [])
        }
        choosing.choose(self.caller, paces=paces, hour=wanted.get("digest_hour"))
        return Response(self._shown())

    @extend_schema(
        operation_id="notice_settings_test",
        request=None,
        responses={202: DeliverySerializer},
    )
    def test(self, request: Request) -> Response:
        """Send the caller a test mail."""

        def effect() -> Answer:
            delivery = choosing.send_test(self.caller, now=timezone.now())
            return Answer(self.shown(delivery, DeliverySerializer), 202)

        return answer_once(request, effect)

    def _shown(self) -> dict[str, Any]:
        paces = choosing.paces_of(self.caller)
        return {
            "digest_hour": choosing.hour_of(self.caller),
            "mail_is_configured": mail_is_configured(),
            "is_in_backstage": backstage.notifies(),
            "kinds": [
                {"kind": k.value, "words": k.words, "pace": p.value}
                for k, p in paces.items()
            ],
        }


class Managed(Endpoint):
    """Calls that platform leads alone may make, reading included."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let platform leads pass; raises NoRight."""
        super().initial(request, *args, **kwargs)
        channels.manages(self.caller)


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


class DeliveryEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Managed):
    """Messages and how far they have come (platform leads)."""

    queryset = Delivery.objects.select_related(
        "notice__person", "notice__channel", "digest__person"
    )
    serializer_class = DeliverySerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": DeliveryQuery}
    keyed = frozenset({"again"})
    bodyless = frozenset({"again"})

    def filter_queryset(self, queryset: Any) -> Any:
        """Those in one state, if that was asked for."""
        state = getattr(self, "asked", {}).get("state")
        return queryset.filter(state=state) if state is not None else queryset

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"])
    def again(self, request: Request, pk: int) -> Response:
        """Send again what was given up."""
        delivery = self.get_object()

        def effect() -> Answer:
            actions.send_again(delivery.pk, by=self.caller, now=timezone.now())
            return Answer(self.shown(self.get_object(), DeliverySerializer), 202)

        return answer_once(request, effect)

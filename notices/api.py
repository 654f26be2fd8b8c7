"""Notices over the API: what one is told, and what could not be delivered."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.directory import backstage
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from notices import actions, choosing
from notices.channels.actions import manages
from notices.kinds import NoticeKind, Pace
from notices.models import CHOOSABLE_KINDS, PACES, WAYS, Delivery
from notices.servers import mail_is_configured
from web.strict import Choice, Integer, PageQuery, StrictSerializer


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
        """What it is about; `digest` for a daily mail, and the type of an event that a webhook is sent."""
        notice = delivery.notice
        if notice is None:
            return "digest"
        return str(notice.event["type"]) if notice.event else notice.kind

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
        manages(self.caller)


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

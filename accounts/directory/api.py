"""The directory over the API: whether it is believed, what it took, and the two answers of a platform lead."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import PersonSerializer
from accounts.directory import actions as restoring
from accounts.directory import backstage
from accounts.directory.models import Reason
from accounts.endpoints import Endpoint
from accounts.models import AccessLoss, Contact, DirectoryBrake, Doubt, SeatFill
from accounts.replay import Answer, answer_once
from accounts.roles import Permission
from web.refusals import NoRight
from web.strict import PageQuery, StrictSerializer


class DirectoryBrakeSerializer(serializers.Serializer[DirectoryBrake]):
    """Why the directory takes nothing from anybody."""

    at = serializers.DateTimeField()
    cause = serializers.ChoiceField(choices=DirectoryBrake.Cause.choices)
    people = serializers.IntegerField()
    reason = serializers.CharField()
    answer = serializers.ChoiceField(choices=["", *DirectoryBrake.Answer.values])
    answered_at = serializers.DateTimeField(allow_null=True)
    answered_by = PersonSerializer(allow_null=True)


class SeatFillSerializer(serializers.Serializer[SeatFill]):
    """A seat that decides, as it was last read from the directory."""

    seat = serializers.CharField()
    words = serializers.CharField()
    people = serializers.IntegerField()
    read_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()


class BackstageNotedSerializer(serializers.Serializer[backstage.Noted]):
    """A call that was let in, or one that was not and why."""

    at = serializers.DateTimeField()
    words = serializers.CharField()


class BackstageStateSerializer(serializers.Serializer[backstage.State]):
    """The Backstage that the portal is connected with, and whether it is heard."""

    address = serializers.CharField()
    plugins = serializers.ListField(child=serializers.CharField())
    scope = serializers.CharField(help_text="What it may do at most: read, or ask.")
    notifies = serializers.BooleanField(
        help_text="Whether people are told there what they are told here."
    )
    call = BackstageNotedSerializer(allow_null=True)
    refusal = BackstageNotedSerializer(allow_null=True)


class DirectoryStateSerializer(serializers.Serializer[Any]):
    """Whether the directory answers and is believed."""

    answered_at = serializers.DateTimeField(allow_null=True)
    failing_since = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()
    in_doubt = serializers.IntegerField()
    brake = DirectoryBrakeSerializer(allow_null=True)
    seats = SeatFillSerializer(many=True)
    backstage = BackstageStateSerializer(allow_null=True)


class AccessLossSerializer(serializers.Serializer[AccessLoss]):
    """What the directory took from somebody at one time."""

    id = serializers.IntegerField()
    person = PersonSerializer(source="user")
    reason = serializers.ChoiceField(choices=Reason.choices)
    at = serializers.DateTimeField()
    roles = serializers.ListField(child=serializers.CharField())
    tokens = serializers.SerializerMethodField()
    restored_at = serializers.DateTimeField(allow_null=True)
    restored_by = PersonSerializer(allow_null=True)

    def get_tokens(self, loss: AccessLoss) -> int:
        """How many tokens are suspended by it."""
        return len(loss.tokens.all())


class RestoreSerializer(StrictSerializer):
    """Since when to give back what was taken."""

    since = serializers.DateTimeField()


class RestoredSerializer(serializers.Serializer[Any]):
    """What came back."""

    restored = AccessLossSerializer(many=True)


class DirectoryEndpoint(Endpoint):
    """The directory, for leads and auditors."""

    serializer_class = DirectoryStateSerializer
    keyed = frozenset({"release", "restore"})
    bodyless = frozenset({"release"})

    @extend_schema(operation_id="directory", responses=DirectoryStateSerializer)
    def list(self, request: Request) -> Response:
        """Whether the directory answers and is believed."""
        _check_reader(self.caller)
        contact = Contact.objects.filter(pk=1).first() or Contact()
        state = {
            "answered_at": contact.answered_at,
            "failing_since": contact.failing_since,
            "error": contact.error,
            "in_doubt": Doubt.objects.count(),
            "brake": DirectoryBrake.objects.open().first(),
            "seats": SeatFill.objects.all(),
            "backstage": backstage.state(),
        }
        return Response(self.shown(state, DirectoryStateSerializer))

    @extend_schema(request=None, responses=DirectoryBrakeSerializer)
    @action(detail=False, methods=["post"])
    def release(self, request: Request) -> Response:
        """Let take effect what the directory says of the people in doubt; platform leads only."""
        return answer_once(request, self._release)

    @extend_schema(request=RestoreSerializer, responses=RestoredSerializer)
    @action(detail=False, methods=["post"])
    def restore(self, request: Request) -> Response:
        """Give everything back that the directory took since a moment, tokens included; platform leads only."""
        since = self.body(RestoreSerializer)["since"]
        return answer_once(request, lambda: self._restore(since))

    def _release(self) -> Answer:
        brake = restoring.release(by=self.caller, now=timezone.now())
        return Answer(self.shown(brake, DirectoryBrakeSerializer))

    def _restore(self, since: Any) -> Answer:
        losses = restoring.restore(since=since, by=self.caller, now=timezone.now())
        rows = AccessLoss.objects.filter(
            pk__in=[loss.pk for loss in losses]
        ).select_related("user", "restored_by")
        return Answer(
            self.shown(
                {"restored": rows.prefetch_related("tokens")}, RestoredSerializer
            )
        )


class AccessLossEndpoint(mixins.ListModelMixin, Endpoint):
    """What the directory took, for leads and auditors."""

    queryset = AccessLoss.objects.none()
    serializer_class = AccessLossSerializer
    ordering = "-id"
    asks = {"list": PageQuery}

    def get_queryset(self) -> QuerySet[AccessLoss]:
        """All of it; raises NoRight for others than leads and auditors."""
        _check_reader(self.caller)
        return AccessLoss.objects.select_related(
            "user", "restored_by"
        ).prefetch_related("tokens")


def _check_reader(user: Any) -> None:
    if not user.may(Permission.SEE_AUDIT):
        raise NoRight(
            "Leads and auditors see what the directory took.", code="not_an_auditor"
        )

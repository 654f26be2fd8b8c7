"""How the API shows a team's leaving, and what it takes for it."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import PersonSerializer, TeamNameSerializer
from offboarding import page as leaving_page
from offboarding import preview as previews
from offboarding.models import Departure
from offboarding.plan import steps
from provisioning.api import TenancyShortSerializer
from web.strict import Boolean, Integer, Moment, StrictSerializer, Text

STATES = ["asked", "leaving", "retained", "removing", "withdrawn", "restored", "gone"]


class LeaveSerializer(StrictSerializer):
    """How a team leaves; without clusters it leaves the platform."""

    team = Text(max_length=40)
    clusters = serializers.ListField(
        child=Text(max_length=40),
        required=False,
        allow_empty=False,
        max_length=50,
        help_text="Names of clusters that it leaves with all its namespaces; left out with namespaces, the platform.",
    )
    namespaces = serializers.ListField(
        child=Text(max_length=63),
        required=False,
        allow_empty=False,
        max_length=50,
        help_text="Names of single namespaces that it leaves.",
    )
    leaves_at = Moment(
        required=False,
        help_text="When work stops; as soon as it is confirmed when left out.",
    )
    hold = Boolean(
        required=False, help_text="Whether nothing new starts from the confirmation on."
    )
    retention_days = Integer(required=False, min_value=1, max_value=365)
    reason = Text(max_length=500)


class PreviewQuery(StrictSerializer):
    """Whose leaving to look at, and of which cluster; all of them when it is left out."""

    team = Text(max_length=40)
    cluster = Text(required=False, max_length=40)


class ConfirmSerializer(StrictSerializer):
    """The team's name, typed as it is written."""

    name = Text(max_length=60)


class ProtectionSerializer(StrictSerializer):
    """Whether a place is protected from deletion."""

    is_protected = Boolean()


class DepartureStepSerializer(serializers.Serializer[Any]):
    """One dated step of a departure."""

    phase = serializers.ChoiceField(choices=["past", "now", "future"])
    title = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    why = serializers.CharField()
    who = serializers.CharField()


class ClaimSerializer(serializers.Serializer[Any]):
    """A claim on disk space."""

    name = serializers.CharField()
    size = serializers.CharField()
    is_bound = serializers.BooleanField()


class ContentsSerializer(serializers.Serializer[Any]):
    """What was found in a namespace; `away` says why nothing was."""

    read_at = serializers.DateTimeField()
    claims = ClaimSerializer(many=True)
    running = serializers.ListField(child=serializers.CharField())
    waiting = serializers.ListField(child=serializers.CharField())
    pods = serializers.ListField(child=serializers.CharField())
    away = serializers.CharField()


class ObjectSerializer(serializers.Serializer[Any]):
    """An object that goes."""

    kind = serializers.CharField()
    name = serializers.CharField()


class GoingPlaceSerializer(serializers.Serializer[Any]):
    """One place with what is in it."""

    tenancy = TenancyShortSerializer()
    objects = ObjectSerializer(many=True)
    contents = ContentsSerializer(source="found", allow_null=True)


class GoingGpusSerializer(serializers.Serializer[Any]):
    """GPUs that go back."""

    id = serializers.IntegerField(source="row.pk")
    what = serializers.CharField()
    where = serializers.CharField()
    until = serializers.DateTimeField()
    usd_freed = serializers.DecimalField(max_digits=12, decimal_places=2)


class GoingRequestSerializer(serializers.Serializer[Any]):
    """A request that is withdrawn or ends."""

    id = serializers.IntegerField(source="pk")
    what = serializers.CharField(source="name")


class LeavingPreviewSerializer(serializers.Serializer[Any]):
    """Everything that goes, and what stays."""

    places = GoingPlaceSerializer(many=True)
    allocations = GoingGpusSerializer(many=True)
    gpus = serializers.IntegerField()
    usd_freed = serializers.DecimalField(max_digits=12, decimal_places=2)
    requests = GoingRequestSerializer(many=True)
    ends = GoingRequestSerializer(many=True)
    kept = GoingRequestSerializer(
        many=True,
        help_text="Kept with their place, and paid, until it is deleted or their end comes.",
    )
    paid = GoingRequestSerializer(
        many=True, help_text="Paid to their end, until which they stay."
    )
    members = serializers.ListField(child=serializers.CharField())
    tokens = serializers.IntegerField()
    team_tokens = serializers.IntegerField(
        help_text="Of the team's pipelines; they end once everything is deleted."
    )
    team_identities = serializers.IntegerField(
        help_text="Applications that act as the team's pipelines, until everything is deleted."
    )
    stays = serializers.SerializerMethodField()

    def get_stays(self, preview: Any) -> list[str]:
        """What is not deleted, in sentences."""
        return list(previews.STAYS)


class DepartureShortSerializer(serializers.Serializer[Departure]):
    """A team's leaving as a line of a list."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    is_whole = serializers.BooleanField()
    clusters = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    leaves_at = serializers.DateTimeField()
    retained_until = serializers.DateTimeField()
    hold = serializers.BooleanField()
    retention_days = serializers.IntegerField()
    reason = serializers.CharField()
    needs_second = serializers.SerializerMethodField()
    asked_by = PersonSerializer()
    asked_at = serializers.DateTimeField()
    confirmed_by = PersonSerializer(allow_null=True)
    confirmed_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_clusters(self, row: Departure) -> list[str]:
        """The clusters that are left, by name; before it is confirmed, those of now."""
        return sorted({place.cluster.name for place in previews.known_places(row)})

    def get_needs_second(self, row: Departure) -> bool:
        """Whether another platform lead confirms than who asked; before it is confirmed, by the places of now."""
        if row.is_asked:
            return previews.needs_second(previews.known_places(row))
        return row.needs_second

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, row: Departure) -> str:
        """How far it is."""
        return leaving_page.state_name(row, now=timezone.now())


class DepartureSerializer(DepartureShortSerializer):
    """The same with its steps."""

    steps = serializers.SerializerMethodField()

    @extend_schema_field(DepartureStepSerializer(many=True))
    def get_steps(self, row: Departure) -> list[dict[str, Any]]:
        """What happened, and what comes when."""
        return [
            DepartureStepSerializer(step).data
            for step in steps(leaving_page.story_of(row), now=timezone.now())
        ]

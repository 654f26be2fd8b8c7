"""How much of what teams hold is in use, over the API."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from accounts.models import Team
from allocations.models import Allocation
from fleet.models import Flavor
from insights.utilisation.gathering import DAYS, Utilisation, utilisation_of
from web.output import OutputSerializer
from web.refusals import BadInput
from web.strict import StrictSerializer, Text


class UtilisationSerializer(OutputSerializer[Utilisation]):
    """What a namespace holds of a kind of GPU, and how much of it work has used; money is USD."""

    team = TeamNameSerializer(source="tenancy.team")
    tenancy = serializers.IntegerField(source="tenancy.pk")
    namespace = serializers.CharField(source="tenancy.namespace")
    flavor = serializers.CharField(
        source="flavor.key", help_text="As cluster/name: `training/a100`."
    )
    gpus = serializers.IntegerField(help_text="Held now.")
    used_now = serializers.IntegerField(
        allow_null=True,
        help_text="Of those, reserved by work at the last look; null where nobody has looked for ten minutes.",
    )
    used_percent = serializers.DecimalField(
        source="percent",
        max_digits=4,
        decimal_places=1,
        allow_null=True,
        help_text=f"Of those, reserved by work on average over {DAYS} days; null for what is held for less than a day.",
    )
    idle_gpus = serializers.DecimalField(
        max_digits=8,
        decimal_places=1,
        allow_null=True,
        help_text=f"Used by no work on average over {DAYS} days; what came since counts for as long as it was there.",
    )
    idle_usd_per_day = serializers.DecimalField(
        max_digits=14,
        decimal_places=2,
        allow_null=True,
        help_text="What a day of those costs.",
    )
    held_since = serializers.DateTimeField(
        source="measured.since",
        allow_null=True,
        help_text=f"Without a gap, as far as {DAYS} days back.",
    )
    until = serializers.DateTimeField(help_text="When the first of it ends.")
    allocations = serializers.SerializerMethodField()

    def get_allocations(self, one: Utilisation) -> list[int]:
        """Their ids: what can be given back."""
        return [row.pk for row in one.allocations]


class UtilisationListSerializer(serializers.Serializer[Any]):
    """What is held, what costs most idle first."""

    results = UtilisationSerializer(many=True)


class UtilisationQuery(StrictSerializer):
    """Of which team, and which kind of GPU; all without it."""

    team = Text(required=False, max_length=40, help_text="The slug of a team.")
    flavor = Text(
        required=False, max_length=81, help_text="A kind of GPU, as cluster/name."
    )


class UtilisationEndpoint(Endpoint):
    """What is held of teams that one may see."""

    queryset = Allocation.objects.none()
    serializer_class = UtilisationListSerializer
    asks = {"list": UtilisationQuery}
    refuses_values = frozenset({"list"})

    @extend_schema(operation_id="utilisation_list", responses=UtilisationListSerializer)
    def list(self, request: Request) -> Response:
        """What each namespace holds of each kind of GPU, how much of it work has used, and what the rest costs."""
        rows = Allocation.objects.visible_to(self.caller)
        if slug := self.asked.get("team", ""):
            if not Team.objects.visible_to(self.caller).filter(slug=slug).exists():
                raise BadInput(
                    "You see no team of this name.", code="no_such_team", field="team"
                )
            rows = rows.filter(team__slug=slug)
        if key := self.asked.get("flavor", ""):
            rows = rows.filter(flavor=_flavor(key))
        found = utilisation_of(rows, now=timezone.now())
        return Response(UtilisationListSerializer({"results": found}).data)


def _flavor(key: str) -> Flavor:
    """The kind of GPU of a key; raises BadInput for none."""
    found = Flavor.objects.of_key(key).first()
    if found is None:
        raise BadInput(
            "There is no kind of GPU of this name.",
            code="no_such_flavor",
            field="flavor",
        )
    return found

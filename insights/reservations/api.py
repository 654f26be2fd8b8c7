"""Capacity reservations over the API, and where the portal and Azure differ about them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db.models import Max, Q, QuerySet
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from capacity.models import Orphan, Reservation
from capacity.orphans import actions as orphan_actions
from capacity.orphans.comparing import OrphanKind
from capacity.reservations import actions
from capacity.reservations.advice import Deed
from capacity.reservations.reconcile import Names
from capacity.reservations.states import State
from insights.reservations.gathering import (
    advice_of,
    costs_by_day,
    days_of,
    grants_of,
    orphan_prices,
    summed,
    usd_per_hour,
    waiting,
)
from insights.reservations.presenting import Standing, orphan_standing, standing
from web.output import OutputSerializer
from web.strict import Choice, PageQuery, Text

CENT = Decimal("0.01")
STATES = [(each.value, each.words) for each in State]


class AzureNamesSerializer(serializers.Serializer[Any]):
    """What a reservation is called in Azure."""

    subscription = serializers.CharField()
    resource_group = serializers.CharField()
    group = serializers.CharField()
    reservation = serializers.CharField()
    pool = serializers.CharField(
        help_text="The node pool that is made of it; empty for none."
    )


class ReservationSerializer(OutputSerializer[Reservation]):
    """Machines of a size that a team keeps in a region; money is USD."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    state = serializers.ChoiceField(choices=STATES)
    word = serializers.SerializerMethodField(
        help_text="How it stands, as its page says it."
    )
    sentence = serializers.SerializerMethodField()
    is_parked = serializers.SerializerMethodField(
        help_text="Whether it is tried no more until somebody has it tried again."
    )
    vm_size = serializers.CharField()
    gpus_each = serializers.IntegerField()
    region = serializers.CharField()
    zone = serializers.CharField(help_text="Empty for one that is of no zone.")
    cluster = serializers.CharField(
        source="flavor.cluster.name",
        default=None,
        allow_null=True,
        help_text="Where nodes are made of it.",
    )
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    machines = serializers.IntegerField(
        help_text="How many are wanted: all that was granted of it."
    )
    held = serializers.IntegerField(help_text="How many Azure holds.")
    used = serializers.IntegerField()
    idle = serializers.IntegerField()
    over = serializers.IntegerField(
        help_text="How many run beyond what is reserved, without a guarantee."
    )
    usd_per_hour_each = serializers.DecimalField(max_digits=12, decimal_places=4)
    until = serializers.DateTimeField(
        allow_null=True,
        help_text="Until when the last grant of it is paid; null for none.",
    )
    created_at = serializers.DateTimeField()
    reserved_at = serializers.DateTimeField(allow_null=True)
    released_at = serializers.DateTimeField(allow_null=True)
    seen_at = serializers.DateTimeField(
        allow_null=True, help_text="When Azure was read last."
    )
    azure = serializers.SerializerMethodField()

    def get_word(self, row: Reservation) -> str:
        """In a word."""
        return self._standing(row).word

    def get_sentence(self, row: Reservation) -> str:
        """In a sentence."""
        return self._standing(row).sentence

    def get_is_parked(self, row: Reservation) -> bool:
        """Whether it is tried no more."""
        return row.parked_at is not None

    @extend_schema_field(AzureNamesSerializer)
    def get_azure(self, row: Reservation) -> Mapping[str, str]:
        """What it is called in Azure."""
        names = Names.of(row)
        return {
            "subscription": row.subscription,
            "resource_group": row.resource_group,
            "group": names.group,
            "reservation": names.reservation,
            "pool": names.pool if row.flavor_id else "",
        }

    def _standing(self, row: Reservation) -> Standing:
        waits = row.is_refused and row.pk in self.context["waiting"]
        return standing(row, timezone.now(), grant_waits=waits)


class ReservationDaySerializer(serializers.Serializer[Any]):
    """One day (UTC): machines on average of all looks at it, and what it came to; `is_read` is false without a look."""

    day = serializers.DateField()
    reserved = serializers.FloatField()
    used = serializers.FloatField()
    most = serializers.IntegerField(help_text="The most that ran at once.")
    usd = serializers.DecimalField(
        max_digits=14, decimal_places=2, rounding="ROUND_HALF_UP"
    )
    idle_usd = serializers.DecimalField(
        max_digits=14, decimal_places=2, rounding="ROUND_HALF_UP"
    )
    is_read = serializers.BooleanField()


class AdviceSerializer(serializers.Serializer[Any]):
    """What the use of the last fortnight suggests; `machines` is how many to release or to add."""

    deed = serializers.ChoiceField(choices=[each.value for each in Deed])
    machines = serializers.IntegerField()
    sentence = serializers.CharField()


class CostsSerializer(serializers.Serializer[Any]):
    """What it has cost so far, and what of that was for idle machines."""

    usd = serializers.DecimalField(
        max_digits=14, decimal_places=2, rounding="ROUND_HALF_UP"
    )
    idle_usd = serializers.DecimalField(
        max_digits=14, decimal_places=2, rounding="ROUND_HALF_UP"
    )


class GrantSerializer(OutputSerializer[Any]):
    """An allocation of some of its machines."""

    id = serializers.IntegerField()
    reference = serializers.CharField(
        source="hold.reference", help_text="What it was granted for: `request-17`."
    )
    machines = serializers.IntegerField(source="count")
    until = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ReservationWholeSerializer(ReservationSerializer):
    """A reservation with its days, what it cost, what its use suggests, and what it consists of."""

    costs = CostsSerializer()
    days = ReservationDaySerializer(many=True)
    advice = AdviceSerializer(
        allow_null=True, help_text="Null for one that is not reserved now."
    )
    grants = GrantSerializer(many=True)


class ReservationQuery(PageQuery):
    """Which reservations to list."""

    team = Text(required=False, max_length=40)
    state = Choice(choices=[each.value for each in State], required=False)


class ReservationEndpoint(mixins.ListModelMixin, Endpoint):
    """Capacity reservations of the caller's teams."""

    queryset = Reservation.objects.none()
    serializer_class = ReservationSerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": ReservationQuery}
    keyed = frozenset({"retry"})
    bodyless = frozenset({"retry"})

    def get_queryset(self) -> QuerySet[Reservation]:
        """Those of one's own teams; all of them for leads and auditors."""
        rows = Reservation.objects.visible_to(self.request.user).select_related(
            "team", "flavor__cluster"
        )
        return rows.annotate(
            until=Max("allocations__until", filter=Q(allocations__ended_at=None))
        )

    def get_serializer_context(self) -> dict[str, Any]:
        """With those of which something is granted that is not there; asked for where one is refused, and then once."""
        return {
            **super().get_serializer_context(),
            "waiting": SimpleLazyObject(waiting),
        }

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one team, in one state, if that was asked for."""
        asked = getattr(self, "asked", {})
        if "team" in asked:
            queryset = queryset.filter(team__slug=asked["team"])
        if "state" in asked:
            queryset = queryset.filter(state=asked["state"])
        return queryset

    @extend_schema(responses=ReservationWholeSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """One reservation with its use, its cost, and what its use suggests."""
        row, now = self.get_object(), timezone.now()
        days = days_of([row])[row.pk]
        by_day, suggested = costs_by_day(row, days, now), advice_of(row, days)
        shown = self.shown(row, ReservationSerializer)
        shown["costs"] = CostsSerializer(summed(by_day)).data
        shown["days"] = ReservationDaySerializer(by_day, many=True).data
        shown["advice"] = (
            None if suggested is None else AdviceSerializer(suggested).data
        )
        shown["grants"] = GrantSerializer(grants_of(row), many=True).data
        return Response(shown)

    @extend_schema(request=None, responses=ReservationSerializer)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: int) -> Response:
        """Have a worker try it now, parked or not (platform leads)."""
        row = self.get_object()
        return answer_once(request, lambda: self._retry(row.pk))

    def _retry(self, number: int) -> Answer:
        actions.try_again(number, by=self.caller, now=timezone.now())
        return Answer(self.shown(self.get_object(), ReservationSerializer))


class OrphanSerializer(OutputSerializer[Orphan]):
    """A reservation about which the portal and Azure differ; Azure holds `machines`, the records have `expected`."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(
        choices=[(each.value, each.words) for each in OrphanKind]
    )
    sentence = serializers.SerializerMethodField()
    subscription = serializers.CharField(source="subscription_id")
    resource_group = serializers.CharField()
    group = serializers.CharField()
    name = serializers.CharField(help_text="Empty for a group without reservations.")
    region = serializers.CharField()
    zone = serializers.CharField()
    vm_size = serializers.CharField()
    machines = serializers.IntegerField()
    used = serializers.IntegerField()
    associated = serializers.IntegerField(
        help_text="Machines that keep it from being released, deallocated ones too."
    )
    tagged_team = serializers.CharField(
        help_text="The team that its tags name, which nobody vouches for."
    )
    reservation = serializers.IntegerField(
        source="reservation_id",
        allow_null=True,
        help_text="The reservation of the records.",
    )
    expected = serializers.IntegerField(allow_null=True)
    usd_per_hour = serializers.SerializerMethodField(
        help_text="At the price of today; null where the price is not known."
    )
    first_seen_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField()
    release_asked_at = serializers.DateTimeField(allow_null=True)

    def get_sentence(self, row: Orphan) -> str:
        """In a sentence."""
        return orphan_standing(row).sentence

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_usd_per_hour(self, row: Orphan) -> str | None:
        """USD an hour."""
        found = usd_per_hour(row, self.context["prices"])
        return None if found is None else str(found.quantize(CENT))


class OrphanQuery(PageQuery):
    """Which differences to list."""

    kind = Choice(choices=[each.value for each in OrphanKind], required=False)


class OrphanEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """Where the portal and Azure differ about reservations, for platform leads."""

    queryset = Orphan.objects.none()
    serializer_class = OrphanSerializer
    lookup_value_converter = "int"
    ordering = "id"
    asks = {"list": OrphanQuery}
    keyed = frozenset({"release"})
    bodyless = frozenset({"release"})

    def get_queryset(self) -> QuerySet[Orphan]:
        """All of them; raises NoRight for others than platform leads."""
        orphan_actions.require_lead(self.caller)
        return Orphan.objects.all()

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one kind, if that was asked for."""
        kind = getattr(self, "asked", {}).get("kind")
        return queryset.filter(kind=kind) if kind else queryset

    def get_serializer_context(self) -> dict[str, Any]:
        """With the prices of today."""
        return {
            **super().get_serializer_context(),
            "prices": SimpleLazyObject(orphan_prices),
        }

    @extend_schema(request=None, responses=OrphanSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: int) -> Response:
        """Have a worker release one that carries the portal's mark, has no record here, and is used by no machine."""
        row = self.get_object()
        return answer_once(request, lambda: self._release(row.pk))

    def _release(self, number: int) -> Answer:
        row = orphan_actions.ask_release(number, by=self.caller, now=timezone.now())
        return Answer(self.shown(row, OrphanSerializer))

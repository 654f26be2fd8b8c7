"""Azure's list prices with their history, over the API."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from capacity.models import DoubtedPrice, MachinePrice, PastPrice
from capacity.prices import actions
from insights.prices.gathering import Ours, OursFrom, kinds_by_price, our_history
from web.strict import Moment, PageQuery, StrictSerializer, Text


def _usd(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=12, decimal_places=6, allow_null=True, **options
    )


class PriceSerializer(serializers.Serializer[MachinePrice]):
    """What a machine costs in a region with Linux by Azure's list, in USD an hour; null for not sold so."""

    id = serializers.IntegerField()
    region = serializers.CharField()
    size = serializers.CharField()
    gpus = serializers.IntegerField(
        allow_null=True, help_text="Of one machine; null where that is not known."
    )
    on_demand = _usd()
    spot = _usd()
    one_year = _usd(help_text="An hour of a reservation of one year.")
    three_years = _usd(help_text="An hour of a reservation of three years.")
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="From when the price on demand holds, as Azure says it.",
    )
    seen_at = serializers.DateTimeField(help_text="When the list was read last.")


class PriceDoubtSerializer(serializers.Serializer[DoubtedPrice]):
    """What the list says since a moment that does not count before somebody confirms it; null where it is believed."""

    at = serializers.DateTimeField()
    on_demand = _usd()
    spot = _usd()
    one_year = _usd()
    three_years = _usd()


class ConfirmPriceSerializer(StrictSerializer):
    """Which doubtful prices were seen."""

    doubted_at = Moment(help_text="The `at` of the doubt.")


class PastPriceSerializer(serializers.Serializer[PastPrice]):
    """What it cost from a reading on."""

    at = serializers.DateTimeField()
    on_demand = _usd()
    spot = _usd()
    one_year = _usd()
    three_years = _usd()


class OursSerializer(serializers.Serializer[Ours]):
    """A kind of GPU on this machine at this installation's price."""

    flavor = serializers.CharField(source="flavor.key")
    price_per_gpu_hour = serializers.DecimalField(
        source="flavor.price_per_gpu_hour", max_digits=9, decimal_places=4
    )
    follows_list = serializers.BooleanField(source="flavor.follows_list")
    list_price_per_gpu_hour = serializers.DecimalField(
        source="listed.of_its_kind",
        max_digits=12,
        decimal_places=4,
        allow_null=True,
        help_text="For how this kind is paid: on demand, as spot, or reserved for a year.",
    )
    percent = serializers.IntegerField(
        allow_null=True,
        help_text="How far the price is above the list's; below is negative.",
    )


class OursFromSerializer(serializers.Serializer[OursFrom]):
    """What a GPU-hour of a kind on this machine has cost teams from a moment on."""

    at = serializers.DateTimeField()
    flavor = serializers.CharField(source="flavor.key")
    price_per_gpu_hour = serializers.DecimalField(
        source="usd", max_digits=12, decimal_places=4
    )
    is_list_price = serializers.BooleanField(
        help_text="False where platform leads set it."
    )


class PriceHistorySerializer(PriceSerializer):
    """A price with its changes, newest first, and the kinds of GPU that it is behind."""

    doubt = PriceDoubtSerializer(
        source="doubts",
        allow_null=True,
        help_text="Prices that moved too far to be believed at once.",
    )
    kinds = OursSerializer(many=True)
    history = PastPriceSerializer(many=True)
    our_history = OursFromSerializer(
        many=True, help_text="What teams were charged, newest first."
    )


class PriceQuery(PageQuery):
    """Which prices to list."""

    region = Text(required=False, max_length=40)


class PriceEndpoint(mixins.ListModelMixin, Endpoint):
    """Azure's list prices of the fleet's regions; none where the portal is not connected to Azure."""

    queryset = MachinePrice.objects.with_gpus()
    serializer_class = PriceSerializer
    lookup_value_converter = "int"
    ordering = "id"
    asks = {"list": PriceQuery}
    keyed = frozenset({"confirm"})

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one region, if one is named."""
        region = self.asked.get("region") if hasattr(self, "asked") else None
        return queryset.filter(region=region) if region is not None else queryset

    @extend_schema(responses=PriceHistorySerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """One price with its history."""
        return Response(self._whole(self.get_object()))

    @extend_schema(request=ConfirmPriceSerializer, responses=PriceHistorySerializer)
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, pk: int) -> Response:
        """Believe the prices of the list that moved so far (platform leads)."""
        seen, row = self.body(ConfirmPriceSerializer)["doubted_at"], self.get_object()

        def act() -> Answer:
            actions.confirm(row.pk, doubted_at=seen, by=self.caller, now=timezone.now())
            return Answer(self._whole(self.get_object()))

        return answer_once(request, act)

    def _whole(self, row: MachinePrice) -> dict[str, Any]:
        shown = self.shown(row, PriceSerializer)
        doubt = row.doubts
        shown["doubt"] = (
            None if doubt is None else self.shown(doubt, PriceDoubtSerializer)
        )
        kinds = kinds_by_price([row]).get(row.pk, [])
        shown["kinds"] = [self.shown(one, OursSerializer) for one in kinds]
        shown["our_history"] = [
            self.shown(one, OursFromSerializer) for one in our_history(kinds)
        ]
        shown["history"] = [
            self.shown(one, PastPriceSerializer) for one in row.history.all()
        ]
        return shown

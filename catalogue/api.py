"""The catalogue over the API: what may be asked for, with what, at which price, and changing that."""

from collections.abc import Sequence
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.models import Team
from accounts.roles import Permission
from allocations.schedule import WhenOver
from capacity.models import MachinePrice
from catalogue import actions as offering_actions
from catalogue.choices import choices_of
from catalogue.models import OfferingSetting, follows, is_by_person, setting_of
from catalogue.offering import Gate
from catalogue.offerings import OFFERINGS
from catalogue.pricing import by_region, listed_prices, lowest
from web.strict import Boolean, Choice, Integer, Money, StrictSerializer, Text

GATES = [(gate.value, gate.words) for gate in Gate]
ENDS = [(each.value, each.words) for each in WhenOver]
NO_END = {"grace_hours": None, "when_over": None, "drain_hours": None}


class OfferingSerializer(serializers.Serializer[Any]):
    """Something that may be asked for. `spec` is the JSON Schema of what a request's `spec` takes."""

    key = serializers.CharField()
    name = serializers.CharField()
    line = serializers.CharField()
    enabled = serializers.BooleanField()
    gate = serializers.ChoiceField(choices=GATES, help_text="Who decides about it.")
    is_self_service = serializers.BooleanField(
        help_text="Nobody has to do anything: the policy may approve it, and the portal makes it by itself."
    )
    position = serializers.IntegerField(help_text="Its place in the catalogue, from 1.")
    unit = serializers.CharField()
    counted = serializers.CharField(
        help_text="The field of the spec that says how many; empty when it is one."
    )
    prices = serializers.DictField(
        child=serializers.CharField(),
        help_text="USD by what may be chosen, where it is cheapest.",
    )
    prices_by_region = serializers.DictField(
        child=serializers.DictField(child=serializers.CharField()),
        help_text="USD by region and what may be chosen, where Azure's list price counts; else empty.",
    )
    priced_per = serializers.CharField(
        help_text="What a price is of; empty where a kind of GPU has the price."
    )
    reversible_minutes = serializers.IntegerField(allow_null=True)
    grace_hours = serializers.IntegerField(
        allow_null=True,
        help_text="How long its GPUs are kept after the end, without charge; null without GPUs.",
    )
    when_over = serializers.ChoiceField(
        choices=ENDS,
        allow_null=True,
        help_text="What becomes of work that still runs then.",
    )
    drain_hours = serializers.IntegerField(
        allow_null=True, help_text="For `drain`: hours until it is stopped."
    )
    carried_out_by_a_person = serializers.BooleanField()
    after_approval = serializers.ListField(child=serializers.CharField())
    spec = serializers.DictField()


class OfferingsSerializer(serializers.Serializer[Any]):
    """The whole catalogue in its order."""

    results = OfferingSerializer(many=True)


class PricesField(serializers.DictField):
    """USD by what may be chosen; null takes the choice away."""

    child = Money(decimal_places=4, allow_null=True)


class OfferingChangeSerializer(StrictSerializer):
    """What may be changed about an offering; what is left out stays."""

    enabled = Boolean(required=False)
    gate = Choice(choices=GATES, required=False)
    position = Integer(required=False, help_text="Its place in the catalogue, from 1.")
    prices = PricesField(
        required=False, help_text="USD as text; null takes the choice away."
    )
    grace_hours = Integer(
        required=False, help_text="0 to 168; for what is granted from now on."
    )
    when_over = Choice(choices=ENDS, required=False)
    drain_hours = Integer(required=False, help_text="0 to 720.")


class ChoiceSerializer(serializers.Serializer[Any]):
    """One line of a drop-down."""

    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    disabled = serializers.BooleanField()
    reason = serializers.CharField()


class FieldChoicesSerializer(serializers.Serializer[Any]):
    """The lines of every field of a spec that is chosen from a list, by field."""

    choices = serializers.DictField(child=ChoiceSerializer(many=True))


class OptionsQuery(StrictSerializer):
    """For whom."""

    team = Text(max_length=40)


class OfferingEndpoint(Endpoint):
    """The service catalogue."""

    serializer_class = OfferingSerializer
    lookup_field = "key"
    lookup_value_converter = "slug"
    asks = {"options_of": OptionsQuery}

    @extend_schema(operation_id="offerings_list", responses=OfferingsSerializer)
    def list(self, call: Call) -> Response:
        """Everything that may be asked for, in its order; what is switched off is told to platform leads only."""
        rows = [row for row in offering_actions.settings_in_order() if self._sees(row)]
        listed = listed_prices()
        return Response(
            {
                "results": [
                    shown(row, place, listed) for place, row in enumerate(rows, 1)
                ]
            }
        )

    @extend_schema(responses=OfferingSerializer)
    def retrieve(self, call: Call, key: str) -> Response:
        """One offering."""
        return Response(self._shown(key))

    @extend_schema(request=OfferingChangeSerializer, responses=OfferingSerializer)
    def partial_update(self, call: Call, key: str) -> Response:
        """Switch it on or off, set its gate, its place and its prices (platform leads)."""
        self._known(key)
        said = self.body(OfferingChangeSerializer)
        offering_actions.change(key, by=self.caller, **said)
        return Response(self._shown(key))

    @extend_schema(operation_id="offerings_options", responses=FieldChoicesSerializer)
    def options_of(self, call: Call, key: str) -> Response:
        """What a team may choose in the spec, field by field, and why not the rest."""
        self._known(key)
        team = get_object_or_404(
            Team.objects.visible_to(self.request.user), slug=self.asked["team"]
        )
        offering = OFFERINGS[key]
        found = choices_of(offering, setting_of(offering), team=team)
        lines = {
            name: [
                {
                    "value": c.value,
                    "label": c.label,
                    "disabled": bool(c.reason),
                    "reason": c.reason,
                }
                for c in each
            ]
            for name, each in found.items()
        }
        return Response({"choices": lines})

    def _sees(self, row: OfferingSetting) -> bool:
        return row.enabled or self.caller.may(Permission.MANAGE_CATALOGUE)

    def _known(self, key: str) -> None:
        if key not in OFFERINGS or not self._sees(setting_of(OFFERINGS[key])):
            raise NotFound

    def _shown(self, key: str) -> dict[str, Any]:
        rows = offering_actions.settings_in_order()
        found = next(
            (
                (row, place)
                for place, row in enumerate(rows, 1)
                if row.key == key and self._sees(row)
            ),
            None,
        )
        if found is None:
            raise NotFound
        return shown(*found, listed_prices())


def shown(
    row: OfferingSetting, place: int, listed: Sequence[MachinePrice]
) -> dict[str, Any]:
    """An offering as the API tells it."""
    offering = OFFERINGS[row.key]
    prices = lowest(offering, row, listed)
    regions = by_region(offering, row, listed)
    return {
        "key": row.key,
        "name": offering.name,
        "line": offering.line,
        "enabled": row.enabled,
        "gate": row.gate,
        "position": place,
        "unit": offering.unit,
        "counted": offering.spec.counted,
        "prices": {name: str(price.usd) for name, price in prices.items()},
        "prices_by_region": {
            region: {name: str(usd) for name, usd in found.items()}
            for region, found in regions.items()
        },
        "priced_per": offering.priced,
        "reversible_minutes": offering.reversible_minutes,
        **(offering_actions.ends_of(row) if offering.on_cluster else NO_END),
        "is_self_service": row.is_self_service,
        "carried_out_by_a_person": is_by_person(offering),
        "after_approval": list(follows(offering)),
        "spec": offering.spec.model_json_schema(),
    }

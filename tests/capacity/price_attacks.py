"""An attack on every constraint of prices; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from capacity.models import DoubtedPrice, MachinePrice, PastPrice, PriceRegion
from tests.scene import NOW

Attack = Callable[[Any], object]
USD, NOTHING = Decimal("3.67"), Decimal(0)


def region(**fields: Any) -> PriceRegion:
    """A region whose prices were not read yet."""
    return PriceRegion.objects.create(
        **{"name": "eastus", "next_read_at": NOW} | fields
    )


def price(**fields: Any) -> MachinePrice:
    """What a size costs on demand."""
    usual = {"region": "eastus", "size": "NC24", "on_demand": USD, "seen_at": NOW}
    return MachinePrice.objects.create(**usual | fields)


def doubted(of: MachinePrice | None = None, **fields: Any) -> DoubtedPrice:
    """Another price of it, which nobody believes yet."""
    return DoubtedPrice.objects.create(
        **{"price": of or price(), "at": NOW, "on_demand": USD} | fields
    )


def past(of: MachinePrice | None = None, **fields: Any) -> PastPrice:
    """What it cost before."""
    return PastPrice.objects.create(
        **{"price": of or price(), "at": NOW, "on_demand": USD} | fields
    )


def twice(make: Callable[[MachinePrice], object]) -> None:
    """The same of one price two times."""
    of = price()
    make(of)
    make(of)


NAMED: Mapping[str, Attack] = {
    "prices_are_not_read_for_a_reason": lambda w: region(failures=1),
    "a_size_has_one_price_in_a_region": lambda w: [price(), price()],
    "a_price_is_known_in_some_way": lambda w: price(on_demand=None),
    "a_price_is_above_zero": lambda w: price(spot=NOTHING),
    "a_doubted_price_is_known_in_some_way": lambda w: doubted(on_demand=None),
    "a_doubted_price_is_above_zero": lambda w: doubted(one_year=NOTHING),
    "a_price_changes_once_at_a_moment": lambda w: twice(past),
    "a_past_price_is_known_in_some_way": lambda w: past(on_demand=None),
    "a_past_price_is_above_zero": lambda w: past(three_years=NOTHING),
}
UNIQUE: Mapping[str, Attack] = {
    "capacity.PriceRegion.name": lambda w: [region(), region()],
    "capacity.DoubtedPrice.price": lambda w: twice(doubted),
}
ALSO: Mapping[str, Attack] = {
    "prices that are read and say why they are not": lambda w: region(
        message="No answer."
    ),
}

"""At which price something is sold, and of which day that price is.

What this installation set itself comes first, then Azure's list price of the region as it was read last, then the price
that comes with the product.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from capacity.models import MachinePrice
from capacity.prices.listed import KEPT
from capacity.prices.shipped import SHIPPED_ON
from catalogue.models import OfferingSetting, prices_of
from catalogue.offering import Offering, Size, Spec
from fleet.models import Flavor
from ui.amounts import dated

# The field of a spec that says which of an offering's prices counts.
PRICED_BY = ("vm_size", "model", "access")


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD of what may be chosen, and which price of which day that is: "Azure's list price of 24 Nov 2026"."""

    usd: Decimal
    words: str


@dataclass(frozen=True, kw_only=True)
class Lowest:
    """USD of what may be chosen where it is cheapest, and whether it costs more elsewhere."""

    usd: Decimal
    differs: bool = False


def listed_prices() -> list[MachinePrice]:
    """Azure's list prices on demand of every region; one query."""
    return list(MachinePrice.objects.exclude(on_demand=None))


def prices_in(
    offering: Offering, setting: OfferingSetting, region: str
) -> dict[str, Price]:
    """What may be chosen in a region at which price; one query for what Azure's list has, none for the rest."""
    listed: Mapping[str, MachinePrice] = {}
    if offering.is_listed:
        rows = MachinePrice.objects.filter(region=region).exclude(on_demand=None)
        listed = {one.size.casefold(): one for one in rows}
    return {
        name: _price(offering, setting, name, usd, listed.get(name.casefold()))
        for name, usd in prices_of(offering, setting).items()
    }


def lowest(
    offering: Offering, setting: OfferingSetting, listed: Iterable[MachinePrice]
) -> dict[str, Lowest]:
    """What may be chosen at the price of the cheapest region that the list is read for."""
    found: dict[str, set[Decimal]] = {}
    for prices in by_region(offering, setting, listed).values():
        for name, usd in prices.items():
            found.setdefault(name, set()).add(usd)
    return {
        name: Lowest(
            usd=min(found.get(name, {usd})), differs=len(found.get(name, ())) > 1
        )
        for name, usd in prices_of(offering, setting).items()
    }


def by_region(
    offering: Offering, setting: OfferingSetting, listed: Iterable[MachinePrice]
) -> dict[str, dict[str, Decimal]]:
    """USD by region and by what may be chosen, where Azure's list price counts."""
    names = {
        name.casefold(): name
        for name in prices_of(offering, setting)
        if offering.is_listed and name not in setting.prices
    }
    found: dict[str, dict[str, Decimal]] = {}
    for row in listed:
        name = names.get(row.size.casefold())
        if name is not None and row.on_demand is not None:
            found.setdefault(row.region, {})[name] = row.on_demand.quantize(KEPT)
    return found


def sized(
    offering: Offering, spec: Spec, flavor: Flavor | None, setting: OfferingSetting
) -> Size:
    """How much a spec is at the price of now, which it names; raises KeyError naming what has no price."""
    prices = prices_in(offering, setting, str(getattr(spec, "region", "")))
    size = spec.size(
        price=flavor.price_per_gpu_hour if flavor else Decimal(0),
        prices={name: one.usd for name, one in prices.items()},
    )
    if flavor is not None:
        return replace(size, priced=flavor.price_words)
    chosen = prices.get(
        next(
            (str(getattr(spec, name)) for name in PRICED_BY if hasattr(spec, name)), ""
        )
    )
    return size if chosen is None else replace(size, priced=chosen.words)


def _price(
    offering: Offering,
    setting: OfferingSetting,
    name: str,
    usd: Decimal,
    row: MachinePrice | None,
) -> Price:
    if name in setting.prices:
        since = setting.priced_on.get(name)
        on = f" on {dated(date.fromisoformat(since))}" if since else ""
        return Price(usd=usd, words=f"set by the platform team{on}")
    if row is not None and row.on_demand is not None:
        return Price(
            usd=row.on_demand.quantize(KEPT),
            words=f"Azure's list price of {dated(row.seen_at)}",
        )
    whose = "Azure's list" if offering.is_listed else "the catalogue's"
    return Price(usd=usd, words=f"{whose} price of {SHIPPED_ON:%B %Y}")

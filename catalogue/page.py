"""The catalogue as its page shows it: each offering as a card with its gate, its price and what follows."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from capacity.models import MachinePrice
from catalogue.actions import settings_in_order
from catalogue.choices import WORDS
from catalogue.models import OfferingSetting, follows, is_by_person
from catalogue.offering import Gate, Offering
from catalogue.offerings import OFFERINGS
from catalogue.pricing import listed_prices, lowest
from fleet.models import Flavor
from ui.amounts import rate

MOST_PRICES_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Card:
    """An offering on the page of the catalogue."""

    key: str
    offering: Offering
    enabled: bool
    is_self_service: bool
    decided_by_policy: bool
    decides: str
    makes: str
    prices: Sequence[str]
    after: Sequence[str]
    undone: str
    ask: str
    href: str
    is_first: bool
    is_last: bool


def cards(user: User) -> list[Card]:
    """The offerings in their order; what is switched off is there for who manages the catalogue only."""
    manages = user.may(Permission.MANAGE_CATALOGUE)
    flavors = list(Flavor.objects.offered_to(None).order_by("price_per_gpu_hour"))
    listed = listed_prices()
    rows = [row for row in settings_in_order() if row.enabled or manages]
    return [
        _card(row, flavors, listed, is_first=at == 0, is_last=at == len(rows) - 1)
        for at, row in enumerate(rows)
    ]


def _card(
    row: OfferingSetting,
    flavors: list[Flavor],
    listed: list[MachinePrice],
    *,
    is_first: bool,
    is_last: bool,
) -> Card:
    offering = OFFERINGS[row.key]
    return Card(
        key=row.key,
        offering=offering,
        enabled=row.enabled,
        is_self_service=row.is_self_service,
        decided_by_policy=row.gate == Gate.SELF_SERVICE,
        decides=_capital(Gate(row.gate).words),
        makes="A platform lead" if is_by_person(offering) else "The portal, by itself",
        prices=price_lines(offering, row, flavors, listed),
        after=follows(offering),
        undone=offering.undone,
        ask=f"Ask for {kind_of(offering)}",
        href=reverse("request-new", args=[row.key]),
        is_first=is_first,
        is_last=is_last,
    )


def price_lines(
    offering: Offering,
    row: OfferingSetting,
    flavors: list[Flavor],
    listed: list[MachinePrice],
) -> list[str]:
    """What it costs, cheapest first: a few prices, and how many more there are."""
    if offering.on_cluster:
        found = [
            (
                f"{f.device}, {f.memory_gb} GB{', spot' if f.is_spot else ''}",
                rate(f.price_per_gpu_hour),
            )
            for f in flavors
        ]
        per = "GPU-hour"
    else:
        own = sorted(
            lowest(offering, row, listed).items(), key=lambda pair: pair[1].usd
        )
        found = [
            (
                WORDS.get(name, name),
                f"{'from ' if each.differs else ''}{rate(each.usd)}",
            )
            for name, each in own
        ]
        per = offering.priced
    if not found:
        return (
            ["Costs nothing by itself"]
            if not offering.prices and not offering.on_cluster
            else ["No price yet"]
        )
    lines = [f"{name}: {price} per {per}" for name, price in found[:MOST_PRICES_SHOWN]]
    more = len(found) - MOST_PRICES_SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines


def kind_of(offering: Offering) -> str:
    """An offering as the object of a verb: "GPUs", "a notebook", "an Azure OpenAI endpoint"."""
    if offering.key == "gpus":
        return "GPUs"
    name = (
        offering.name
        if offering.name.startswith("Azure")
        else f"{offering.name[0].lower()}{offering.name[1:]}"
    )
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"

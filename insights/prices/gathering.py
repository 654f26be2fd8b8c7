"""Which kinds of GPU stand on which machine, and how their prices differ from the list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from audit.models import Event
from capacity.models import MachinePrice
from capacity.prices.listed import ListPrice, list_prices
from fleet.models import Cluster, Flavor

MOST_CHANGES = 100


@dataclass(frozen=True, kw_only=True)
class Ours:
    """A kind of GPU at this installation's price, beside the list's for one of its GPUs."""

    flavor: Flavor
    listed: ListPrice

    @property
    def percent(self) -> int | None:
        """How far the price lies above the list's (below is negative); None where the list has none of its kind."""
        usual = self.listed.of_its_kind
        return (
            None
            if not usual
            else round(100 * (self.flavor.price_per_gpu_hour - usual) / usual)
        )

    @property
    def words(self) -> str:
        """The same in words: "12 % below the list"."""
        percent = self.percent
        if percent is None:
            return "not in the list as it is paid"
        if self.flavor.is_list_price:
            return "follows the list"
        if not percent:
            return "as in the list"
        return f"{abs(percent):,} % {'above' if percent > 0 else 'below'} the list"


@dataclass(frozen=True, kw_only=True)
class OursFrom:
    """What a GPU-hour of a kind has cost teams from a moment on, and whether that was the list's price."""

    at: datetime
    flavor: Flavor
    usd: Decimal
    is_list_price: bool

    @property
    def by(self) -> str:
        """Who set it, as people read it."""
        return "Azure's list" if self.is_list_price else "the platform team"


def our_history(kinds: Sequence[Ours]) -> list[OursFrom]:
    """What kinds of GPU have cost teams, the newest change first, as the audit log tells it; one query."""
    flavors = {str(one.flavor.pk): one.flavor for one in kinds}
    rows = Event.objects.filter(
        subject_type="flavor",
        subject_id__in=flavors,
        details__has_key="price_per_gpu_hour",
    ).exclude(outcome=Event.Outcome.REFUSED)
    return [
        OursFrom(
            at=one.at,
            flavor=flavors[one.subject_id],
            usd=Decimal(one.details["price_per_gpu_hour"]),
            is_list_price="priced_by" in one.details,
        )
        for one in rows.order_by("-seq")[:MOST_CHANGES]
    ]


def kinds_by_price(prices: Sequence[MachinePrice]) -> dict[int, list[Ours]]:
    """The kinds of GPU of clusters looked after, by the price of their machine, of these prices; two queries."""
    regions = {one.region for one in prices}
    clusters = Cluster.objects.looked_after().filter(region__in=regions)
    flavors = Flavor.objects.filter(cluster__in=clusters)
    flavors = flavors.exclude(cluster__azure_id="").order_by("cluster__name", "name")
    found: dict[int, list[Ours]] = {}
    for flavor, listed in list_prices(
        list(flavors.select_related("cluster")), prices
    ).items():
        found.setdefault(listed.price_id, []).append(Ours(flavor=flavor, listed=listed))
    return found


def per_gpu(usd: Decimal | None, gpus: int | None) -> Decimal | None:
    """USD of one of a machine's GPUs and hour."""
    return None if usd is None or not gpus else usd / gpus

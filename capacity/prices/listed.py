"""Azure's list price behind a kind of GPU, and the list of a region."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from capacity.models import MachinePrice, NodePool
from capacity.subscriptions.pools import pools_of
from fleet.models import Flavor

# As prices of kinds of GPU are kept.
KEPT = Decimal("0.0001")
OF_KIND: Mapping[str, str] = {
    Flavor.Capacity.ON_DEMAND: "on_demand",
    Flavor.Capacity.SPOT: "spot",
    # Azure sells reserved machines for one year or three; the shorter one is what anybody can have.
    Flavor.Capacity.RESERVED: "one_year",
}


@dataclass(frozen=True, kw_only=True)
class ListPrice:
    """What a GPU of a kind costs an hour by Azure's list, in USD by how its machine is paid; None for not sold so."""

    price_id: int
    size: str
    region: str
    on_demand: Decimal | None
    spot: Decimal | None
    one_year: Decimal | None
    three_years: Decimal | None
    # The price for how this kind is paid.
    of_its_kind: Decimal | None
    seen_at: datetime


def list_prices(
    flavors: Sequence[Flavor], prices: Sequence[MachinePrice] | None = None
) -> dict[Flavor, ListPrice]:
    """The list price of each kind of GPU whose machines are known; two queries, one where the prices are given.

    `flavors` come with their clusters. Of several pools of one kind the first one's machine counts.
    """
    regions = {one.cluster.region for one in flavors if one.cluster.azure_id}
    if not regions:
        return {}
    pools: dict[int, list[NodePool]] = {}
    for pool in NodePool.objects.filter(
        cluster__in={one.cluster_id for one in flavors}
    ):
        pools.setdefault(pool.cluster_id, []).append(pool)
    known = by_size(
        MachinePrice.objects.filter(region__in=regions) if prices is None else prices
    )
    found = {}
    for flavor in flavors:
        mine = pools_of(flavor, pools.get(flavor.cluster_id, ()))
        row = (
            known.get((flavor.cluster.region, mine[0].vm_size.casefold()))
            if mine
            else None
        )
        if row is not None:
            found[flavor] = list_price(flavor, row)
    return found


def by_size(rows: Iterable[MachinePrice]) -> dict[tuple[str, str], MachinePrice]:
    """Prices by region and size, in small letters."""
    return {(one.region, one.size.casefold()): one for one in rows}


def list_price(flavor: Flavor, row: MachinePrice) -> ListPrice:
    """The price of a machine by the GPUs that its nodes count: slices of a GPU (MIG) are as many as they say."""
    each = {
        way: None
        if usd is None
        else (usd / flavor.gpus_per_node).quantize(KEPT, ROUND_HALF_UP)
        for way, usd in row.by_way.items()
    }
    return ListPrice(
        price_id=row.pk,
        size=row.size,
        region=row.region,
        seen_at=row.seen_at,
        of_its_kind=each[OF_KIND[flavor.capacity_type]],
        **each,
    )

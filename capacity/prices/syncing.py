"""Reading Azure's price list once a day, region by region, and having kinds of GPU follow it."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from capacity.connection import is_connected, retail_prices
from capacity.models import NodePool, Reservation
from capacity.prices import actions
from capacity.prices.listed import list_prices
from capacity.prices.models import PriceRegion
from capacity.prices.shipped import VM_PRICES
from connectors.errors import ConnectorError, TemporaryError
from fleet.flavors.actions import take_list_price
from fleet.models import Cluster, Flavor
from reconciling.backoff import Backoff

log = structlog.get_logger(__name__)
READ_EVERY, READING = timedelta(days=1), timedelta(minutes=10)
PAUSES = Backoff(timedelta(minutes=1), timedelta(hours=2))
Clock = Callable[[], datetime]


def keep_known(*, now: datetime) -> None:
    """Read the prices of the regions that the fleet's clusters and reservations are in; of none without Azure."""
    actions.keep_regions(_regions() if is_connected() else (), now=now)


def read(region_id: int, *, now: Clock) -> None:
    """Read one region's prices and keep them; nothing while another worker does, or before its time."""
    at = now()
    if (
        not PriceRegion.objects.due(at)
        .filter(pk=region_id)
        .update(next_read_at=at + READING)
    ):
        return
    region = PriceRegion.objects.get(pk=region_id)
    try:
        found = retail_prices().prices(region.name, _sizes(region.name))
    except ConnectorError as error:
        wait = error.retry_after if isinstance(error, TemporaryError) else None
        again_at = now() + PAUSES.wait(region.failures + 1, retry_after=wait)
        actions.note_failure(
            region.name, message=error.message, now=now(), again_at=again_at
        )
        log.warning("prices_not_read", region=region.name, problem=error.message)
    else:
        actions.keep(region.name, found, now=now(), again_at=now() + READ_EVERY)


def follow() -> None:
    """Have every kind of GPU that follows the list cost what its machine costs there, if that is known."""
    rows = Flavor.objects.filter(follows_list=True).select_related("cluster")
    for flavor, price in list_prices(list(rows)).items():
        now_costs = (flavor.is_list_price, flavor.priced_at, flavor.price_per_gpu_hour)
        if price.of_its_kind is not None and now_costs != (
            True,
            price.seen_at,
            price.of_its_kind,
        ):
            take_list_price(flavor.pk, usd=price.of_its_kind, of=price.seen_at)


def _regions() -> set[str]:
    clusters = Cluster.objects.looked_after().exclude(azure_id="")
    return {
        *clusters.values_list("region", flat=True),
        *Reservation.objects.in_azure().values_list("region", flat=True),
    }


def _sizes(region: str) -> set[str]:
    """The sizes of the fleet's pools and reservations in a region, and those that the catalogue sells."""
    return {
        *VM_PRICES,
        *NodePool.objects.filter(cluster__region=region).values_list(
            "vm_size", flat=True
        ),
        *Reservation.objects.in_azure()
        .filter(region=region)
        .values_list("vm_size", flat=True),
    }

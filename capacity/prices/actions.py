"""What changes about list prices: a reading is kept, and with each price that changed its past."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from capacity.prices.models import WAYS, MachinePrice, PastPrice, PriceRegion
from connectors.azure.retail_prices import Price

# So many changed prices are named in the log; the past of each has all of them.
MAX_NAMED = 10


@transaction.atomic
def keep_regions(names: Collection[str], *, now: datetime) -> None:
    """Have a row for each region whose prices are read, and for no other; what was read stays."""
    known = set(PriceRegion.objects.values_list("name", flat=True))
    new = [PriceRegion(name=name, next_read_at=now) for name in sorted(set(names) - known)]
    PriceRegion.objects.bulk_create(new, ignore_conflicts=True)
    PriceRegion.objects.exclude(name__in=names).delete()


@transaction.atomic
def keep(region: str, found: Iterable[Price], *, now: datetime, again_at: datetime) -> int:
    """Keep what Azure's list says of a region, and return how many prices changed.

    Only a change makes history, and what changed in one reading is one event of the log. A size that is not in the list
    any more keeps the price of the day it was seen last. An older reading than the one that is kept changes nothing.
    """
    row = PriceRegion.objects.select_for_update(no_key=True).filter(name=region).first()
    if row is None or (row.read_at is not None and row.read_at >= now):
        return 0
    row.read_at, row.next_read_at = now, again_at
    row.message, row.failing_since, row.failures = "", None, 0
    row.save()
    known = {one.size.casefold(): one for one in MachinePrice.objects.filter(region=region)}
    changed = [
        words
        for one in found
        if (words := _keep_one(known.get(one.size.casefold()), region, one, now)) is not None
    ]
    if changed:
        record(
            Kind.PRICES_CHANGED,
            actor=PORTAL,
            subject=("prices", region),
            region=region,
            changed=len(changed),
            prices=changed[:MAX_NAMED],
        )
    return len(changed)


@transaction.atomic
def note_failure(region: str, *, message: str, now: datetime, again_at: datetime) -> None:
    """Keep that a region's prices could not be read, and since when; those that were read stay."""
    row = PriceRegion.objects.select_for_update(no_key=True).filter(name=region).first()
    if row is None:
        return
    row.message, row.failures, row.next_read_at = message[:600], row.failures + 1, again_at
    row.failing_since = row.failing_since or now
    row.save()


def _keep_one(row: MachinePrice | None, region: str, found: Price, now: datetime) -> str | None:
    """Keep one size's prices; what changed in words, None where nothing did."""
    before = None if row is None else dict(row.by_way)
    row = row or MachinePrice(region=region, size=found.size)
    for way in WAYS:
        setattr(row, way, getattr(found, way))
    row.since, row.seen_at = found.since, now
    row.save()
    if before == row.by_way:
        return None
    values = {**row.by_way, "since": row.since}
    PastPrice.objects.create(price=row, at=now, **values)
    return _words(row, before)


def _words(row: MachinePrice, before: Mapping[str, Decimal | None] | None) -> str:
    if before is None:
        return f"{row.size}: ${row.on_demand} on demand" if row.on_demand else f"{row.size}: found"
    moved = [
        f"{way.replace('_', ' ')} from {_usd(before[way])} to {_usd(value)}"
        for way, value in row.by_way.items()
        if value != before[way]
    ]
    return f"{row.size}: {', '.join(moved)}"


def _usd(value: Decimal | None) -> str:
    return "none" if value is None else f"${value}"

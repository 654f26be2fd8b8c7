"""What changes about list prices: a reading is kept, and with each price that changed its past."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from capacity.prices.doubts import doubted
from capacity.prices.models import (
    WAYS,
    DoubtedPrice,
    MachinePrice,
    PastPrice,
    PriceRegion,
)
from capacity.prices.notices import tell_doubted
from connectors.azure.retail_prices import Price
from web.refusals import Conflict, NoRight, Stale

# So many changed prices are named in the log; the past of each has all of them.
MAX_NAMED = 10
SMALLEST = Decimal("0.000001")


@transaction.atomic
def keep_regions(names: Collection[str], *, now: datetime) -> None:
    """Have a row for each region whose prices are read, and for no other; what was read stays."""
    known = set(PriceRegion.objects.values_list("name", flat=True))
    new = [
        PriceRegion(name=name, next_read_at=now) for name in sorted(set(names) - known)
    ]
    PriceRegion.objects.bulk_create(new, ignore_conflicts=True)
    PriceRegion.objects.exclude(name__in=names).delete()


@transaction.atomic
def keep(
    region: str, found: Iterable[Price], *, now: datetime, again_at: datetime
) -> int:
    """Keep what Azure's list says of a region, and return how many prices changed.

    Only a change makes history, and what changed in one reading is one event of the log. A size that is not in the list
    any more keeps the price of the day it was seen last. A price that moved too far to be believed keeps the one of
    before until a platform lead confirms it. An older reading than the one that is kept changes nothing.
    """
    row = PriceRegion.objects.select_for_update(no_key=True).filter(name=region).first()
    if row is None or (row.read_at is not None and row.read_at >= now):
        return 0
    row.read_at, row.next_read_at = now, again_at
    row.message, row.failing_since, row.failures = "", None, 0
    row.save()
    rows = MachinePrice.objects.select_for_update(no_key=True).filter(region=region)
    known = {one.size.casefold(): one for one in rows}
    kept = [
        _keep_one(known.get(one.size.casefold()), region, one, now) for one in found
    ]
    changed = [words for words, _ in kept if words]
    _tell_doubts(region, [doubt for _, doubt in kept if doubt is not None], now=now)
    if changed:
        _tell_changes(region, changed)
    return len(changed)


@transaction.atomic
def confirm(
    price_id: int, *, doubted_at: datetime, by: User, now: datetime
) -> MachinePrice:
    """Believe what the list says of a machine; kinds of GPU that follow it take the price within a minute.

    `doubted_at` is since when, so that nobody confirms other prices than were seen. Raises NoRight, Conflict or Stale.
    """
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight("Platform leads confirm prices.", code="not_a_platform_lead")
    row = MachinePrice.objects.select_for_update(no_key=True).get(pk=price_id)
    doubt = DoubtedPrice.objects.filter(price=row).first()
    if doubt is None:
        raise Conflict(
            "What the list says of this machine is believed.", code="nothing_to_confirm"
        )
    if doubt.at != doubted_at:
        raise Stale("The list says something else by now. Look again.", code="stale")
    before, values = dict(row.by_way), doubt.by_way
    for way, usd in values.items():
        setattr(row, way, usd)
    row.seen_at = now
    row.save()
    doubt.delete()
    _keep_history(row, now)
    record(
        Kind.PRICES_CONFIRMED,
        actor=by.as_actor(),
        subject=("price", row.pk),
        region=row.region,
        prices=_words(row, before),
    )
    return row


@transaction.atomic
def note_failure(
    region: str, *, message: str, now: datetime, again_at: datetime
) -> None:
    """Keep that a region's prices could not be read, and since when; those that were read stay."""
    row = PriceRegion.objects.select_for_update(no_key=True).filter(name=region).first()
    if row is None:
        return
    row.message, row.failures, row.next_read_at = (
        message[:600],
        row.failures + 1,
        again_at,
    )
    row.failing_since = row.failing_since or now
    row.save()


def _keep_one(
    row: MachinePrice | None, region: str, found: Price, now: datetime
) -> tuple[str, DoubtedPrice | None]:
    """Keep one size's prices; what changed in words, and what is newly doubted."""
    prices = {way: _kept(getattr(found, way)) for way in WAYS}
    if row is None and not any(prices.values()):
        return "", None
    if row is None:
        row = MachinePrice.objects.create(
            region=region, size=found.size, since=found.since, seen_at=now, **prices
        )
        _keep_history(row, now)
        return _words(row, None), None
    before = dict(row.by_way)
    doubts = doubted(before, prices)
    for way, usd in prices.items():
        setattr(row, way, before[way] if way in doubts else usd)
    if not doubts:
        # While one is doubted, all of them are of the day on which they were believed last.
        row.since, row.seen_at = found.since, now
    row.save()
    new = _keep_doubt(row, doubts, now)
    if before == row.by_way:
        return "", new
    _keep_history(row, now)
    return _words(row, before), new


def _kept(usd: Decimal | None) -> Decimal | None:
    """A price as it is kept, so that a later one compares with it."""
    return None if usd is None else usd.quantize(SMALLEST, ROUND_HALF_UP) or None


def _keep_doubt(
    row: MachinePrice, doubts: Mapping[str, Decimal], now: datetime
) -> DoubtedPrice | None:
    """Keep what is doubted of a size, which may be nothing any more; it, where it is other than before."""
    known = DoubtedPrice.objects.filter(price=row).first()
    if known is not None and known.by_way == doubts:
        return None
    DoubtedPrice.objects.filter(price=row).delete()
    return DoubtedPrice.objects.create(price=row, at=now, **doubts) if doubts else None


def _keep_history(row: MachinePrice, now: datetime) -> None:
    PastPrice.objects.create(price=row, at=now, since=row.since, **row.by_way)


def _tell_changes(region: str, changed: Sequence[str]) -> None:
    record(
        Kind.PRICES_CHANGED,
        actor=PORTAL,
        subject=("prices", region),
        region=region,
        changed=len(changed),
        prices=[*changed[:MAX_NAMED]],
    )


def _tell_doubts(region: str, new: Sequence[DoubtedPrice], *, now: datetime) -> None:
    if not new:
        return
    tell_doubted(new, now=now)
    record(
        Kind.PRICES_DOUBTED,
        actor=PORTAL,
        subject=("prices", region),
        region=region,
        sizes=[one.price.size for one in new[:MAX_NAMED]],
    )


def _words(row: MachinePrice, before: Mapping[str, Decimal | None] | None) -> str:
    if before is None:
        return (
            f"{row.size}: {_usd(row.on_demand)} on demand"
            if row.on_demand
            else f"{row.size}: found"
        )
    moved = [
        f"{way.replace('_', ' ')} from {_usd(before[way])} to {_usd(value)}"
        for way, value in row.by_way.items()
        if value != before[way]
    ]
    return f"{row.size}: {', '.join(moved)}"


def _usd(value: Decimal | None) -> str:
    return "none" if value is None else f"${value.normalize():f}"

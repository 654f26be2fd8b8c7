"""What may go on under a renewal, and what its money would be if it ended now; writes nothing."""

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Sum

from allocations.budgets import money
from allocations.budgets.totals import in_cents
from allocations.models import Allocation, LedgerEntry


def held(hold_id: int, *, now: datetime) -> Allocation | None:
    """What is held under a hold, grace included; None when nothing is any more."""
    rows = Allocation.objects.of_gpus().held(now).filter(hold=hold_id)
    return rows.select_related("flavor__cluster", "team").first()


def going(allocation: Allocation, gpus: int) -> int:
    """How many of the GPUs held go on under a renewal of so many; the others stay until their own end."""
    return min(gpus, allocation.gpus)


def freed(
    allocation: Allocation, *, gpus: int, now: datetime
) -> Mapping[date, money.Amount]:
    """What the allocation's hold lets go of by month if so many of its GPUs go on under a renewal now, to the cent."""
    needed: dict[date, money.Amount] = {}
    for part in _parts(allocation, going(allocation, gpus), now=now):
        for month, amount in part.items():
            needed[month] = needed.get(month, money.NOTHING).plus(amount)
    rows = (
        LedgerEntry.objects.filter(hold=allocation.hold_id)
        .order_by()
        .values("budget__month")
    )
    found: dict[date, money.Amount] = {}
    for line in rows.annotate(
        usd=in_cents(Sum("usd")), gpu_hours=in_cents(Sum("gpu_hours"))
    ):
        month = line["budget__month"]
        surplus = money.Amount(line["usd"], line["gpu_hours"]).minus(
            needed.get(month, money.NOTHING)
        )
        found[month] = money.Amount(
            max(surplus.usd, Decimal(0)), max(surplus.gpu_hours, Decimal(0))
        )
    return found


def _parts(
    allocation: Allocation, over: int, *, now: datetime
) -> Iterator[Mapping[date, money.Amount]]:
    """What each row under the hold still takes by month once `over` GPUs of the live one have gone over."""
    for row in Allocation.objects.filter(hold=allocation.hold_id):
        if row.ended_at is not None:
            yield row.by_month(
                start=row.charge_start(row.charged_until), end=row.charged_until
            )
            continue
        end, stay = min(now, row.charged_until), row.gpus - over
        yield _of(row, over, start=row.charge_start(end), end=end)
        yield _of(
            row, stay, start=row.charge_start(row.starts_at), end=row.charged_until
        )


def _of(
    row: Allocation, gpus: int, *, start: datetime, end: datetime
) -> Mapping[date, money.Amount]:
    return money.by_month(
        gpus=gpus, usd_per_hour=gpus * row.price_per_gpu_hour, start=start, end=end
    )

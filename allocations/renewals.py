"""What may go on under a renewal, and what its money would be if it ended now; writes nothing."""

from collections.abc import Mapping
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


def freed(allocation: Allocation, *, now: datetime) -> Mapping[date, money.Amount]:
    """What the allocation's hold would let go of by month if it ended now: to the cent what ending it lets go."""
    needed: dict[date, money.Amount] = {}
    for row in Allocation.objects.filter(hold=allocation.hold_id):
        end = min(now, row.charged_until) if row.ended_at is None else row.charged_until
        parts = row.by_month(start=row.charge_start(end), end=end)
        for month, part in parts.items():
            needed[month] = needed.get(month, money.NOTHING).plus(part)
    rows = LedgerEntry.objects.filter(hold=allocation.hold_id).order_by().values("budget__month")
    found: dict[date, money.Amount] = {}
    for line in rows.annotate(usd=in_cents(Sum("usd")), gpu_hours=in_cents(Sum("gpu_hours"))):
        month = line["budget__month"]
        surplus = money.Amount(line["usd"], line["gpu_hours"]).minus(needed.get(month, money.NOTHING))
        found[month] = money.Amount(max(surplus.usd, Decimal(0)), max(surplus.gpu_hours, Decimal(0)))
    return found

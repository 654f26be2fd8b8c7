"""What giving back does, as its page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Sum

from allocations.budgets import money
from allocations.models import Allocation
from ui.amounts import gpus, moment, usd
from ui.parts import BeforeAfter


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What giving back changes, which money it frees until when, and what stays."""

    changes: Sequence[BeforeAfter]
    freed: str
    until: str
    rest: str
    button: str


def effect(allocation: Allocation, count: int, *, now: datetime) -> Effect:
    """What changes when `count` GPUs go back now: quota, cost a day, and the money that is freed."""
    live = Allocation.objects.live().filter(team=allocation.team_id)
    here = live.filter(tenancy=allocation.tenancy_id, flavor=allocation.flavor_id)
    quota = int(here.aggregate(gpus=Sum("gpus"))["gpus"] or 0)
    per_day = live.usd_per_day()
    product = allocation.flavor.kind if allocation.flavor is not None else "GPU"
    is_charged = allocation.charged_from is not None
    less = money.per_day(gpus=count, price=allocation.price_per_gpu_hour) if is_charged else Decimal(0)
    freed = money.cost(gpus=count, price=allocation.price_per_gpu_hour, start=now, end=allocation.until)
    return Effect(
        changes=[
            {
                "label": f"Quota, {product}",
                "before": gpus(quota),
                "after": gpus(quota - count),
            },
            {"label": "Cost a day", "before": usd(per_day), "after": usd(per_day - less)},
        ],
        freed=usd(freed),
        until=moment(allocation.until, now),
        rest=gpus(allocation.gpus - count, product) if count < allocation.gpus else "",
        button=f"Give back {gpus(count, product)}",
    )

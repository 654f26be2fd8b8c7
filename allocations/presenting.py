"""What giving back does, and a team's money by month, as pages show them."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import F, Sum

from accounts.models import Team
from allocations import budgets, money
from allocations.models import Allocation
from allocations.words import gpus, moment, usd

Part = dict[str, Any]
MONTHS_AHEAD = 3


def effect(allocation: Allocation, count: int, *, now: datetime) -> Part:
    """What changes when `count` GPUs go back now: quota, cost a day, and the money that is freed."""
    live = Allocation.objects.live().filter(team=allocation.team_id)
    here = live.filter(tenancy=allocation.tenancy_id, flavor=allocation.flavor_id)
    quota = int(here.aggregate(gpus=Sum("gpus"))["gpus"] or 0)
    hourly = live.aggregate(usd=Sum(F("gpus") * F("price_per_gpu_hour")))["usd"] or Decimal(0)
    per_day = money.per_day(gpus=1, price=hourly)
    less = money.per_day(gpus=count, price=allocation.price_per_gpu_hour)
    freed = money.cost(gpus=count, price=allocation.price_per_gpu_hour, start=now, end=allocation.until)
    return {
        "changes": [
            {
                "label": f"Quota, {allocation.flavor.product}",
                "before": gpus(quota),
                "after": gpus(quota - count),
            },
            {"label": "Cost a day", "before": usd(per_day), "after": usd(per_day - less)},
        ],
        "freed": usd(freed),
        "until": moment(allocation.until, now),
        "rest": gpus(allocation.gpus - count, allocation.flavor.product) if count < allocation.gpus else "",
        "button": f"Give back {gpus(count, allocation.flavor.product)}",
    }


def months_from(now: datetime) -> list[date]:
    """This month and those after it that a limit can be set for."""
    first = money.month_of(now)
    index = first.year * 12 + first.month - 1
    return [date((index + n) // 12, (index + n) % 12 + 1, 1) for n in range(MONTHS_AHEAD)]


def by_month(team: Team, months: Sequence[date]) -> list[Part]:
    """Set aside and limit of each month, oldest first."""
    left = budgets.left_by_month(team, list(months))
    return [
        {
            "label": f"{month:%B %Y}",
            "held": row.usd_limit - row.usd,
            "limit": row.usd_limit,
            "note": f"{usd(row.usd)} left",
        }
        for month, row in left.items()
    ]

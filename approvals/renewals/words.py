"""What a renewal changes, for its page, for who decides it, and for the API."""

from datetime import datetime
from decimal import Decimal

from allocations import renewals as renewable
from allocations.budgets import money
from allocations.models import Allocation
from approvals.models import Request
from approvals.requests.actions import Judged
from approvals.requests.wanted import Wanted
from ui.amounts import gpus, moment, rate, usd
from ui.parts import BeforeAfter


def changes(wanted: Wanted, judged: Judged, *, now: datetime) -> list[BeforeAfter]:
    """Before → after of a renewal: the quota, which stays for what is held already, and the end."""
    held, own = judged.standing.held_gpus, min(judged.standing.own_gpus, wanted.gpus)
    product = wanted.flavor.kind if wanted.flavor is not None else "GPU"
    now_held = renewable.held(wanted.renewed_hold, now=now)
    before = moment(now_held.until, now) if now_held is not None else ""
    return [
        {
            "label": f"Quota, {product}",
            "before": gpus(held),
            "after": gpus(held + wanted.gpus - own),
        },
        {"label": "Ends", "before": before, "after": moment(wanted.until, now)},
    ]


def gone_on(request: Request) -> str:
    """That GPUs go on under a renewal: "1 × A100 goes on without a gap", "2 × A100 go on without a gap"."""
    goes = "goes" if request.gpus == 1 else "go"
    return f"{request.given_name} {goes} on without a gap"


def extra_words(wanted: Wanted, judged: Judged, *, now: datetime) -> str:
    """What a renewal costs more than what is set aside already; empty for what renews nothing."""
    if wanted.renews is None:
        return ""
    held = renewable.held(wanted.renewed_hold, now=now)
    if held is None:
        return ""
    there = sum(
        (
            part.usd
            for part in renewable.freed(held, gpus=wanted.gpus, now=now).values()
        ),
        Decimal(0),
    )
    extra = max(judged.answer.usd - there, Decimal(0))
    words = f"Counted from now to the new end. {usd(extra)} of it come on top; the rest is set aside already."
    return words + _other_price(wanted, held)


def _other_price(wanted: Wanted, held: Allocation) -> str:
    """That the days granted before cost today's price from the renewal on, where it is another one."""
    flavor = wanted.flavor
    if flavor is None:
        return ""
    before, today = rate(held.price_per_gpu_hour), rate(flavor.price_per_gpu_hour)
    if before == today:
        return ""
    return (
        f" A GPU-hour costs {today} now and {before} as it was granted: from the renewal on, all days cost {today}, "
        "those granted before, too."
    )


def goes_on(wanted: Wanted, *, now: datetime) -> Decimal:
    """USD a day that a renewal goes on to cost instead of adding to; 0 for what renews nothing."""
    held = (
        renewable.held(wanted.renewed_hold, now=now)
        if wanted.renews is not None
        else None
    )
    if held is None:
        return Decimal(0)
    return money.per_day(
        gpus=renewable.going(held, wanted.gpus), price=held.price_per_gpu_hour
    )

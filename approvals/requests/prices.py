"""The price of a request that waits: the one as asked, and the one of now where it is another.

Time passes and prices change while people decide. Every page says the same of a request: one price, or of when each is.
"""

from datetime import datetime
from decimal import Decimal

from allocations.budgets import money
from approvals.models import Request
from approvals.states import State
from ui.amounts import day, usd


def usd_now(request: Request, *, now: datetime) -> Decimal | None:
    """What a request that waits for GPUs would cost if it were granted now, as the policy judges it; None for others.

    A renewal's is the one as asked: what is held already and what comes on top are told apart where it is judged.
    """
    flavor = request.flavor
    if flavor is None or request.state != State.WAITING or request.renews_id is not None:
        return None
    return money.cost(gpus=request.gpus, price=flavor.price_per_gpu_hour, start=now, end=request.until)


def differs(request: Request, *, now: datetime) -> bool:
    """Whether the price of now reads as another one than the price as asked."""
    found = usd_now(request, now=now)
    return found is not None and usd(found) != usd(request.usd)


def price_words(request: Request, *, now: datetime) -> str:
    """ "$379 in all", or "$379 as asked on Fri 20 Nov; $55 now"."""
    if not differs(request, now=now):
        return f"{usd(request.usd)} in all"
    return f"{as_asked(request, now=now)}; {usd(usd_now(request, now=now) or Decimal(0))} now"


def as_asked(request: Request, *, now: datetime) -> str:
    """ "$379 as asked on Fri 20 Nov"."""
    return f"{usd(request.usd)} as asked on {day(request.created_at, now)}"

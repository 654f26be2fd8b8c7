"""The price of a request that waits: the one as asked, and the one of now where it is another.

Time passes and prices change while people decide. Every page says the same of a request: one price, or of when each is.
"""

from datetime import date, datetime
from decimal import Decimal

from django.db.models import OuterRef, QuerySet, Subquery

from allocations import renewals as renewable
from allocations.budgets import balances, money
from approvals.models import Decision, Request
from approvals.states import State
from ui.amounts import day, usd

# A price that moved by less than this part of the one as asked is told as that one. A request's end stays while it
# waits, so its price falls with every minute: a difference that nobody would decide by is noise beside a number that
# people have to find again in a queue, on a page and in a mail. One part of the price, not an hour: a dollar more or
# less is much for a notebook of a day and nothing for a cluster of a year.
LEAST_TOLD = Decimal("0.01")


def usd_of(request: Request) -> Decimal:
    """USD of what was granted, or is left of it to be decided: as asked, or as the last approval for less has it."""
    if not request.is_less:
        return request.usd
    voted = _voted_usd(request)
    return request.usd if voted is None else voted


def with_votes(rows: QuerySet[Request]) -> QuerySet[Request]:
    """The same with what `usd_of` needs, so that it asks nothing for a line of a list."""
    votes = Decision.objects.filter(
        request=OuterRef("pk"),
        content_version=OuterRef("content_version"),
        verdict=Decision.Verdict.APPROVE,
    ).order_by("-pk")
    return rows.annotate(voted_usd=Subquery(votes.values("usd")[:1]))


def _voted_usd(request: Request) -> Decimal | None:
    known = vars(request)
    if "voted_usd" in known:
        found: Decimal | None = known["voted_usd"]
        return found
    votes = [
        decision
        for decision in request.decisions.all()
        if decision.verdict == Decision.Verdict.APPROVE
        and decision.content_version == request.content_version
    ]
    return votes[-1].usd if votes else None


def usd_now(request: Request, *, now: datetime) -> Decimal | None:
    """What a request that waits for GPUs would cost if it were granted now, as the policy judges it; None for others.

    A booking costs from its beginning on, whenever it is granted. A renewal's is the one as asked: what is held already
    and what comes on top are told apart where it is judged.
    """
    flavor = request.flavor
    if (
        flavor is None
        or request.state != State.WAITING
        or request.renews_id is not None
    ):
        return None
    return money.cost(
        gpus=request.gpus_now,
        price=flavor.price_per_gpu_hour,
        start=max(now, request.starts_at or now),
        end=request.until_now,
    )


def matters(found: Decimal, *, asked: Decimal) -> bool:
    """Whether a price is far enough from the one as asked to be told beside it, and reads as another one."""
    return abs(found - asked) >= LEAST_TOLD * asked and usd(found) != usd(asked)


def told(found: Decimal, *, asked: Decimal) -> Decimal:
    """The price that a page says: the one as asked until the other one matters, so that all say the same."""
    return found if matters(found, asked=asked) else asked


def differs(request: Request, *, now: datetime) -> bool:
    """Whether the price of now is told beside the price as asked."""
    found = usd_now(request, now=now)
    return found is not None and matters(found, asked=request.usd)


def price_words(request: Request, *, now: datetime) -> str:
    """ "$379 in all", or "$379 as asked on Fri 20 Nov; $55 now"."""
    if not differs(request, now=now):
        return f"{usd(request.usd)} in all"
    return f"{as_asked(request, now=now)}; {usd(usd_now(request, now=now) or Decimal(0))} now"


def as_asked(request: Request, *, now: datetime) -> str:
    """ "$379 as asked on Fri 20 Nov"."""
    return f"{usd(request.usd)} as asked on {day(request.created_at, now)}"


def is_beyond_budget(request: Request, *, now: datetime) -> bool:
    """Whether the budget lacks the money for a waiting request of GPUs as it would be granted now.

    What it has set aside itself counts as left, and so does what a renewal lets go of.
    """
    flavor = request.flavor
    assert flavor is not None  # noqa: S101 - asked of requests for GPUs alone
    parts = money.by_month(
        gpus=request.gpus_now,
        usd_per_hour=request.gpus_now * flavor.price_per_gpu_hour,
        start=max(now, request.starts_at or now),
        end=request.until_now,
    )
    left = balances.left_by_month(request.team, sorted(parts), own=request.hold_id)
    held, freed = None, dict[date, money.Amount]()
    if request.renews is not None:
        held = renewable.held(request.renews.hold_id, now=now)
    if held is not None and held.flavor_id == flavor.pk:
        freed |= renewable.freed(held, gpus=request.gpus_now, now=now)
    return any(
        _lacks(left[month].and_freed(freed.get(month, money.NOTHING)), part)
        for month, part in parts.items()
    )


def _lacks(left: money.Left, part: money.Amount) -> bool:
    hours = left.gpu_hours
    return part.usd > left.usd or (hours is not None and part.gpu_hours > hours)

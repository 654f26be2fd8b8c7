"""What must be true of the books whatever happened at the same time."""

from collections import Counter
from decimal import Decimal

from django.db.models import Sum

from allocations.models import Allocation, Budget
from approvals.models import Request
from approvals.states import State
from audit.chain import verify
from audit.models import Event
from fleet.models import Flavor


def wrong_in_the_books() -> list[str]:
    """Every invariant that does not hold, in words; empty when the books are right."""
    return [*_flavors(), *_budgets(), *_requests(), *_audit()]


def _flavors() -> list[str]:
    found = []
    for flavor in Flavor.objects.all():
        live = (
            Allocation.objects.live()
            .filter(flavor=flavor)
            .aggregate(gpus=Sum("gpus"))["gpus"]
            or 0
        )
        if flavor.allocated != live:
            found.append(f"{flavor}: {flavor.allocated} allocated, {live} held")
        if flavor.allocated > flavor.gpus_total:
            found.append(f"{flavor}: {flavor.allocated} of {flavor.gpus_total}")
    return found


def _budgets() -> list[str]:
    found = []
    for budget in Budget.objects.all():
        ledger = budget.entries.aggregate(
            usd=Sum("usd", default=Decimal(0)),
            hours=Sum("gpu_hours", default=Decimal(0)),
        )
        if (budget.held_usd, budget.held_gpu_hours) != (ledger["usd"], ledger["hours"]):
            found.append(
                f"{budget}: holds {budget.held_usd}, {budget.held_gpu_hours} h, its ledger says {ledger}"
            )
        if budget.left_usd < 0 or (budget.left_gpu_hours or 0) < 0:
            found.append(
                f"{budget}: {budget.left_usd} and {budget.left_gpu_hours} h left"
            )
    return found


def _requests() -> list[str]:
    live = Counter(Allocation.objects.live().values_list("hold", flat=True))
    found = [
        f"hold {hold} is granted {count} times"
        for hold, count in live.items()
        if count > 1
    ]
    granted = {
        request.hold_id for request in Request.objects.filter(state=State.APPROVED)
    }
    found += [
        f"hold {hold} has something and was not approved"
        for hold in live.keys() - granted
    ]
    for request in Request.objects.exclude(state=State.WAITING):
        votes = request.decisions.exclude(verdict__in=("ask", "answer")).count()
        if request.state in (State.APPROVED, State.REJECTED) and not votes:
            found.append(f"{request.reference} is {request.state} and nobody decided")
    return found


def _audit() -> list[str]:
    verdict = verify(event.link() for event in Event.objects.order_by("seq"))
    return [] if verdict.broken_at is None else [verdict.reason]

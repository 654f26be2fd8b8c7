"""What was rejected because too few were free: looked at again as GPUs come back, and offered to who asked."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from approvals import notices
from approvals.events import record_event
from approvals.judging.asked import wanted_of
from approvals.models import Decision, Request
from approvals.requests.actions import check, judge
from approvals.states import State
from audit.actors import PORTAL
from audit.events import Kind
from reconciling.sweeping import for_each
from reconciling.turns import in_turn
from web.refusals import Refused

REMEMBERED_FOR = timedelta(days=30)
# How many requests are judged by one sweep; with more, the sweeps take turns.
MAX_JUDGED = 50
SWEEP_SECONDS = 60
NEEDED = ("exists", "free", "budget", "budget_hours")


def candidates(now: datetime) -> QuerySet[Request]:
    """What was rejected for want of capacity within thirty days, fits by its number now, and was not offered yet."""
    for_capacity = Decision.objects.filter(
        request=OuterRef("pk"),
        verdict=Decision.Verdict.REJECT,
        because=Decision.Because.CAPACITY,
    )
    return Request.objects.filter(
        Exists(for_capacity),
        state=State.REJECTED,
        offered_again_at=None,
        decided_at__gt=now - REMEMBERED_FOR,
        flavor__gpus_total__gte=F("flavor__allocated") + F("gpus"),
    )


def due(now: datetime) -> list[int]:
    """The candidates that this sweep judges, oldest first."""
    rows = candidates(now).order_by("decided_at", "pk")
    found = list(rows.values_list("pk", flat=True))
    # Some stay impossible, for want of money or people.
    return in_turn(found, most=MAX_JUDGED, seconds=SWEEP_SECONDS, now=now)


def sweep(now: datetime) -> list[int]:
    """Offer what is possible again, oldest first, no GPU to two at once; the requests offered."""
    promised: dict[int, int] = {}
    offered = []

    def try_to_offer(request_id: int) -> None:
        found = offer(request_id, now=now, promised=promised)
        if found is not None and found.flavor_id is not None:
            promised[found.flavor_id] = promised.get(found.flavor_id, 0) + found.gpus
            offered.append(request_id)

    for_each(due(now), try_to_offer)
    return offered


@transaction.atomic
def offer(
    request_id: int, *, now: datetime, promised: dict[int, int] | None = None
) -> Request | None:
    """Tell who asked that it would be possible now; None, and nothing happens, when it is not. Sets nothing aside.

    `promised` is how many GPUs of each flavor were offered to others a moment ago.
    """
    rows = Request.objects.locked()
    request = rows.select_related(
        "team", "requester", "flavor__cluster", "tenancy__cluster"
    ).get(pk=request_id)
    taken = (promised or {}).get(request.flavor_id or 0, 0)
    if not candidates(now).filter(pk=request.pk).exists() or not _is_possible(
        request, taken, now=now
    ):
        return None
    request.offered_again_at = now
    request.save(update_fields=["offered_again_at"])
    notices.offered_again(request, now=now)
    record_event(Kind.REQUEST_OFFERED_AGAIN, request, actor=PORTAL)
    return request


def _is_possible(request: Request, taken: int, *, now: datetime) -> bool:
    """Whether the same ask, in its own time or from now on for as long, would find GPUs and money."""
    if request.flavor is None or request.tenancy is None:
        return False
    if request.starts_at is not None and request.starts_at <= now:
        return False
    if request.starts_at is None:
        if request.flavor.free < request.gpus + taken:
            return False
        request.until = now + request.duration  # of this object alone
    # It would be asked for now, and stands in line as that.
    request.asked_at = now
    request.tenancy.team = request.team
    try:
        wanted = wanted_of(request)
        check(wanted, by=request.requester, now=now)
        judged = judge(wanted, person=request.requester, now=now)
    except Refused:
        return False
    return all(rule.holds for rule in judged.answer.rules if rule.code in NEEDED)

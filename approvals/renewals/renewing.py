"""Renewals: what is held goes on under a new request, which the policy judges like any other one.

What is renewed stays as it is until the new request is granted. Its GPUs and the money that it still has set aside
count as there for the renewal; both go over in the transaction that grants it.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from allocations import actions as allocations
from allocations import renewals as renewable
from allocations.budgets import money
from allocations.models import Allocation
from allocations.schedule import kept_by
from approvals.models import Request
from approvals.requests.wanted import Wanted, priced
from approvals.states import State
from audit.actors import Actor
from catalogue.offerings import OFFERINGS
from ui.amounts import duration, gpus
from web.refusals import BadInput, Conflict

USUAL_DAYS = 7
# What a renewal adds at least: a few seconds at a time would each be rounded to no cost at all.
SHORTEST = timedelta(minutes=15)
QUICK_DAYS = (1, 3, 7, 14, 30)
NO_LONGER_HELD = "These GPUs are not held any more. Ask for them again."
GIVEN_BACK = "What it would keep longer was given back, and is not held any more."


def held_under(request: Request, *, now: datetime) -> Allocation | None:
    """What is held under a request and may be renewed; None when nothing is any more."""
    return renewable.held(request.hold_id, now=now)


def request_of(allocation: Allocation) -> Request | None:
    """The request that an allocation was granted for, or None."""
    rows = Request.objects.select_related(
        "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    )
    return rows.filter(hold=allocation.hold_id).first()


def usual_until(allocation: Allocation, *, days: int = USUAL_DAYS) -> datetime:
    """The end that one click asks for: days after the present one."""
    return allocation.until + timedelta(days=days)


def wanted(request: Request, *, until: datetime, reason: str, now: datetime) -> Wanted:
    """The ask for all that is held under a request to go on until a later end.

    Raises Conflict for what takes no GPUs and when nothing is held any more, BadInput for an end that is not later.
    """
    if request.flavor is None:
        raise Conflict(
            f"Only GPUs are kept longer so. {kept_by(request.offering)}",
            code="not_renewable",
        )
    held = held_under(request, now=now)
    if held is None:
        raise Conflict(_why_not_held(request), code="not_held")
    _check_later(held, until)
    count = max(1, held.gpus // max(request.gpus // request.count, 1))
    # What is left of a large training may be fewer than one can ask for: then it is GPUs as any.
    offering = request.of if count >= request.of.spec.least() else OFFERINGS["gpus"]
    spec = offering.spec.model_construct(**request.asked.fewer(count))
    return priced(
        team=request.team,
        offering=offering,
        spec=spec,
        until=until,
        reason=reason,
        tenancy=request.tenancy,
        flavor=request.flavor,
        cluster=request.flavor.cluster,
        renews=request.pk,
        renewed_hold=request.hold_id,
    )


def _why_not_held(request: Request) -> str:
    """Why nothing under a request can go on longer, and what to do instead."""
    if request.state == State.WAITING:
        return "Nothing is held under it yet: it waits for a decision. Change the request instead."
    if request.allocation is None:
        return "Nothing was granted under it. Ask for GPUs anew."
    if request.allocation.begun_at is None and request.allocation.ended_at is None:
        return "It has not begun yet. Ask to keep it longer once it has."
    return NO_LONGER_HELD


def _check_later(held: Allocation, until: datetime) -> None:
    if until < held.until + SHORTEST:
        raise BadInput(
            f"Choose an end at least {duration(SHORTEST)} later than the present one.",
            code="not_later",
            field="until",
        )


def check(wanted: Wanted, *, now: datetime, own: int = 0) -> None:
    """Refuse a renewal of what is gone or being renewed already, under the locks of an ask; raises Conflict, BadInput.

    `own` is the request that is being changed, which waits itself.
    """
    if wanted.renews is None:
        return
    held = renewable.held(wanted.renewed_hold, now=now)
    if held is None:
        raise Conflict(NO_LONGER_HELD, code="not_held")
    _check_later(held, wanted.until)
    waiting = waiting_for(wanted.renews, but=own)
    if waiting is not None:
        raise Conflict(waits_words(waiting), code="renewal_waits")


def check_no_more(request: Request, wanted: Wanted, *, now: datetime) -> None:
    """Refuse to change a renewal to more GPUs than are held, which are to be judged by themselves; raises BadInput.

    They would cost from now on, and be there when their cluster has them, unlike those that go on.
    """
    held = request.renews and held_under(request.renews, now=now)
    if held and wanted.gpus > held.gpus:
        raise BadInput(
            f"{gpus(held.gpus)} can be kept longer, as no more are held. Ask for others by themselves.",
            code="only_what_is_held",
            field=wanted.spec.counted,
        )


def check_not_given_back(wanted: Wanted) -> None:
    """Refuse to keep longer what its team gave back, or what was taken back from it; raises Conflict.

    What reached its end while people decided is another thing: then they grant it anew.
    """
    if wanted.renews is None:
        return
    if _last_end_of(wanted.renewed_hold).first() == Allocation.End.RETURNED:
        raise Conflict(GIVEN_BACK, code="not_held")


def check_held(wanted: Wanted, *, now: datetime) -> None:
    """Refuse to grant a renewal of more GPUs than are held since a part was given back; raises Conflict.

    Under the locks of an ask. It is lowered by itself within seconds.
    """
    if wanted.renews is None:
        return
    held = renewable.held(wanted.renewed_hold, now=now)
    if held is not None and wanted.gpus > held.gpus:
        raise Conflict(
            f"A part was given back, and {gpus(held.gpus)} can be kept longer. Look again: soon it asks for those.",
            code="only_what_is_held",
        )


def more_than_held(now: datetime) -> list[int]:
    """The waiting requests to keep longer more GPUs than are held by now, oldest first."""
    rows = Request.objects.filter(state=State.WAITING, renews__isnull=False)
    held = Allocation.objects.of_gpus().held(now).filter(hold=OuterRef("renews__hold"))
    each = F("gpus") / F("count") * Coalesce("cut_to", "count")
    found = rows.annotate(held_gpus=Subquery(held.values("gpus")[:1]), asked_gpus=each)
    return list(
        found.filter(asked_gpus__gt=F("held_gpus"))
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def void() -> list[int]:
    """The waiting requests to keep longer what was given back since, oldest first."""
    rows = Request.objects.filter(state=State.WAITING, renews__isnull=False)
    last_end = Subquery(_last_end_of(OuterRef("renews__hold"))[:1])
    void = rows.annotate(last_end=last_end).filter(last_end=Allocation.End.RETURNED)
    return list(void.order_by("pk").values_list("pk", flat=True))


def _last_end_of(hold: int | OuterRef) -> QuerySet[Allocation, str]:
    """How what a hold held ended, the last of it first; empty for what is held, which comes before all that ended.

    Of one moment the row that parts were split from ended last.
    """
    rows = Allocation.objects.of_gpus().filter(hold=hold, begun_at__isnull=False)
    newest_first = rows.order_by(F("ended_at").desc(nulls_first=True), "pk")
    return newest_first.values_list("end_reason", flat=True)


def waiting_for(request_id: int, *, but: int = 0) -> Request | None:
    """The renewal of a request that waits for a decision, other than the request `but`; None when none does."""
    return (
        Request.objects.filter(renews=request_id, state=State.WAITING)
        .exclude(pk=but)
        .first()
    )


def waits_words(waiting: Request) -> str:
    """Why there is no second renewal, as the page of what is held says it, too."""
    return f"Request {waiting.pk} to keep them longer waits for a decision."


def standing_of(
    wanted: Wanted, *, now: datetime
) -> tuple[int, Mapping[date, money.Amount], datetime | None]:
    """GPUs that a renewal already has, the money by month of those that it keeps, and their end; nothing for others."""
    held = (
        renewable.held(wanted.renewed_hold, now=now)
        if wanted.renews is not None
        else None
    )
    if held is None or wanted.flavor is None or held.flavor_id != wanted.flavor.pk:
        return 0, {}, None
    return held.gpus, renewable.freed(held, gpus=wanted.gpus, now=now), held.until


def hold_from(request: Request, *, now: datetime) -> datetime:
    """From when money is set aside for a request that waits: a renewal costs only from the present end on."""
    if request.renews is None:
        return now
    held = held_under(request.renews, now=now)
    return max(held.until, now) if held is not None else now


def hand_over(
    request: Request, *, gpus: int, actor: Actor, now: datetime
) -> allocations.HandedOver:
    """End what a granted renewal goes on with; returns how many GPUs go over, and from when they cost.

    The caller has locked budgets and flavor.
    """
    if request.renews is None or request.flavor is None:
        return allocations.NOTHING_HANDED_OVER
    return allocations.hand_over(
        request.renews.hold,
        flavor=request.flavor,
        gpus=gpus,
        to=request.hold,
        actor=actor,
        now=now,
    )


def renewal_of(request: Request) -> Request | None:
    """The granted request under which this one's GPUs go on; None when they do not."""
    return request.renewals.filter(state=State.APPROVED).order_by("-decided_at").first()

"""What follows an approval: what was granted is handed to its provisioner, and what people carry out is finished."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from accounts.models import User
from allocations import actions as allocations
from allocations.actions import NOTHING_HANDED_OVER, Granted, HandedOver
from allocations.bookings import actions as bookings
from allocations.changes import locked_with_all
from allocations.ends import actions as ends
from allocations.models import Allocation
from allocations.schedule import Terms
from allocations.taking_back import checked_reason
from approvals.models import Request
from audit.actors import Actor
from catalogue.models import provisioner_of
from catalogue.offering import in_sentence
from manual import actions as tasks
from manual.briefs import Instructions
from manual.models import Task
from web.refusals import Conflict, NoRight


def carry_out(
    request: Request,
    *,
    gpus: int,
    usd_per_hour: Decimal,
    terms: Terms,
    task_hours: int,
    actor: Actor,
    now: datetime,
    handed_over: HandedOver = NOTHING_HANDED_OVER,
) -> None:
    """Begin what an approved, locked request asked for, as the last step of the approval; raises Conflict.

    `usd_per_hour` is what all that was approved costs, `terms` are how it will end; people carry their part of it out
    within `task_hours`. Of what goes on, `handed_over`, nothing has to be set up.
    """
    granted = Granted(
        team=request.team,
        requester=request.requester,
        hold=request.hold,
        offering=request.offering,
        spec=request.granted_spec,
        count=request.approved_count or request.count,
        title=request.given_name,
        place=request.place,
        instructions=instructions_of(request),
        provisioner=provisioner_of(request.of),
        tenancy=request.tenancy,
        flavor=request.flavor,
        gpus=gpus,
        usd_per_hour=usd_per_hour,
        until=request.until_now,
        starts_at=request.starts_at,
        terms=terms,
        task_hours=task_hours,
    )
    request.allocation = allocations.grant(
        granted, actor=actor, now=now, handed_over=handed_over
    )
    # A request for a namespace leads to the tenancy that was made for it.
    request.tenancy = request.allocation.tenancy
    request.save(update_fields=["allocation", "tenancy"])


def instructions_of(request: Request) -> Instructions:
    """What people are told who make what was approved, and take it down again."""
    at = f" in {request.where}" if request.where else ""
    spec, count = request.asked, request.approved_count or request.count
    place = [("Place", request.where)] if request.where else []
    return Instructions(
        title=in_sentence(request.given_name),
        set_up=spec.set_up(count, at=at),
        thing=spec.thing(),
        at=at,
        facts=(
            ("Offering", request.of.name),
            *place,
            *(
                (request.of.label(name), str(value))
                for name, value in request.spec_lines
            ),
        ),
    )


@transaction.atomic
def finish(
    task_id: int,
    *,
    by: User,
    note: str,
    failed: bool = False,
    expected_version: int | None = None,
    now: datetime,
) -> Task:
    """Mark a task done, or impossible, with what follows for what it was for.

    What is set up costs from now on. What cannot be lets go of its GPUs and its money: nothing is paid for what nobody
    gets. A team that cannot be set apart stays where it is, until a platform lead chooses another level. Raises what
    `manual.actions.finish` raises.
    """
    # In the order of every action: what ends one at the same moment waits, or is waited for. There are two where a part
    # goes on under a renewal.
    concerned = (
        Allocation.objects.filter(task=task_id)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    found = [locked_with_all(pk).pk for pk in concerned]
    task = tasks.finish(
        task_id,
        by=by,
        note=note,
        failed=failed,
        expected_version=expected_version,
        now=now,
    )
    for pk in found:
        allocations.observe(pk, now=now)
    return task


@transaction.atomic
def release(request_id: int, *, by: User, now: datetime, reason: str = "") -> Request:
    """End what takes no GPUs before its date, or cancel what has not begun; what it will not cost is free again.

    Who is not of the team says why, and the team is told that it is taken back. Raises NoRight for others than the team
    and platform leads, BadInput without that reason, Conflict for what cannot be undone or is not held.
    """
    request = Request.objects.select_related("allocation", "team").get(pk=request_id)
    if not ends.may_give_back(by, request.team_id):
        raise NoRight(
            "Members of the team and platform leads let it go.", code="not_of_the_team"
        )
    because = checked_reason(request.team, by, reason)
    if _cancel_booking(
        request,
        actor=by.as_actor(),
        now=now,
        why="cancelled before it began",
        because=because,
    ):
        return request
    if request.flavor_id is not None:
        raise Conflict(
            "Its GPUs are given back, all or some; that ends it.",
            code="gpus_are_given_back",
        )
    if request.of.reversible_minutes is None:
        raise Conflict(
            "It is paid until its end, whether it is used or not.",
            code="not_reversible",
        )
    if not _release(
        request, actor=by.as_actor(), now=now, why="let go early", because=because
    ):
        raise Conflict("It is not held any more.", code="not_held")
    return request


@transaction.atomic
def end_early(request_id: int, *, actor: Actor, now: datetime, why: str) -> bool:
    """End what takes no GPUs before its date, and say why; False for what cannot be undone or is over."""
    request = Request.objects.select_related("allocation").get(pk=request_id)
    if _cancel_booking(request, actor=actor, now=now, why=why):
        return True
    return may_release(request, now=now) and _release(
        request, actor=actor, now=now, why=why
    )


def may_release(request: Request, *, now: datetime) -> bool:
    """Whether there is a booking, or something without GPUs that can end early, of a request with its allocation."""
    allocation = request.allocation
    if allocation is not None and allocation.is_booked:
        return True
    if (
        allocation is None
        or request.flavor_id is not None
        or request.of.reversible_minutes is None
    ):
        return False
    return allocation.ended_at is None and allocation.until > now


def _cancel_booking(
    request: Request, *, actor: Actor, now: datetime, why: str, because: str = ""
) -> bool:
    return request.allocation_id is not None and bookings.cancel(
        request.allocation_id, actor=actor, now=now, why=why, because=because
    )


def _release(
    request: Request, *, actor: Actor, now: datetime, why: str, because: str = ""
) -> bool:
    return request.allocation_id is not None and ends.release(
        request.allocation_id, actor=actor, now=now, why=why, because=because
    )

"""Ends of allocations: given back in part or whole, let go early, taken back, reached their date."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from allocations import provisioners
from allocations.changes import (
    drop_take_downs_at,
    end,
    end_machines,
    end_part,
    leave_room,
    locked_with_all,
    record_change,
    settle,
)
from allocations.models import Allocation
from allocations.taking_back import checked_reason, keep_reason, tell_requester
from audit.actors import PORTAL, Actor
from audit.events import Kind
from fleet.models import Flavor
from web.refusals import Conflict, NoRight


def may_give_back(by: User, team_id: int) -> bool:
    """Whether what a team holds is this person's to give back before its end, or to let go."""
    return team_id in by.team_ids or by.may(Permission.GIVE_BACK_FOR_TEAMS)


def why_not_held(allocation: Allocation, amount: int, *, now: datetime) -> str:
    """Why so many GPUs, or machines of a reservation, cannot be given back; empty where so many are held.

    Of GPUs that go on under another number it says under which one.
    """
    count = allocation.count if allocation.reservation_id else allocation.gpus
    # What has reached its date is not held any more, though the task that ends it may still be on its way.
    is_held = allocation.ended_at is None and allocation.kept_until > now
    if is_held and 1 <= amount <= count:
        return ""
    if is_held:
        return f"{amount} cannot be given back: {count} {'is' if count == 1 else 'are'} held."
    said = f"Nothing is held under allocation {allocation.pk} any more"
    if allocation.ended_at is None:
        return f"{said}: it has reached its end."
    if allocation.reservation_id:
        return f"{said}."
    same = Allocation.objects.live().filter(
        tenancy=allocation.tenancy_id, flavor=allocation.flavor_id
    )
    following = (
        same.filter(starts_at__gte=allocation.ended_at)
        .order_by("starts_at", "pk")
        .first()
    )
    return (
        f"{said}: allocation {following.pk} holds {following.gpus} now."
        if following
        else f"{said}."
    )


@transaction.atomic
def give_back(
    allocation_id: int, *, gpus: int | None, by: User, now: datetime, reason: str = ""
) -> Allocation | None:
    """Give back some or all of the GPUs early; returns the allocation with the others, None when nothing is left.

    Who is not of the team says why, and the team is told that they are taken back. Raises Conflict when it has ended,
    holds fewer or is no GPUs, BadInput without that reason, NoRight for who is neither of the team nor a platform lead.
    """
    allocation = locked_with_all(allocation_id)
    if not may_give_back(by, allocation.team_id):
        raise NoRight(
            "Members of the team and platform leads give GPUs back.",
            code="not_of_the_team",
        )
    flavor, amount = checked(allocation, gpus, now=now)
    because = checked_reason(allocation.team, by, reason)
    actor, over, rest = by.as_actor(), allocation, None
    if amount == allocation.gpus:
        end(allocation, Allocation.End.RETURNED, by=by.name, now=now)
    else:
        over = end_part(
            allocation, amount, Allocation.End.RETURNED, by=by.name, now=now
        )
        rest = allocation
    flavor.put_back(amount)
    leave_room(over, gpus=amount, now=now)
    _let_go(allocation, over, amount, actor=actor, now=now, because=because)
    tell_requester(over, by=by, now=now)
    return rest


def _let_go(
    allocation: Allocation,
    over: Allocation,
    number: int,
    *,
    actor: Actor,
    now: datetime,
    because: str,
) -> None:
    """Let go of the money of what is over, all of a grant or a part of it, and have its provisioner follow."""
    freed = settle(allocation.hold, now=now, why="given back")
    follow = provisioners.end if over is allocation else provisioners.change
    follow(allocation, actor=actor, now=now)
    taken = keep_reason(over, because, by=actor.name, now=now)
    record_change(
        Kind.ALLOCATION_RETURNED,
        allocation,
        actor,
        what=over.what,
        returned=number,
        freed_usd=f"{freed.usd:.2f}",
        **taken,
    )


def checked(
    allocation: Allocation, gpus: int | None, *, now: datetime
) -> tuple[Flavor, int]:
    """Of which kind how many GPUs go back, all of them where none are said; raises Conflict where they cannot."""
    if allocation.flavor is None:
        raise Conflict(
            f"{allocation.title} is no GPUs of a pool. Let go of it on the page of its request.",
            code="no_gpus_to_give_back",
        )
    _check_begun(allocation)
    amount = allocation.gpus if gpus is None else gpus
    if lacking := why_not_held(allocation, amount, now=now):
        raise Conflict(lacking, code="not_held", field="gpus")
    return allocation.flavor, amount


def _check_begun(allocation: Allocation) -> None:
    if allocation.is_booked:
        raise Conflict(
            f"{allocation.what}: booked, and nothing is held yet. Cancel the booking on the page of its request.",
            code="not_begun",
        )


@transaction.atomic
def release(
    allocation_id: int, *, actor: Actor, now: datetime, why: str, because: str = ""
) -> bool:
    """End what takes no GPUs of a pool before its date; what it will not cost is free again. False for nothing held.

    `because` is the reason of who takes it back from its team, which is told.
    """
    allocation = locked_with_all(allocation_id)
    if allocation.flavor_id is not None or allocation.is_booked:
        return False
    if allocation.ended_at is not None or allocation.kept_until <= now:
        return False
    end(allocation, Allocation.End.RETURNED, by=actor.name, now=now)
    freed = settle(allocation.hold, now=now, why=why)
    provisioners.end(allocation, actor=actor, now=now)
    taken = keep_reason(allocation, because, by=actor.name, now=now)
    record_change(
        Kind.ALLOCATION_RETURNED,
        allocation,
        actor,
        freed_usd=f"{freed.usd:.2f}",
        reason=why,
        **taken,
    )
    return True


@transaction.atomic
def give_back_machines(
    allocation_id: int, machines: int, *, by: User, now: datetime, reason: str = ""
) -> Allocation | None:
    """Give back some or all machines of a reservation early; returns the grant of the others, None for none left.

    Who is not of the team says why, and the team is told. Raises Conflict when it has ended, holds fewer or is no
    reservation, BadInput without that reason, NoRight for who is neither of the team nor a platform lead.
    """
    allocation = locked_with_all(allocation_id)
    if not may_give_back(by, allocation.team_id):
        raise NoRight(
            "Members of the team and platform leads give machines back.",
            code="not_of_the_team",
        )
    check_machines(allocation, machines, now=now)
    because = checked_reason(allocation.team, by, reason)
    actor, over, rest = by.as_actor(), allocation, None
    if machines == allocation.count:
        end(allocation, Allocation.End.RETURNED, by=by.name, now=now)
    else:
        over = end_machines(
            allocation, machines, Allocation.End.RETURNED, by=by.name, now=now
        )
        rest = allocation
    _let_go(allocation, over, machines, actor=actor, now=now, because=because)
    tell_requester(over, by=by, now=now)
    return rest


def check_machines(allocation: Allocation, count: int, *, now: datetime) -> None:
    """Refuse what cannot go back: more machines than are held, or what reserves none; raises Conflict."""
    _check_begun(allocation)
    if allocation.reservation_id is None:
        raise Conflict(
            f"{allocation.title} is no reserved machines.", code="no_reservation"
        )
    if lacking := why_not_held(allocation, count, now=now):
        raise Conflict(lacking, code="not_held", field="machines")


def give_up(allocation: Allocation, *, why: str, now: datetime) -> None:
    """End a locked allocation that could not be made: it has cost nothing, and its GPUs are free again."""
    allocation.failure = why[:600]
    allocation.save(update_fields=["failure"])
    end(allocation, Allocation.End.FAILED, by=PORTAL.name, now=now)
    if allocation.flavor is not None:
        allocation.flavor.put_back(allocation.gpus)
        # They were in the team's quota: something else may run on them.
        leave_room(allocation, gpus=allocation.gpus, now=now)
    settle(allocation.hold, now=now, why="could not be made")
    provisioners.end(allocation, actor=PORTAL, now=now)
    record_change(Kind.ALLOCATION_FAILED, allocation, PORTAL)


@transaction.atomic
def take_back(allocation_id: int, *, actor: Actor, now: datetime, why: str) -> bool:
    """Give back all of an allocation where its team is leaving, whose queue is stopped; what it will not cost is free.

    So where its cluster is written off. False, and nothing changed, when it has ended, its date has come, the team is
    here after all, or it is no GPUs.
    """
    allocation = locked_with_all(allocation_id)
    place, flavor = allocation.tenancy, allocation.flavor
    if (
        allocation.ended_at is not None
        or allocation.is_booked
        or allocation.kept_until <= now
    ):
        return False
    if place is None or flavor is None:
        return False
    if place.is_here and place.cluster.written_off_at is None:
        return False
    end(allocation, Allocation.End.RETURNED, by=actor.name, now=now)
    flavor.put_back(allocation.gpus)
    freed = settle(allocation.hold, now=now, why=why)
    provisioners.end(allocation, actor=actor, now=now)
    record_change(
        Kind.ALLOCATION_RETURNED,
        allocation,
        actor,
        returned=allocation.gpus,
        freed_usd=f"{freed.usd:.2f}",
        reason=why,
    )
    return True


@transaction.atomic
def drop_take_downs(tenancy_id: int, *, now: datetime) -> None:
    """Have nobody take down what has ended at a place that is deleted with everything in it."""
    drop_take_downs_at(tenancy_id, now=now)


@transaction.atomic
def expire(allocation_id: int, *, now: datetime) -> bool:
    """End what has reached its date and its grace; False, and nothing changed, when it has ended or they are ahead."""
    allocation = locked_with_all(allocation_id)
    if (
        allocation.ended_at is not None
        or allocation.is_booked
        or allocation.kept_until > now
    ):
        return False
    end(allocation, Allocation.End.EXPIRED, by=PORTAL.name, now=now)
    if allocation.charged_from is None:
        settle(allocation.hold, now=now, why="over before it was there")
    if allocation.flavor is not None:
        allocation.flavor.put_back(allocation.gpus)
        leave_room(allocation, gpus=allocation.gpus, now=now)
    provisioners.end(allocation, actor=PORTAL, now=now)
    record_change(Kind.ALLOCATION_EXPIRED, allocation, PORTAL)
    return True

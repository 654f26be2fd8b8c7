"""What an approved request comes to: its time is over, it is let go early, or it could not be carried out.

Locks are taken in the order of every action: request, budgets, flavor, tenancy, audit chain.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import User
from allocations.ends import actions as ends
from allocations.models import Allocation
from approvals.fulfilment import reminders as chasing
from approvals.models import Request, Task
from approvals.renewals.renewing import renewal_of
from approvals.states import State
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from catalogue.offerings import OFFERINGS
from web.refusals import Conflict, NoRight

TAKEN_DOWN = [key for key, offering in OFFERINGS.items() if offering.is_taken_down]
MOST_AT_ONCE = 200


def due(now: datetime) -> QuerySet[Request]:
    """Approved requests of which nothing is held since `now`, which nobody was asked to take down."""
    of_request = Allocation.objects.filter(hold=OuterRef("hold"))
    held = of_request.filter(Q(ended_at=None) | Q(ended_at__gt=now))
    tasks = Task.objects.filter(request=OuterRef("pk"))
    # What goes on under a renewal is taken down when that ends.
    went_on = of_request.filter(end_reason=Allocation.End.RENEWED)
    settled = tasks.filter(Q(kind=Task.Kind.TAKE_DOWN) | Q(state__in=[Task.State.FAILED, Task.State.DROPPED]))
    is_over = ~Exists(held) & ~Exists(went_on)
    rows = Request.objects.filter(is_over, ~Exists(settled), state=State.APPROVED, offering__in=TAKEN_DOWN)
    return rows.order_by("until", "pk")


@transaction.atomic
def end(request_id: int, *, now: datetime) -> bool:
    """End what has reached its date and ask for it to be taken down; False when it is not such a one."""
    request = _locked(request_id)
    if not due(now).filter(pk=request.pk).exists():
        return False
    _close(request, actor=PORTAL, now=now)
    return True


@transaction.atomic
def let_go(request_id: int, *, by: User, now: datetime) -> Request:
    """End what takes no GPUs before its date, at the wish of its team; what it will not cost is free again.

    Raises NoRight for others than the team and platform leads, Conflict for what cannot be undone or is not held.
    """
    request = _locked(request_id)
    if not ends.may_give_back(by, request.team_id):
        raise NoRight("Members of the team and platform leads let it go.", code="not_of_the_team")
    if request.flavor_id is not None:
        raise Conflict("Its GPUs are given back, all or some; that ends it.", code="gpus_are_given_back")
    if request.of.reversible_minutes is None:
        raise Conflict("It is paid until its end, whether it is used or not.", code="not_reversible")
    if not may_let_go(request, now=now):
        raise Conflict("It is not held any more.", code="not_held")
    _let_go(request, actor=by.as_actor(), now=now)
    return request


@transaction.atomic
def end_early(request_id: int, *, actor: Actor, now: datetime) -> bool:
    """End what takes no GPUs before its date, because its team leaves; False for what cannot be undone or is over."""
    request = _locked(request_id)
    if not may_let_go(request, now=now):
        return False
    _let_go(request, actor=actor, now=now)
    return True


def may_let_go(request: Request, *, now: datetime) -> bool:
    """Whether there is something without GPUs that can end before its date."""
    reversible = request.flavor_id is None and request.of.reversible_minutes is not None
    if not reversible or request.state != State.APPROVED or request.until <= now:
        return False
    tasks = {task.kind: task for task in request.tasks.all()}
    set_up = tasks.get(Task.Kind.SET_UP)
    return Task.Kind.TAKE_DOWN not in tasks and (set_up is None or set_up.state in ALIVE)


ALIVE = (Task.State.OPEN, Task.State.TAKEN, Task.State.DONE)


def release(request: Request, *, by: User, now: datetime) -> None:
    """Let go of all that a locked request, or what renews it, holds that could not be made; it has cost nothing."""
    for held in Allocation.objects.held(now).filter(hold__in=holds_of(request)):
        if held.flavor_id is not None:
            ends.give_back(held.pk, gpus=None, by=by, now=now)
        else:
            ends.let_go(held.hold_id, actor=by.as_actor(), now=now, why="could not be carried out")


def holds_of(request: Request) -> list[int]:
    """What a request holds is held under: its own hold, and those of the renewals under which it goes on."""
    found, at = [request.hold_id], renewal_of(request)
    while at is not None:
        found.append(at.hold_id)
        at = renewal_of(at)
    return found


def _let_go(request: Request, *, actor: Actor, now: datetime) -> None:
    ends.let_go(request.hold_id, actor=actor, now=now, why="let go early")
    _close(request, actor=actor, now=now)


def _locked(request_id: int) -> Request:
    rows = Request.objects.locked()
    return rows.select_related("team", "requester", "flavor__cluster").get(pk=request_id)


def _close(request: Request, *, actor: Actor, now: datetime) -> None:
    """Ask for it to be taken down; what was never set up is not, and has cost nothing."""
    set_up = request.tasks.filter(kind=Task.Kind.SET_UP).first()
    if set_up is not None and not set_up.is_over:
        set_up.state, set_up.done_at = Task.State.DROPPED, now
        set_up.version += 1
        set_up.save()
    else:
        chasing.ask(request=request, kind=Task.Kind.TAKE_DOWN, now=now)
    Request.objects.filter(pk=request.pk).update(version=request.version + 1, updated_at=now)
    record(
        Kind.REQUEST_ENDED,
        actor=actor,
        subject=("request", request.pk),
        team_id=request.team_id,
        what=request.given_name,
    )

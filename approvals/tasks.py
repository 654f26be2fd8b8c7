"""When requests lapse and what they brought ends: queries over dates, not timers."""

from functools import partial

from celery import shared_task

from approvals.decisions import escalation, rerouting
from approvals.decisions import seats_from_directory as filling
from approvals.fulfilment import free_again
from approvals.judging import reevaluation
from approvals.models import Request
from approvals.renewals import lowering, renewing, voiding
from approvals.requests import actions
from audit import clock
from reconciling.sweeping import for_each


@shared_task(name="approvals.tasks.lapse")
def lapse() -> None:
    """End what nobody decided, or whose question nobody answered, in time, each in a transaction of its own."""
    now = clock.now()
    overdue = Request.objects.overdue(now).values_list("pk", flat=True)
    for_each(overdue, partial(actions.lapse, now=now))


@shared_task(name="approvals.tasks.look_at_routes")
def look_at_routes() -> None:
    """Remind, find stand-ins and pass on where it is due, each request in a transaction of its own."""
    now = clock.now()
    for_each(escalation.due(now), partial(escalation.look, now=now))


@shared_task(name="approvals.tasks.fill_seats")
def fill_seats() -> None:
    """Read who decides from the directory, people included who never signed in."""
    filling.fill_due(clock.now())


@shared_task(name="approvals.tasks.grant_if_automatic")
def grant_if_automatic() -> None:
    """Grant what waits and the policy approves by now, oldest first, and have the rest decided by whom it names.

    Each in a transaction of its own.
    """
    now = clock.now()
    try:
        reevaluation.sweep(now)
    finally:
        # Whatever ends the first sweep keeps nobody from being routed.
        rerouting.sweep(now)


@shared_task(name="approvals.tasks.withdraw_void")
def withdraw_void() -> None:
    """Withdraw what would keep longer what was given back, and lower what would keep longer more than is held.

    Each in a transaction of its own.
    """
    now = clock.now()
    try:
        for_each(renewing.void(), partial(voiding.withdraw_void, now=now))
    finally:
        for_each(renewing.more_than_held(now), partial(lowering.lower, now=now))


@shared_task(name="approvals.tasks.offer_again")
def offer_again() -> None:
    """Offer what was rejected for want of capacity, where there is enough by now."""
    free_again.sweep(clock.now())

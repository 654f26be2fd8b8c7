"""What happens to holdings by the clock: queries over dates, not timers."""

from functools import partial

from celery import shared_task

from allocations import actions
from allocations.bookings import actions as bookings
from allocations.budgets import actions as budget_actions
from allocations.ends import notebooks
from allocations.ends import reminders as reminding
from allocations.ends import sweep as ending
from allocations.models import Budget
from allocations.sync import keep_in_step
from allocations.use import idle as idling
from allocations.use import measuring as use
from allocations.use import over_quota
from audit import clock
from reconciling.sweeping import for_each


@shared_task(name="allocations.tasks.expire")
def expire() -> None:
    """End every allocation whose date and grace have passed, each in a transaction of its own."""
    ending.sweep(clock.now())


@shared_task(name="allocations.tasks.begin_bookings")
def begin_bookings() -> None:
    """Begin every booking whose time has come, the earliest first, each in a transaction of its own."""
    for_each(
        bookings.to_begin(clock.now()),
        lambda allocation_id: bookings.begin(allocation_id, now=clock.now()),
    )


@shared_task(name="allocations.tasks.look_at_bookings")
def look_at_bookings() -> None:
    """See what stands in the way of what begins within two days, and tell people of it once."""
    for_each(
        bookings.to_look_at(clock.now()),
        lambda allocation_id: bookings.look(allocation_id, now=clock.now()),
    )


@shared_task(name="allocations.tasks.observe")
def observe() -> None:
    """Let what has been made by now cost, and end what could not be made, each in a transaction of its own."""
    for_each(
        actions.not_charged_yet(clock.now()),
        lambda allocation_id: actions.observe(allocation_id, now=clock.now()),
    )


@shared_task(name="allocations.tasks.remind")
def remind() -> None:
    """Remind of every end of which it is time, each in a transaction of its own."""
    now = clock.now()
    for_each(reminding.due(now), partial(reminding.remind, now=now))


@shared_task(name="allocations.tasks.end_notebooks")
def end_notebooks() -> None:
    """Tell of notebooks whose GPUs end soon, and stop those whose GPUs have ended."""
    notebooks.end_with_their_gpus(now=clock.now())


@shared_task(name="allocations.tasks.look_at_work")
def look_at_work() -> None:
    """Ring for every tenancy on which work may outlive what is held; a cluster that is away delays no other."""
    for tenancy_id in over_quota.due(clock.now()):
        look_at_work_of.apply_async(args=[tenancy_id], expires=30)


@shared_task(name="allocations.tasks.look_at_work_of")
def look_at_work_of(tenancy_id: int) -> None:
    """See what runs beyond what one tenancy holds, and stop what is due; does nothing when another worker is at it."""
    over_quota.look(tenancy_id, now=clock.now)


@shared_task(name="allocations.tasks.keep_in_step")
def follow_surroundings() -> None:
    """Bring what changed about teams and clusters to every tenancy's desired state."""
    keep_in_step(now=clock.now)


@shared_task(name="allocations.tasks.sample_use")
def sample_use() -> None:
    """Count every look at a queue that was not counted yet, each in a transaction of its own."""
    for_each(use.due(), use.sample)


@shared_task(name="allocations.tasks.tell_idle")
def tell_idle() -> None:
    """Tell of everything that is held and no work has used for days, each in a transaction of its own."""
    now = clock.now()
    for_each(idling.idle(now), partial(idling.tell_idle, now=now))


@shared_task(name="allocations.tasks.tell_close")
def tell_close() -> None:
    """Tell of every budget that has reached its soft stage and was not told of, each in a transaction of its own."""
    close = Budget.objects.to_tell(clock.now()).order_by("pk")
    for_each(
        close.values_list("pk", flat=True),
        lambda budget_id: budget_actions.tell_close(
            Budget.objects.filter(pk=budget_id), now=clock.now()
        ),
    )

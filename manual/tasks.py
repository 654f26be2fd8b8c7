"""What happens to tasks of people by the clock."""

from functools import partial

from celery import shared_task

from audit import clock
from manual import reminders
from reconciling.sweeping import for_each


@shared_task(name="manual.tasks.remind")
def remind() -> None:
    """Ask after every task that is late, each in a transaction of its own."""
    now = clock.now()
    for_each(reminders.due(now), partial(reminders.remind, now=now))

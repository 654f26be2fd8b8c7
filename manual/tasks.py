"""What happens to tasks of people by the clock."""

from celery import shared_task

from audit import clock
from manual import reminders


@shared_task(name="manual.tasks.remind")
def remind() -> None:
    """Ask after every task that is late, each in a transaction of its own."""
    now = clock.now()
    for task_id in reminders.due(now):
        reminders.remind(task_id, now=now)

"""Asking after tasks whose time is over: whoever has one is reminded, then leadership is told. A sweep, no timers."""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from accounts import people
from accounts.roles import Permission
from manual.models import Task
from manual.notices import tell_late

MAX_TASKS_PER_SWEEP = 1_000


def due(now: datetime) -> list[int]:
    """The tasks of which somebody is to be told now that they are late, at most a thousand, oldest first."""
    late = Q(reminded_at=None, due_at__lte=now) | Q(
        escalated_at=None, escalate_at__lte=now
    )
    return list(
        Task.objects.unfinished()
        .filter(late)
        .values_list("pk", flat=True)[:MAX_TASKS_PER_SWEEP]
    )


@transaction.atomic
def remind(task_id: int, *, now: datetime) -> bool:
    """Remind whoever carries a late task out, and then tell leadership, each once; False when neither was due."""
    task = Task.objects.locked().described().get(pk=task_id)
    if task.is_over or task.due_at is None or task.escalate_at is None:
        return False
    reminds = task.reminded_at is None and task.due_at <= now
    escalates = task.escalated_at is None and task.escalate_at <= now
    if not (reminds or escalates):
        return False
    leads = people.holding(Permission.DECIDE_AS_PLATFORM)
    is_at_work = task.assignee is not None and not task.assignee.is_out(now)
    to = (
        [task.assignee]
        if task.assignee and is_at_work
        else people.at_work(leads, now=now)
    )
    if reminds:
        task.reminded_at = now
    if escalates:
        task.escalated_at = now
        to = [*to, *people.holding(Permission.DECIDE_AS_LEADERSHIP)]
    task.save(update_fields=["reminded_at", "escalated_at"])
    tell_late(task, to=to, now=now)
    return True

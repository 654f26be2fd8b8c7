"""A team's share of a cluster and its distance to others, with the task of whoever makes a subscription for it."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from allocations import share_actions
from approvals.fulfilment import reminders as chasing
from approvals.models import Task
from provisioning.models import Isolation, Tenancy


@transaction.atomic
def set_shares(
    tenancy_id: int,
    *,
    by: User,
    now: datetime,
    weight: int | None = None,
    isolation: str | None = None,
    priority_limit: str | None = None,
) -> Tenancy:
    """As in `allocations.share_actions`, whose errors it raises; a subscription of its own becomes a person's task.

    Choosing another level while nobody has made it drops the task.
    """
    before = share_actions.locked(tenancy_id, by=by)
    # The task before the audit chain, in the order in which finishing it takes them.
    unfinished = Task.objects.unfinished().select_for_update(no_key=True).filter(tenancy=before).first()
    tenancy = share_actions.set_shares(
        tenancy_id, by=by, now=now, weight=weight, isolation=isolation, priority_limit=priority_limit
    )
    if tenancy.isolation == before.isolation:
        return tenancy
    if unfinished is not None:
        _drop(unfinished, now=now)
    if tenancy.isolation == Isolation.SUBSCRIPTION:
        chasing.ask(kind=Task.Kind.SET_APART, tenancy=tenancy, wanted_by=by, now=now)
    return tenancy


@transaction.atomic
def drop(tenancy_id: int, *, now: datetime) -> None:
    """Let nobody make a subscription for a team that leaves the place; harmless to repeat."""
    for task in Task.objects.unfinished().select_for_update(no_key=True).filter(tenancy=tenancy_id):
        _drop(task, now=now)


def _drop(task: Task, *, now: datetime) -> None:
    task.state, task.done_at, task.version = Task.State.DROPPED, now, task.version + 1
    task.save(update_fields=["state", "done_at", "version"])

"""What changes about tasks: asked for, taken, finished, dropped."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from accounts import people
from accounts.models import Team, User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from manual.briefs import Brief
from manual.models import Task
from manual.notices import tell_assignee, tell_open, tell_requester
from provisioning.models import Tenancy
from web.refusals import BadInput, Conflict, NoRight, Stale


@transaction.atomic
def ask(
    brief: Brief,
    *,
    kind: Task.Kind,
    team: Team,
    wanted_by: User,
    hours: int,
    now: datetime,
    tenancy: Tenancy | None = None,
) -> Task:
    """Have people carry something out within so many hours, and tell the platform leads of it."""
    target = timedelta(hours=hours)
    task = Task.objects.create(
        kind=kind,
        team=team,
        wanted_by=wanted_by,
        tenancy=tenancy,
        title=brief.title,
        instruction=brief.instruction,
        facts=[list(fact) for fact in brief.facts],
        offering=brief.offering,
        request_number=brief.request,
        until=brief.until,
        created_at=now,
        due_at=now + target,
        escalate_at=now + 2 * target,
    )
    tell_open(
        task,
        to=people.at_work(people.holding(Permission.DECIDE_AS_PLATFORM), now=now),
        now=now,
    )
    return task


@transaction.atomic
def take(
    task_id: int,
    *,
    to: User | None,
    by: User,
    expected_version: int | None = None,
    now: datetime,
) -> Task:
    """Give a task to somebody (None: to nobody again); raises NoRight, Stale, BadInput, Conflict once it is over.

    Platform leads take and give tasks, to people who may carry them out.
    """
    task = _locked(task_id, by=by, expected_version=expected_version)
    if to is not None and not to.may(Permission.DECIDE_AS_PLATFORM):
        raise BadInput(
            "Platform leads carry tasks out: choose one of them.",
            code="not_a_platform_lead",
            field="to",
        )
    task.assignee = to
    task.state = Task.State.TAKEN if to else Task.State.OPEN
    task.taken_at = now if to else None
    if to is not None and to != by:
        tell_assignee(task, by=by, now=now)
    return _save(task, Kind.TASK_ASSIGNED, by, to=to.name if to else "")


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
    """Mark a task done, or impossible; both with a word about it. It becomes the person's who says so.

    What follows for the allocation that it was for is the caller's. Raises NoRight, Stale, BadInput without a note,
    Conflict once it is over.
    """
    task = _locked(task_id, by=by, expected_version=expected_version)
    if not note.strip():
        raise BadInput(
            "Say in a sentence what was done, or why it cannot be.",
            code="required",
            field="note",
        )
    task.state = Task.State.FAILED if failed else Task.State.DONE
    task.assignee, task.note, task.done_at = by, note.strip(), now
    tell_requester(task, by=by, now=now)
    return _save(
        task, Kind.TASK_FAILED if failed else Kind.TASK_DONE, by, note=task.note
    )


def drop(task: Task, *, now: datetime) -> None:
    """End a task that nobody has to carry out any more; nothing happens to one that is over."""
    unfinished = (
        Task.objects.unfinished()
        .select_for_update(no_key=True)
        .filter(pk=task.pk)
        .first()
    )
    if unfinished is None:
        return
    unfinished.state, unfinished.done_at = Task.State.DROPPED, now
    unfinished.version += 1
    unfinished.save(update_fields=["state", "done_at", "version"])


def _locked(task_id: int, *, by: User, expected_version: int | None) -> Task:
    if not by.may(Permission.DECIDE_AS_PLATFORM):
        raise NoRight("Platform leads carry tasks out.", code="not_a_platform_lead")
    task = Task.objects.locked().described().get(pk=task_id)
    if task.is_over:
        raise Conflict(
            f"The task is over: {task.get_state_display().lower()}.", code="task_over"
        )
    if expected_version is not None and task.version != expected_version:
        raise Stale(
            "The task has changed since you looked at it. Look again.", code="stale"
        )
    return task


def _save(task: Task, kind: Kind, by: User, **details: Any) -> Task:
    task.version += 1
    task.save()
    record(
        kind, actor=by.as_actor(), subject=task.subject, team_id=task.team_id, **details
    )
    return task

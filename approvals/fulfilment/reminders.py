"""What people carry out: told when it is to be done, and asked after when its time is over. A sweep, no timers."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from accounts import people
from accounts.models import User
from accounts.roles import Permission
from approvals.decisions import deciders
from approvals.decisions.seats import holders
from approvals.fulfilment import notices as task_notices
from approvals.judging.inputs import policy_in_force
from approvals.models import Request, Task
from approvals.requests.wanted import environment_of
from policy.document import ENGINEERING_LEADERSHIP, Thresholds
from provisioning.models import Tenancy

MOST = 1_000


def ask(
    *,
    now: datetime,
    kind: str = Task.Kind.SET_UP,
    request: Request | None = None,
    tenancy: Tenancy | None = None,
    wanted_by: User | None = None,
) -> Task:
    """Make a task, due by the policy in force, and tell platform leads of it."""
    target = timedelta(hours=_limits(request, now=now).carried_out_hours)
    task = Task.objects.create(
        kind=kind,
        request=request,
        tenancy=tenancy,
        wanted_by=wanted_by,
        created_at=now,
        due_at=now + target,
        escalate_at=now + 2 * target,
    )
    task_notices.tell_open(task, to=_leads(now), now=now)
    return task


def due(now: datetime) -> list[int]:
    """The tasks of which somebody is to be told now that they are late, at most a thousand, oldest first."""
    late = Q(reminded_at=None, due_at__lte=now) | Q(escalated_at=None, escalate_at__lte=now)
    return list(Task.objects.unfinished().filter(late).values_list("pk", flat=True)[:MOST])


@transaction.atomic
def look(task_id: int, *, now: datetime) -> bool:
    """Remind whoever carries a late task out, and then tell leadership, each once; False when neither was due."""
    Task.objects.select_for_update(no_key=True).get(pk=task_id)
    task = Task.objects.described().get(pk=task_id)
    if task.is_over or task.due_at is None or task.escalate_at is None:
        return False
    reminds = task.reminded_at is None and task.due_at <= now
    escalates = task.escalated_at is None and task.escalate_at <= now
    if not (reminds or escalates):
        return False
    to = [task.assignee] if task.assignee and not task.assignee.is_out(now) else _leads(now)
    if reminds:
        task.reminded_at = now
    if escalates:
        task.escalated_at = now
        to = [*to, *holders(ENGINEERING_LEADERSHIP)]
    task.save(update_fields=["reminded_at", "escalated_at"])
    task_notices.tell_late(task, to=to, now=now)
    return True


def _leads(now: datetime) -> list[User]:
    """The platform leads who are at work; all of them where none is."""
    leads = list(people.holding(Permission.DECIDE_AS_PLATFORM))
    return deciders.at_work(leads, now=now) or leads


def _limits(request: Request | None, *, now: datetime) -> Thresholds:
    policy = policy_in_force(now)[1]
    if request is None:
        return policy.thresholds
    environment = environment_of(request.of, request.asked, request.tenancy)
    flavor = request.flavor.name if request.flavor else ""
    return policy.thresholds_for(request.offering, environment, flavor, request.team.tier)

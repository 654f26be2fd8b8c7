"""What follows an approval: GPUs issued, a namespace made, or a task that a person carries out."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import F

from accounts.models import User
from accounts.roles import Permission
from accounts.teams import Project
from allocations import actions as allocations
from allocations import changes
from allocations.actions import NOTHING_HANDED_OVER, Granted, HandedOver
from allocations.models import Allocation
from allocations.schedule import Provisioner
from approvals.fulfilment import reminders as chasing
from approvals.fulfilment.ending import holds_of, release
from approvals.fulfilment.notices import tell_assignee, tell_requester
from approvals.models import Request, Task
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from catalogue.models import setting_of
from catalogue.spec import NamespaceSpec
from provisioning.actions import create_tenancy
from provisioning.models import Tenancy
from web.refusals import BadInput, Conflict, NoRight, Stale


def carry_out(
    request: Request,
    *,
    gpus: int,
    usd_per_hour: Decimal,
    actor: Actor,
    now: datetime,
    handed_over: HandedOver = NOTHING_HANDED_OVER,
) -> None:
    """Begin what an approved, locked request asked for, as the last step of the approval; raises Conflict.

    `usd_per_hour` is what all that was approved costs. Of what goes on, `handed_over`, nothing has to be set up.
    """
    if request.of.by_person and not handed_over.gpus:
        chasing.ask(request=request, now=now)
    spec = request.asked
    if isinstance(spec, NamespaceSpec):
        _make_namespace(request, spec, actor=actor, now=now)
    provisioner = Provisioner.MANUAL if request.of.by_person else Provisioner.KUBERNETES
    if request.flavor is not None and request.tenancy is not None:
        allocation = allocations.issue(
            tenancy=request.tenancy,
            flavor=request.flavor,
            gpus=gpus,
            hold=request.hold,
            until=request.until,
            actor=actor,
            now=now,
            terms=setting_of(request.of).terms,
            offering=request.offering,
            provisioner=provisioner,
            handed_over=handed_over,
        )
    else:
        allocation = allocations.issue_service(
            Granted(request.offering, request.given_name, request.place, usd_per_hour, gpus),
            team=request.team,
            tenancy=request.tenancy,
            provisioner=provisioner,
            hold=request.hold,
            until=request.until,
            now=now,
        )
    request.allocation = allocation
    request.save(update_fields=["allocation"])


def _make_namespace(request: Request, spec: NamespaceSpec, *, actor: Actor, now: datetime) -> None:
    from fleet.models import Cluster

    cluster = Cluster.objects.select_for_update(no_key=True).get(name=spec.cluster)
    if not cluster.enabled:
        raise Conflict(
            "This cluster takes no teams now. Choose another.", code="cluster_off", field="cluster"
        )
    project, _ = Project.objects.get_or_create(team=request.team, slug=spec.project)
    made = create_tenancy(
        team=request.team, cluster=cluster, project=project, environment=spec.environment, now=now
    )
    locked = Tenancy.objects.locked().get(pk=made.pk)
    changes.refresh(locked, actor=actor, now=now)
    Request.objects.filter(pk=request.pk).update(tenancy=locked)
    request.tenancy = locked


@transaction.atomic
def take(
    task_id: int, *, to: User | None, by: User, expected_version: int | None = None, now: datetime
) -> Task:
    """Give a task to somebody (None: to nobody again); raises NoRight, Stale, BadInput, Conflict once it is over.

    Platform leads take and give tasks, to people who may carry them out.
    """
    task = _locked(task_id, by=by)
    _check_seen(task, expected_version)
    if to is not None and not to.may(Permission.DECIDE_AS_PLATFORM):
        raise BadInput(
            "Platform leads carry tasks out: choose one of them.", code="not_a_platform_lead", field="to"
        )
    task.assignee = to
    task.state = Task.State.TAKEN if to else Task.State.OPEN
    task.taken_at = now if to else None
    if to is not None and to != by:
        tell_assignee(task, by=by, now=now)
    return _save(task, Kind.TASK_ASSIGNED, by, now=now, to=to.name if to else "")


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

    What is set up costs from now on. What cannot be lets go of its GPUs and its money: nothing is paid for what nobody
    gets. A team that cannot be
    set apart stays where it is, until a platform lead chooses another level.

    Raises NoRight, Stale, BadInput without a note, Conflict once it is over.
    """
    task = _locked(task_id, by=by)
    _check_seen(task, expected_version)
    if not note.strip():
        raise BadInput("Say in a sentence what was done, or why it cannot be.", code="required", field="note")
    task.state = Task.State.FAILED if failed else Task.State.DONE
    task.assignee, task.note, task.done_at = by, note.strip(), now
    if task.kind == Task.Kind.SET_UP:
        _set_up(task.asked, failed=failed, by=by, now=now)
    tell_requester(task, by=by, now=now)
    return _save(task, Kind.TASK_FAILED if failed else Kind.TASK_DONE, by, now=now, note=task.note)


def _set_up(request: Request, *, failed: bool, by: User, now: datetime) -> None:
    """What was set up costs from now on; what could not be is let go."""
    if failed:
        release(request, by=by, now=now)
        return
    for row in Allocation.objects.live().filter(hold__in=holds_of(request)):
        allocations.begin_charging(row.pk, now=now)


def _locked(task_id: int, *, by: User) -> Task:
    if not by.may(Permission.DECIDE_AS_PLATFORM):
        raise NoRight("Platform leads carry tasks out.", code="not_a_platform_lead")
    # The request first, in the order of every action: what ends it at the same moment waits, or is waited for.
    rows = Request.objects.locked()
    request = rows.select_related("team", "requester", "flavor__cluster").filter(tasks=task_id).first()
    tasks = Task.objects.select_for_update(of=("self",), no_key=True)
    task = tasks.select_related("assignee", "tenancy__team", "tenancy__cluster", "wanted_by").get(pk=task_id)
    task.request = request
    if task.is_over:
        raise Conflict(f"The task is over: {task.get_state_display().lower()}.", code="task_over")
    return task


def _check_seen(task: Task, expected_version: int | None) -> None:
    if expected_version is not None and task.version != expected_version:
        raise Stale("The task has changed since you looked at it. Look again.", code="stale")


def _save(task: Task, kind: Kind, by: User, *, now: datetime, **details: str) -> Task:
    task.version += 1
    task.save()
    if task.request_id is None:
        subject = ("tenancy", task.place.pk)
    else:
        # Whoever has the request's page open sees it, and its ETag is another one.
        Request.objects.filter(pk=task.request_id).update(version=F("version") + 1, updated_at=now)
        subject = ("request", task.request_id)
    record(kind, actor=by.as_actor(), subject=subject, team_id=task.team.pk, **details)
    return task

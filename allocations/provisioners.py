"""Who makes an allocation true: for each provisioner what it does when one begins, changes or ends, and how it stands.

Everything here runs in the transaction that changes the allocation, whose budgets, flavor and tenancy are locked. What
takes time, or calls anything outside, is left to the provisioner's own workers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, Q, Sum

from accounts.teams import Project
from allocations.changes import (
    check_volume,
    drop_take_down,
    ended_namespace,
    refresh_of,
)
from allocations.models import Allocation, Brake
from allocations.schedule import WITH_DATA, Phase, Provisioner, State, Status
from allocations.schedule import state_of as state_by_schedule
from audit.actors import Actor
from capacity.models import ModelEndpoint, Reservation
from capacity.openai import actions as model_endpoints
from capacity.openai.places import place_of as place_of_model
from capacity.reservations import actions as reservations
from capacity.reservations.actions import Place
from capacity.reservations.places import place_of as place_of_reservation
from fleet.models import Cluster
from manual import actions as tasks
from manual.briefs import Brief, Fact, Instructions
from manual.models import Task
from notebooks.servers import actions as notebooks
from notebooks.servers.states import State as ServerState
from notebooks.servers.states import StopReason
from provisioning.actions import create_tenancy
from provisioning.desired.spec import Volume
from provisioning.desired.volumes import claim_name
from provisioning.git.repository import INDEX, claim_file
from provisioning.models import Tenancy
from web.refusals import Conflict, Refused

Change = Callable[..., None]

STOPPED = (ServerState.STOPPING, ServerState.STOPPED)
# How long the GPUs of a notebook that did not start are kept for it without charge.
STARTED_AGAIN_WITHIN = timedelta(hours=1)
# From when on a notebook that is started again is paid for, though it never came up: its GPUs are in the team's quota
# all the while, where anything else may run on them.
FREE_AFTER_FIRST_START = timedelta(hours=1)
START_AGAIN = (
    "Start the notebook again on its page within an hour, or its GPUs go back. Started again an hour or more after "
    "the first time, it is paid for, whether it comes up or not."
)
NOT_STARTED_AGAIN = "It was not started again within an hour, so its GPUs went back."
REMOVED = "The notebook was removed before it came up, so its GPUs went back."


@dataclass(frozen=True, kw_only=True)
class Functions:
    """What a provisioner does; `begin`, `change` and `end` take the allocation, `actor` and `now`."""

    begin: Change
    change: Change
    end: Change
    status: Callable[[Allocation], Status]


def begin(allocation: Allocation, *, is_new: bool, actor: Actor, now: datetime) -> None:
    """Have what was granted made; of what goes on under a renewal nothing has to be set up."""
    do = PROVISIONERS[Provisioner(allocation.provisioner)]
    (do.begin if is_new else do.change)(allocation, actor=actor, now=now)
    tenancy, expected = allocation.tenancy, allocation.generation
    if tenancy is not None and (expected is None or expected > tenancy.generation):
        allocation.generation = tenancy.generation
        allocation.save(update_fields=["generation"])


def change(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    """Have a change of its size or its end made true."""
    PROVISIONERS[Provisioner(allocation.provisioner)].change(
        allocation, actor=actor, now=now
    )


def end(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    """Have what was granted taken away, because it has ended and does not go on under a renewal."""
    PROVISIONERS[Provisioner(allocation.provisioner)].end(
        allocation, actor=actor, now=now
    )


def status(allocation: Allocation) -> Status:
    """How far its provisioner has come; reads what the row points at, and hardly asks for anything else."""
    if allocation.end_reason == Allocation.End.FAILED:
        return Status(Phase.FAILED, allocation.failure)
    return PROVISIONERS[Provisioner(allocation.provisioner)].status(allocation)


def state_of(allocation: Allocation, *, now: datetime) -> State:
    """Where an allocation stands between its grant and its end: the one state that page, API and mail tell."""
    if allocation.is_booked:
        return State.BOOKED
    return state_by_schedule(
        status(allocation),
        starts=allocation.starts_at,
        until=allocation.until,
        ended=allocation.ended_at is not None or allocation.kept_until <= now,
        now=now,
    )


def is_there_at_once(provisioner: Provisioner, cluster: Cluster | None) -> bool:
    """Whether what is granted is there within seconds: made by the portal on a cluster that answers."""
    return provisioner is Provisioner.KUBERNETES and (
        cluster is None or not cluster.is_away
    )


def hindrance(allocation: Allocation) -> Refused | None:
    """Why its provisioner could not make it now, as far as the portal knows without asking; None otherwise."""
    try:
        if allocation.provisioner == Provisioner.AZURE:
            _place_in_azure(allocation)
    except Refused as refusal:
        return refusal
    return None


def machines_left_over(allocation: Allocation, *, now: datetime) -> int:
    """Machines that the reservation of its place has, and that nobody holds from now on: it may take them over.

    Raises Refused where there is no such place in Azure any more.
    """
    row = reservations.at_place(allocation.team, _place_in_azure(allocation)).first()
    return 0 if row is None else max(0, row.machines - _granted(row, now=now))


def _begin_on_cluster(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    if allocation.offering == NAMESPACE:
        allocation.tenancy = _namespace(allocation, now=now)
        allocation.save(update_fields=["tenancy"])
    if allocation.offering == VOLUME and allocation.tenancy is not None:
        check_volume(
            allocation.tenancy, Volume.asked(allocation.spec), but=allocation.pk
        )
    if allocation.offering in WITH_DATA:
        drop_take_down(allocation, now=now)
    refresh_of(allocation, actor=actor, now=now)


def _end_on_cluster(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    tenancy = allocation.tenancy
    # Where the team has left, the portal deletes the namespace with everything in it.
    is_deleted = tenancy is not None and not tenancy.stands
    if allocation.offering in WITH_DATA and not is_deleted:
        # What is in it is gone with it: a person asks before that, and nothing is deleted by itself.
        _take_down(allocation, now=now)
    refresh_of(allocation, actor=actor, now=now)


def _status_on_cluster(allocation: Allocation) -> Status:
    tenancy = allocation.tenancy
    if tenancy is None:
        return Status(Phase.READY)
    # A pass that had read an older generation may end after the grant: it says nothing of it.
    generation = allocation.generation
    was_true = generation is not None and tenancy.observed_generation >= generation
    if was_true or tenancy.is_settled:
        return Status(Phase.READY)
    if tenancy.is_true:
        return Status(Phase.PENDING)
    return Status(
        Phase.STUCK if tenancy.has_failed else Phase.PENDING, tenancy.ready["message"]
    )


def _begin_in_hub(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    """Have the notebook launched for whoever asked; its worker waits until the quota is on the cluster."""
    refresh_of(allocation, actor=actor, now=now)
    spec, tenancy = allocation.spec, allocation.tenancy
    assert tenancy is not None  # noqa: S101 - GPUs of a flavor have one, as a constraint says
    allocation.notebook = notebooks.launch_for(
        tenancy,
        spec["profile"],
        gpus=allocation.gpus,
        owner=allocation.requester,
        key=f"allocation-{allocation.pk}",
        now=now,
    )
    allocation.save(update_fields=["notebook"])


def _end_in_hub(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    refresh_of(allocation, actor=actor, now=now)
    notebook = allocation.notebook_id
    # Where a part of what ended goes on under a renewal, it may carry the notebook still: `ends.notebooks` looks.
    if (
        notebook is not None
        and not Allocation.objects.granted().filter(notebook=notebook).exists()
    ):
        notebooks.stop_because(notebook, StopReason.END, now=now)


def _status_in_hub(allocation: Allocation) -> Status:
    server = allocation.notebook
    if allocation.charged_from is not None:
        return Status(Phase.READY)
    if server is None:
        # Nobody will start anything on its GPUs, which its team could use for something else meanwhile.
        return Status(
            Phase.READY if allocation.ended_at is not None else Phase.FAILED, REMOVED
        )
    if server.launched_at >= server.created_at + FREE_AFTER_FIRST_START:
        quota = _status_on_cluster(allocation)
        if quota.phase is Phase.READY:
            return quota
    # Stopped, it may be started again at any time: its GPUs are kept for that, whether it ever came up or not.
    if server.ready_at or server.ran_seconds or server.state in STOPPED:
        return Status(Phase.READY)
    if server.state == ServerState.FAILED and server.stopped_at is not None:
        return Status(
            Phase.STUCK,
            f"{server.message} {START_AGAIN}",
            gives_up_at=server.stopped_at + STARTED_AGAIN_WITHIN,
            failure=f"{server.message} {NOT_STARTED_AGAIN}",
        )
    return Status(Phase.PENDING, server.message)


def _place_in_azure(allocation: Allocation) -> Place:
    return place_of_reservation(
        allocation.spec, usd_per_hour=allocation.usd_per_hour / allocation.count
    )


def _begin_in_azure(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    """Have it reserved: what a team is granted of one size in one zone adds up to one reservation."""
    place = _place_in_azure(allocation)
    row = reservations.of_place(
        allocation.team, place, machines=allocation.count, now=now
    )
    allocation.reservation = row
    allocation.save(update_fields=["reservation"])
    # What ends now may be for another booking, too: its own end makes the reservation smaller, no beginning does.
    machines = max(row.machines, _granted(row, now=now))
    reservations.want(row, machines, actor=actor, now=now)


def _change_in_azure(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    if allocation.reservation_id is None:
        return
    row = reservations.locked(allocation.reservation_id)
    reservations.want(row, _granted(row, now=now), actor=actor, now=now)


def _status_in_azure(allocation: Allocation) -> Status:
    row = allocation.reservation if allocation.charged_from is None else None
    return (
        Status(Phase.READY)
        if row is None
        else _status_of_part(allocation, row, row.message)
    )


def _begin_in_openai(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    """Have it deployed: what a team is granted of one model in one region adds up to one deployment."""
    place = place_of_model(allocation.spec)
    row = model_endpoints.of_place(
        allocation.team, place, capacity=allocation.count, now=now
    )
    allocation.endpoint = row
    allocation.save(update_fields=["endpoint"])
    _change_in_openai(allocation, actor=actor, now=now)


def _change_in_openai(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    if allocation.endpoint_id is None:
        return
    row = model_endpoints.locked(allocation.endpoint_id)
    model_endpoints.want(row, _granted(row, now=now), actor=actor, now=now)


def _status_in_openai(allocation: Allocation) -> Status:
    row = allocation.endpoint if allocation.charged_from is None else None
    return (
        Status(Phase.READY)
        if row is None
        else _status_of_part(allocation, row, row.account.message)
    )


def _granted(row: Reservation | ModelEndpoint, *, now: datetime) -> int:
    """What all that is held of it adds up to.

    What has reached its date counts no more, though it ends a moment later, unless ends are held back: a booking from
    that date on takes over what it had, and is not asked of Azure beside it.
    """
    are_held_back = Brake.objects.open().exists()
    rows = Allocation.objects
    return int(
        (rows.live() if are_held_back else rows.held(now))
        .filter(_of(row))
        .aggregate(all=Sum("count", default=0))["all"]
    )


def _status_of_part(
    allocation: Allocation, row: Reservation | ModelEndpoint, message: str
) -> Status:
    """How far a grant has come of which something in Azure is made, together with others."""
    if row.is_true:
        return Status(Phase.READY)
    if row.is_refused:
        # Of several that wait, what was granted last is too much; the others are tried without it.
        waiting = Allocation.objects.live().filter(_of(row), charged_from=None)
        if (
            waiting.order_by("-pk").values_list("pk", flat=True).first()
            == allocation.pk
        ):
            return Status(Phase.FAILED, row.refusal)
    return Status(Phase.STUCK if message else Phase.PENDING, message)


def _of(row: Reservation | ModelEndpoint) -> Q:
    return Q(reservation=row) if isinstance(row, Reservation) else Q(endpoint=row)


def _begin_by_hand(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    words = Instructions.from_json(allocation.instructions)
    _ask(allocation, Task.Kind.SET_UP, words.set_up, now=now)
    _change_by_hand(allocation, actor=actor, now=now)


def _change_by_hand(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    # Its GPUs are kept for it in the team's quota, whoever makes what they are for.
    refresh_of(allocation, actor=actor, now=now)
    task = Task.objects.unfinished().filter(allocations=allocation).first()
    if task is not None:
        _follow_grants(task)


def _end_by_hand(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    refresh_of(allocation, actor=actor, now=now)
    task = allocation.task
    if task is None:
        return
    if Allocation.objects.granted().filter(task=task).exists():
        # A part of what ended goes on under a renewal: it is set up, or stays, for that.
        if not task.is_over:
            _follow_grants(task)
    elif not task.is_over:
        tasks.drop(task, now=now)
    elif task.state == Task.State.DONE:
        _take_down(allocation, now=now)
        # What ended before, while a part of it went on, is taken down with it.
        Allocation.objects.filter(task=task).update(task=allocation.task)


def _follow_grants(task: Task) -> None:
    """Have a task say until when it is needed, and how many GPUs are left, by all the grants that it is for."""
    granted = Allocation.objects.granted().filter(task=task)
    sums = granted.aggregate(until=Max("until"), gpus=Sum("gpus", default=0))
    facts = [fact for fact in task.facts if fact[0] != KEPT]
    first = Allocation.objects.filter(task=task).order_by("pk").first()
    if first is not None and first.flavor_id is not None:
        asked = first.gpus + sum(part.gpus for part in first.parts.all())
        # What it was asked for stays as it was; some of its GPUs went back before anybody had made it.
        if sums["gpus"] < asked:
            facts.append([KEPT, str(sums["gpus"])])
    Task.objects.filter(pk=task.pk).update(until=sums["until"], facts=facts)


def _status_by_hand(allocation: Allocation) -> Status:
    task = allocation.task
    if allocation.charged_from is not None or task is None:
        return Status(Phase.READY)
    if task.state == Task.State.FAILED:
        return Status(Phase.FAILED, task.note)
    return Status(Phase.READY if task.state == Task.State.DONE else Phase.PENDING)


KEPT = "GPUs still kept for it"
NAMESPACE, VOLUME = "namespace", "volume"
PROVISIONERS: Mapping[Provisioner, Functions] = {
    Provisioner.KUBERNETES: Functions(
        begin=_begin_on_cluster,
        change=refresh_of,
        end=_end_on_cluster,
        status=_status_on_cluster,
    ),
    Provisioner.JUPYTERHUB: Functions(
        begin=_begin_in_hub, change=refresh_of, end=_end_in_hub, status=_status_in_hub
    ),
    Provisioner.AZURE: Functions(
        begin=_begin_in_azure,
        change=_change_in_azure,
        end=_change_in_azure,
        status=_status_in_azure,
    ),
    Provisioner.OPENAI: Functions(
        begin=_begin_in_openai,
        change=_change_in_openai,
        end=_change_in_openai,
        status=_status_in_openai,
    ),
    Provisioner.MANUAL: Functions(
        begin=_begin_by_hand,
        change=_change_by_hand,
        end=_end_by_hand,
        status=_status_by_hand,
    ),
}


def _namespace(allocation: Allocation, *, now: datetime) -> Tenancy:
    """The tenancy that was granted, locked; raises Conflict where the cluster takes no teams any more."""
    spec = allocation.spec
    named = Cluster.objects.select_for_update(no_key=True).filter(name=spec["cluster"])
    cluster = named.first()
    # One that was removed meanwhile takes none either.
    if cluster is None or not cluster.enabled:
        raise Conflict(
            "This cluster takes no teams now. Choose another.",
            code="cluster_off",
            field="cluster",
        )
    project, _ = Project.objects.get_or_create(
        team=allocation.team, slug=spec["project"]
    )
    environment = spec["environment"]
    there = ended_namespace(project, cluster, environment)
    if there is None:
        there = create_tenancy(
            team=allocation.team,
            cluster=cluster,
            project=project,
            environment=environment,
            now=now,
        )
    return Tenancy.objects.locked().get(pk=there.pk)


def _where_it_stands(allocation: Allocation) -> tuple[Fact, ...]:
    """What whoever takes it down has to find on the cluster, and how."""
    tenancy = allocation.tenancy
    if tenancy is None or allocation.offering not in WITH_DATA:
        return ()
    if allocation.offering == VOLUME:
        claim = claim_name(allocation.spec["name"])
        on_cluster = ("Claim to delete", f"{claim} in {tenancy.namespace}")
        if tenancy.cluster.is_written_to:
            return (on_cluster,)
        # Or the repository would have it made anew.
        file = claim_file(tenancy.cluster.name, tenancy.namespace, claim)
        return (
            ("File to delete first", f"{file}, with its line in {INDEX} beside it"),
            on_cluster,
        )
    return (
        (
            "Leaves by",
            f"“Leave a cluster” on the page of {tenancy.team.name}: {tenancy.namespace}",
        ),
    )


def _take_down(allocation: Allocation, *, now: datetime) -> None:
    words = Instructions.from_json(allocation.instructions)
    _ask(
        allocation,
        Task.Kind.TAKE_DOWN,
        f"Its time is over: ask {allocation.requester.name}, then take {words.thing}{words.at} down.",
        facts=_where_it_stands(allocation),
        now=now,
    )


def _ask(
    allocation: Allocation,
    kind: Task.Kind,
    instruction: str,
    *,
    now: datetime,
    facts: Sequence[Fact] = (),
) -> None:
    words = Instructions.from_json(allocation.instructions)
    allocation.task = tasks.ask(
        Brief(
            title=words.title,
            instruction=instruction,
            facts=(*words.facts, *facts),
            offering=allocation.offering,
            request=allocation.hold.request_id,
            until=allocation.until,
        ),
        kind=kind,
        team=allocation.team,
        wanted_by=allocation.requester,
        hours=allocation.task_hours,
        now=now,
    )
    allocation.save(update_fields=["task"])

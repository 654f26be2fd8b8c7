"""What every change of an allocation does: locks, rows, money, desired state, record.

Locks are taken in one order: budgets, a person, the flavor, the subscription whose quotas are taken from, the tenancy,
its notebooks, their hub, the audit chain.
"""

from datetime import date, datetime
from typing import Any

from django.db.models import Q

from accounts.teams import Project
from allocations import webhooks
from allocations.budgets import balances as budgets
from allocations.budgets import money
from allocations.desired_state import desired
from allocations.models import Allocation, Hold, Leftover
from allocations.places import in_queue, place_of
from allocations.schedule import WITH_DATA, Provisioner
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from capacity.reservations.places import quota_place
from capacity.subscriptions.following import lock_quotas, lock_quotas_of
from fleet.models import Cluster, Flavor
from manual import actions as tasks
from manual.models import TO_BE_DONE, Task
from notebooks.servers.models import NotebookServer
from notices.channels.events import WebhookEvent
from provisioning.actions import publish
from provisioning.desired.spec import MOST_VOLUMES, Volume
from provisioning.models import Tenancy
from web.refusals import Conflict

# What has ended and nobody has taken down yet.
NOT_TAKEN_DOWN = Q(
    ended_at__isnull=False, task__kind=Task.Kind.TAKE_DOWN, task__state__in=TO_BE_DONE
)


def refresh(tenancy: Tenancy, *, actor: Actor, now: datetime) -> int:
    """Publish the desired state that the live allocations of a locked tenancy add up to; returns its generation."""
    queue = in_queue(tenancy)
    spec = desired(
        place_of(tenancy),
        kinds=[each.kind for each in queue],
        held={each.kind.name: each.held for each in queue},
        over={each.kind.name: each.over for each in queue},
        **_volumes(tenancy),
    )
    return publish(tenancy, spec=spec, actor=actor, now=now)


def _volumes(tenancy: Tenancy) -> dict[str, list[Volume]]:
    """The volumes that the tenancy holds, and those that have ended and are not taken down yet."""
    rows = Allocation.objects.filter(tenancy=tenancy, offering="volume")
    there = Q(ended_at=None) | NOT_TAKEN_DOWN
    found: dict[str, list[Volume]] = {"volumes": [], "ended_volumes": []}
    for spec, ended_at in rows.filter(there).values_list("spec", "ended_at"):
        volume = Volume.asked(spec)
        found["volumes" if ended_at is None else "ended_volumes"].append(volume)
    return found


def check_volume(tenancy: Tenancy, volume: Volume, *, but: int = 0) -> None:
    """Refuse a second volume of one name in a namespace, and more volumes than it may have; raises Conflict.

    `but` is the allocation that is named so.

    One that has ended and still stands can be had again with what is in it, as it was: no claim changes its access,
    and few classes of storage let it grow.
    """
    rows = Allocation.objects.filter(tenancy=tenancy, offering="volume")
    live = rows.live().exclude(pk=but)
    names = list(live.values_list("spec__name", flat=True))
    if volume.name in names:
        raise Conflict(
            f"There is a volume {volume.name} in {tenancy.namespace} already. Choose another name.",
            code="name_taken",
            field="name",
        )
    if len(names) >= MOST_VOLUMES:
        raise Conflict(
            f"{tenancy.namespace} has {MOST_VOLUMES} volumes, as many as there may be. Let one of them go first.",
            code="too_many_volumes",
            field="name",
        )
    same = rows.filter(spec__name=volume.name)
    for spec in same.filter(NOT_TAKEN_DOWN).values_list("spec", flat=True):
        if spec["access"] != volume.access or spec["gib"] != volume.gib:
            raise Conflict(
                f"The volume {volume.name} has ended and is not taken down yet. Ask for it as it was, "
                f"{spec['gib']} GiB with the same access, or choose another name.",
                code="still_there",
                field="name",
            )


def ended_namespace(
    project: Project, cluster: Cluster, environment: str
) -> Tenancy | None:
    """The namespace of a project's environment that was granted, has ended and still stands; None for any other."""
    there = (
        Tenancy.objects.here()
        .filter(project=project, cluster=cluster, environment=environment)
        .first()
    )
    if there is None:
        return None
    granted = Allocation.objects.filter(tenancy=there, offering="namespace")
    return there if granted.exists() and not granted.live().exists() else None


def drop_take_down(allocation: Allocation, *, now: datetime) -> None:
    """Have nobody take down what was granted anew before it was: the volume or the namespace goes on as it is."""
    ended = Allocation.objects.filter(
        NOT_TAKEN_DOWN, tenancy=allocation.tenancy, offering=allocation.offering
    )
    if allocation.offering == "volume":
        ended = ended.filter(spec__name=allocation.spec["name"])
    for row in ended.select_related("task"):
        if row.task is not None:
            tasks.drop(row.task, now=now)


def drop_take_downs_at(tenancy_id: int, *, now: datetime) -> None:
    """Have nobody take down what is deleted with its place."""
    ended = Allocation.objects.filter(
        NOT_TAKEN_DOWN, tenancy=tenancy_id, offering__in=WITH_DATA
    )
    for row in ended.select_related("task"):
        if row.task is not None:
            tasks.drop(row.task, now=now)


def refresh_of(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    # What is being deleted has no desired state any more.
    if allocation.tenancy is not None and allocation.tenancy.stands:
        refresh(allocation.tenancy, actor=actor, now=now)


def locked_with_all(allocation_id: int, *, taking: bool = False) -> Allocation:
    """The allocation with its budgets, flavor, tenancy and notebook locked, read after the locks.

    Where GPUs or machines are to be taken, the quotas of Azure are locked, too.
    """
    found = Allocation.objects.select_related("team", "flavor__cluster").get(
        pk=allocation_id
    )
    budgets.lock_all(found.team, [])
    if found.flavor_id is not None:
        Flavor.objects.select_for_update(no_key=True).get(pk=found.flavor_id)
    if taking:
        _lock_quotas(found)
    if found.tenancy_id is not None:
        Tenancy.objects.locked().get(pk=found.tenancy_id)
    if found.notebook_id is not None:
        NotebookServer.objects.locked().get(pk=found.notebook_id)
    rows = Allocation.objects.described().select_related(
        "tenancy__team", "tenancy__project", "requester"
    )
    return rows.get(pk=allocation_id)


def _lock_quotas(allocation: Allocation) -> None:
    if allocation.provisioner == Provisioner.AZURE:
        lock_quotas_of(quota_place(allocation.spec)[0])
    elif allocation.flavor is not None and allocation.flavor.azure_nodes is not None:
        lock_quotas(allocation.flavor.cluster)


def end(allocation: Allocation, reason: str, *, by: str, now: datetime) -> None:
    allocation.ended_at = (
        min(now, allocation.kept_until) if reason == Allocation.End.EXPIRED else now
    )
    allocation.end_reason, allocation.ended_by = reason, by
    allocation.save(update_fields=["ended_at", "end_reason", "ended_by"])
    webhooks.tell_of(WebhookEvent.ALLOCATION_ENDED, allocation, now=now)


def end_part(
    allocation: Allocation, gpus: int, reason: str, *, by: str, now: datetime
) -> Allocation:
    """End some of the GPUs of an allocation, which goes on with the others; returns the part as it has ended."""
    part = Allocation.objects.get(pk=allocation.pk)
    part.pk, part.part_of = None, allocation
    part.tenancy, part.flavor, part.hold = (
        allocation.tenancy,
        allocation.flavor,
        allocation.hold,
    )
    part.gpus, part.remind_at = gpus, None
    part.usd_per_hour = gpus * allocation.price_per_gpu_hour
    part.ended_at, part.end_reason, part.ended_by = now, reason, by
    part.save(force_insert=True)
    allocation.gpus -= gpus
    allocation.usd_per_hour = allocation.gpus * allocation.price_per_gpu_hour
    allocation.save(update_fields=["gpus", "usd_per_hour"])
    webhooks.tell_of(WebhookEvent.ALLOCATION_ENDED, part, now=now)
    return part


def end_machines(
    allocation: Allocation, machines: int, reason: str, *, by: str, now: datetime
) -> Allocation:
    """End some of the machines of a reservation, which goes on with the others; returns the part as it has ended."""
    part = Allocation.objects.get(pk=allocation.pk)
    part.pk, part.part_of = None, allocation
    part.hold, part.reservation, part.remind_at = (
        allocation.hold,
        allocation.reservation,
        None,
    )
    part.ended_at, part.end_reason, part.ended_by = now, reason, by
    whole = (allocation.count, allocation.gpus, allocation.usd_per_hour)
    for row, left in ((part, machines), (allocation, allocation.count - machines)):
        row.count, row.gpus, row.usd_per_hour = (
            left,
            whole[1] * left // whole[0],
            whole[2] * left / whole[0],
        )
        row.spec = {**row.spec, "instances": left}
        row.title = row.title.replace(f"{whole[0]} × ", f"{left} × ", 1)
    part.save(force_insert=True)
    allocation.save(update_fields=["count", "gpus", "usd_per_hour", "spec", "title"])
    webhooks.tell_of(WebhookEvent.ALLOCATION_ENDED, part, now=now)
    return part


def leave_room(allocation: Allocation, *, gpus: int, now: datetime) -> None:
    """Keep room for what still runs on GPUs that were just let go, until somebody has looked."""
    tenancy, flavor = allocation.tenancy, allocation.flavor
    assert tenancy is not None  # noqa: S101 - the callers have GPUs, which have both
    assert flavor is not None  # noqa: S101
    Leftover.objects.create(
        allocation=allocation,
        tenancy=tenancy,
        flavor=flavor,
        gpus=gpus,
        since=now,
        stop_at=allocation.terms.stop_at(now),
        look_at=now,
    )


def settle(hold: Hold, *, now: datetime, why: str) -> money.Amount:
    """Free what the allocations of a hold, past and present, will not cost."""
    needed: dict[date, money.Amount] = {}
    for row in Allocation.objects.filter(hold=hold):
        parts = row.by_month(
            start=row.charge_start(row.starts_at), end=row.charged_until
        )
        for month, part in parts.items():
            needed[month] = needed.get(month, money.NOTHING).plus(part)
    return budgets.settle(hold, parts=needed, now=now, why=why)


def record_change(
    kind: Kind, allocation: Allocation, actor: Actor, **details: Any
) -> None:
    record(
        kind,
        actor=actor,
        subject=("allocation", allocation.pk),
        team_id=allocation.team_id,
        what=details.pop("what", allocation.what),
        gpus=allocation.gpus,
        flavor="" if allocation.flavor is None else allocation.flavor.name,
        reference=allocation.hold.reference,
        **details,
    )

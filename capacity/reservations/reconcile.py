"""What a worker does for a reservation: look at Azure, do the one next step, see the step through, and count its use.

One worker at a time holds a reservation's lease. What Azure takes long for is begun, its token stored, and asked after
with short calls: a worker that dies is followed by one that goes on with the same operation. Names follow from the
reservation's number, so what was begun before a token was stored is found, and not begun twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import SystemRandom
from typing import Any

from audit.actors import PORTAL
from audit.events import Kind
from capacity import operations
from capacity.connection import Azure, azure_of
from capacity.operations import (
    BUSY_WAIT,
    LOOK_AGAIN,
    PARKED,
    REFUSALS,
    RETRIES,
    TOLD_AFTER,
    Clock,
)
from capacity.reservations import actions
from capacity.reservations.enqueue import queue
from capacity.reservations.models import Reservation, ReservationQuerySet
from capacity.reservations.naming import NUMBER, group_name, pool_name, reservation_name
from capacity.reservations.plan import (
    Found,
    FoundPool,
    Observed,
    Step,
    Wanted,
    next_step,
)
from capacity.reservations.states import State, machines_using
from capacity.subscriptions.actions import read_soon
from capacity.subscriptions.ids import aks_of
from capacity.tagging import tags
from connectors.azure.compute import Reservation as InAzure
from connectors.azure.container_service import AgentPool, NewPool
from connectors.azure.ids import same
from connectors.azure.session import DONE, Operation
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from provisioning.clusters.installation import mark
from reconciling import failpoints
from reconciling.backoff import Backoff
from reconciling.controller import Controller
from reconciling.lease import Lease

# There may be machines later; nobody knows when.
NO_CAPACITY = Backoff(timedelta(minutes=2), timedelta(hours=1))
# What was refused for good may still be paid: somebody took it away in Azure, where it does not come back. A grant that
# waits for it fails long before the next try.
REFUSED = Backoff(LOOK_AGAIN, timedelta(hours=1))
NOT_JOINED = (
    "Its node pool takes its machines from elsewhere: AKS did not join it to the reservation. See that the cluster's "
    "identity may use the reservation group."
)
REMADE = "The portal made the pool anew once, and does so again when a platform lead has it tried again."
BUSY = frozenset({"Creating", "Updating", "Deleting", "Scaling", "Upgrading"})
_random = SystemRandom()


def _rows() -> ReservationQuerySet:
    return Reservation.objects.select_related("team", "flavor__cluster").in_azure()


def _park(row: Reservation, now: datetime) -> list[str]:
    row.message = f"{PARKED} They have it tried again on its page."
    actions.append(Kind.RESERVATION_PARKED, row, actor=PORTAL)
    return ["message"]


CONTROLLER: Controller[Reservation] = Controller(rows=_rows, queue=queue, park=_park)


@dataclass(frozen=True)
class Look:
    """What Azure has of a reservation: as the plan reads it, and with its use."""

    observed: Observed
    reservation: InAzure | None


def reconcile(reservation_id: int, *, now: Clock) -> bool:
    """Do what is due for a reservation; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(reservation_id, now=now(), only_due=True)
    if lease is None:
        return False
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, error, now=now())
    ):
        azure = azure_of(lease.row.subscription)
        stored = lease.row.operation
        if stored is not None:
            # Of what was refused for another number, nobody knows whether Azure refuses the number that is wanted now.
            is_wanted = stored.get("generation") == lease.row.generation
            operations.see_through(lease, azure, now, is_wanted=is_wanted)
        _go_on(lease, azure, now)
    return True


def _go_on(lease: Lease[Reservation], azure: Azure, now: Clock) -> None:
    """Take one step after the other, until one is begun that takes Azure long, or there is nothing left to do."""
    row = lease.row
    for _ in Step:
        look = _look(azure, row)
        step = next_step(_wanted(row), look.observed)
        if step is Step.NOTHING:
            _as_wanted(lease, look, now())
            return
        if step is Step.WAIT:
            lease.finish(
                requeue_at=now() + BUSY_WAIT,
                now=now(),
                attempts=0,
                message=_in_the_way(row, look),
                **_use(look, now()),
            )
            return
        lease.check(now=now())
        if step in (Step.RESERVE, Step.RESIZE):
            # Azure may refuse it, and what there is instead is to be seen then.
            lease.write(**_use(look, now()))
        operation = STEPS[step](azure, row)
        failpoints.reach(f"reservation.{step}")
        if step is Step.DELETE_POOL and row.machines:
            _remember_remade(lease)
        if not operation.is_done:
            operations.keep(
                lease, operation, step, now=now(), generation=row.generation
            )
            failpoints.reach("reservation.stored")
            wait = operations.wait_for(operation)
            lease.finish(
                requeue_at=now() + wait,
                now=now(),
                attempts=0,
                message="",
                **_use(look, now()),
            )
            return
    raise TemporaryError("Azure takes every step and does not keep it.")


def _wanted(row: Reservation) -> Wanted:
    return Wanted(
        machines=row.machines,
        with_pool=row.flavor_id is not None,
        may_remake_pool=not row.pool_remade,
    )


def _remember_remade(lease: Lease[Reservation]) -> None:
    """Keep that the node pool is made anew: one that AKS does not join then either is left to platform leads."""
    lease.row.pool_remade = True
    lease.write(pool_remade=True)


def _in_the_way(row: Reservation, look: Look) -> str:
    """What keeps a reservation from being released; what was said before where it is something else."""
    found = look.observed.reservation
    if row.machines or found is None or not found.associated:
        return row.message
    uses = machines_using(found.associated)
    return f"{uses}: Azure releases it, and stops charging for it, once none does. The portal tries again by itself."


def _as_wanted(lease: Lease[Reservation], look: Look, now: datetime) -> None:
    """Nothing is left to do: say so, and count how much of it is in use."""
    row = lease.row
    if row.state == State.RELEASING:
        if lease.finish(
            requeue_at=now, now=now, attempts=0, observed_generation=row.generation
        ):
            actions.released(row.pk, now=now)
            read_soon(row.subscription, now=now)
        return
    use, was_true = _use(look, now), row.is_true
    done = lease.finish(
        requeue_at=now + LOOK_AGAIN,
        now=now,
        attempts=0,
        observed_generation=row.generation,
        message=_note(row, look),
        **use,
    )
    if done:
        actions.reserved(row.pk, generation=row.generation, now=now)
        actions.count_use(
            row.pk, held=use["held"], used=use["used"], over=use["over"], now=now
        )
    if done and not was_true:
        read_soon(row.subscription, now=now)


def _look(azure: Azure, row: Reservation) -> Look:
    names = Names.of(row)
    group = azure.compute.group(row.resource_group, names.group)
    found = (
        azure.compute.reservation(row.resource_group, names.group, names.reservation)
        if group
        else None
    )
    pool = None
    if row.flavor is not None and (aks := aks_of(row.flavor.cluster)) is not None:
        there = azure.containers.pool(aks.group, aks.name, names.pool)
        pool = None if there is None else _pool(there, group.id if group else "")
    reservation = None if found is None else _reservation(found)
    return Look(
        Observed(group=group is not None, reservation=reservation, pool=pool), found
    )


def _reservation(found: InAzure) -> Found:
    return Found(
        machines=found.capacity,
        associated=len(found.associated),
        is_busy=found.state in BUSY,
        has_failed=found.state == "Failed",
    )


def _pool(there: AgentPool, group_id: str) -> FoundPool:
    return FoundPool(
        maximum=there.limit,
        nodes=there.count,
        is_joined=bool(group_id) and same(there.reservation_group, group_id),
        is_busy=there.state in BUSY,
    )


def _use(look: Look, now: datetime) -> Mapping[str, Any]:
    found = look.reservation
    if found is None:
        return {"held": 0, "used": 0, "over": 0, "seen_at": now}
    return {
        "held": found.held,
        "used": found.used,
        "over": found.overallocated,
        "seen_at": now,
    }


def _note(row: Reservation, look: Look) -> str:
    """What people should know of one that is as wanted."""
    pool = look.observed.pool
    if row.flavor_id is not None and pool is not None and not pool.is_joined:
        return f"{NOT_JOINED} {REMADE}" if row.pool_remade else NOT_JOINED
    return ""


@dataclass(frozen=True)
class Names:
    """What a reservation's parts are called in Azure."""

    group: str
    reservation: str
    pool: str

    @classmethod
    def of(cls, row: Reservation) -> "Names":
        """From its number."""
        return cls(
            group_name(row.pk, mark=mark(), team=row.team.slug),
            reservation_name(row.vm_size, row.zone),
            pool_name(row.pk),
        )


def _make_group(azure: Azure, row: Reservation) -> Operation:
    azure.compute.ensure_group(
        row.resource_group,
        Names.of(row).group,
        location=row.region,
        zones=[row.zone] if row.zone else [],
        tags=_tags(row),
    )
    return DONE


def _reserve(azure: Azure, row: Reservation) -> Operation:
    names = Names.of(row)
    return azure.compute.begin_create_reservation(
        row.resource_group,
        names.group,
        names.reservation,
        location=row.region,
        size=row.vm_size,
        capacity=row.machines,
        zone=row.zone,
        tags=_tags(row),
    )


def _resize(azure: Azure, row: Reservation) -> Operation:
    names = Names.of(row)
    return azure.compute.begin_resize_reservation(
        row.resource_group, names.group, names.reservation, row.machines
    )


def _make_pool(azure: Azure, row: Reservation) -> Operation:
    flavor, names = row.flavor, Names.of(row)
    aks = _aks(row)
    group = azure.compute.group(row.resource_group, names.group)
    assert flavor is not None  # noqa: S101 - a pool is wanted for one alone
    pool = NewPool(
        size=row.vm_size,
        minimum=0,
        maximum=row.machines,
        zones=(row.zone,) if row.zone else (),
        labels=flavor.node_labels,
        taints=tuple(
            f"{one['key']}={one.get('value', '')}:{one['effect']}"
            for one in flavor.node_taints or []
        ),
        reservation_group=group.id if group else "",
    )
    return azure.containers.begin_create_pool(aks.group, aks.name, names.pool, pool)


def _scale_pool(azure: Azure, row: Reservation) -> Operation:
    aks = _aks(row)
    return azure.containers.begin_scale_pool(
        aks.group, aks.name, Names.of(row).pool, minimum=0, maximum=row.machines
    )


def _delete_pool(azure: Azure, row: Reservation) -> Operation:
    aks = _aks(row)
    return azure.containers.begin_delete_pool(aks.group, aks.name, Names.of(row).pool)


def _release(azure: Azure, row: Reservation) -> Operation:
    names = Names.of(row)
    return azure.compute.begin_delete_reservation(
        row.resource_group, names.group, names.reservation
    )


def _delete_group(azure: Azure, row: Reservation) -> Operation:
    return azure.compute.begin_delete_group(row.resource_group, Names.of(row).group)


STEPS: Mapping[Step, Callable[[Azure, Reservation], Operation]] = {
    Step.MAKE_GROUP: _make_group,
    Step.RESERVE: _reserve,
    Step.RESIZE: _resize,
    Step.MAKE_POOL: _make_pool,
    Step.SCALE_POOL: _scale_pool,
    Step.DELETE_POOL: _delete_pool,
    Step.RELEASE: _release,
    Step.DELETE_GROUP: _delete_group,
}


def _failed(lease: Lease[Reservation], error: ConnectorError, *, now: datetime) -> None:
    """Book the next try; what Azure does not have for this team fails what was granted with it, but never a release.

    What keeps the portal from it otherwise is for platform leads: the grant waits.
    """
    row = lease.row
    code = error.code if isinstance(error, PermanentError) else ""
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    if code in REFUSALS and row.state != State.RELEASING:
        # The allocation that it was for fails next, and wants less again.
        actions.refused(row.pk, generation=row.generation, why=error.message)
        backoff = REFUSED
    else:
        backoff = NO_CAPACITY if code == "no_capacity" else RETRIES
        if code not in ("", "no_capacity") and row.attempts >= TOLD_AFTER:
            why = error.message[:600]
            actions.blocked(row.pk, generation=row.generation, why=why, now=now)
    wait = backoff.wait(row.attempts, chance=_random.random(), retry_after=retry_after)
    lease.finish(requeue_at=now + wait, now=now, message=error.message[:600])


def _tags(row: Reservation) -> Mapping[str, str]:
    return tags(
        NUMBER,
        row.pk,
        mark=mark(),
        team=row.team.slug,
        cost_centre=row.team.cost_centre,
    )


def _aks(row: Reservation) -> Any:
    found = aks_of(row.flavor.cluster) if row.flavor is not None else None
    if found is None:
        raise PermanentError(
            "The cluster is no longer known to be in Azure.", code="not_in_azure"
        )
    return found

"""What a worker does for an orphan that a platform lead wants released: in Azure's order, one step after the other.

Before each step it looks again: what machines use, what no longer carries the portal's mark, and what has a record
after all is left alone, and its page says why.
"""

from datetime import datetime
from random import SystemRandom

from capacity import operations
from capacity.connection import Azure, azure_of
from capacity.operations import BUSY_WAIT, RETRIES, Clock
from capacity.orphans import actions
from capacity.orphans.comparing import Recorded, group_key
from capacity.orphans.enqueue import queue
from capacity.orphans.models import Orphan, OrphanQuerySet
from capacity.orphans.reading import recorded_in
from capacity.reservations.reconcile import BUSY
from capacity.tagging import MARK
from connectors.azure.compute import Reservation, ReservationGroup
from connectors.azure.session import Operation
from connectors.errors import ConnectorError, TemporaryError
from provisioning.clusters.installation import mark
from reconciling.controller import MAX_UNFINISHED, Controller, RequeueAfter
from reconciling.lease import Lease

PARKED = (
    f"{MAX_UNFINISHED} tries in a row ended the portal's worker. Find the reason in the workers' logs, and release it "
    "again."
)
NOT_OURS = "It no longer carries the portal's mark: it is left alone."
RECORDED = "It is in the portal's records after all: it is left alone."
FILLED = "Somebody reserves in it by now: it is left alone."
_random = SystemRandom()


class LeftAlone(Exception):
    """It must not be released; the argument says why."""


def _rows() -> OrphanQuerySet:
    return Orphan.objects.select_related("subscription").releasing()


CONTROLLER: Controller[Orphan] = Controller(
    rows=_rows, queue=queue, park=lambda row, now: actions.note_parked(row, PARKED)
)


def release(orphan_id: int, *, now: Clock) -> bool:
    """Do what is due for an orphan; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(orphan_id, now=now(), only_due=True)
    if lease is None:
        return False
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, error, now=now())
    ):
        azure = azure_of(lease.row.subscription_id)
        if lease.row.operation is not None:
            operations.see_through(lease, azure, now)
        try:
            _go_on(lease, azure, now)
        except LeftAlone as why:
            lease.release(requeue_at=now(), attempts=0)
            actions.stop_release(lease.row.pk, why=str(why))
    return True


def _go_on(lease: Lease[Orphan], azure: Azure, now: Clock) -> None:
    row, compute = lease.row, azure.compute
    group = compute.group(row.resource_group, row.group)
    if group is None:
        _done(lease, now())
        return
    recorded = recorded_in(row.subscription)
    there = (
        compute.reservation(row.resource_group, row.group, row.name)
        if row.name
        else None
    )
    if there is not None:
        _check(row, group, there, recorded)
        lease.check(now=now())
        operation = compute.begin_delete_reservation(
            row.resource_group, row.group, row.name
        )
        if not operation.is_done:
            _begun(lease, operation, now())
            return
    if stays := _why_group_stays(row, group, azure, recorded):
        if not row.name:
            raise LeftAlone(stays)
        _done(lease, now())
        return
    lease.check(now=now())
    operation = compute.begin_delete_group(row.resource_group, row.group)
    if operation.is_done:
        _done(lease, now())
    else:
        _begun(lease, operation, now())


def _check(
    row: Orphan, group: ReservationGroup, there: Reservation, recorded: list[Recorded]
) -> None:
    """Raises LeftAlone for what must not be released, RequeueAfter for what Azure works on."""
    if there.tags.get(MARK) != mark():
        raise LeftAlone(NOT_OURS)
    if stays := _why_not_ours(row, group, recorded):
        raise LeftAlone(stays)
    if there.state in BUSY:
        raise RequeueAfter(BUSY_WAIT)
    if there.associated:
        raise LeftAlone(actions.in_use(len(there.associated)))


def _why_group_stays(
    row: Orphan, group: ReservationGroup, azure: Azure, recorded: list[Recorded]
) -> str:
    """Why the group is not to go with what was in it; empty where nothing is in it and it is nobody else's."""
    why = _why_not_ours(row, group, recorded)
    if why or not azure.compute.reservations(row.resource_group, row.group):
        return why
    return FILLED


def _why_not_ours(
    row: Orphan, group: ReservationGroup, recorded: list[Recorded]
) -> str:
    """Why a group is no orphan of the portal's any more; empty where it is."""
    if group.tags.get(MARK) != mark():
        return NOT_OURS
    return (
        RECORDED
        if any(one.key == group_key(row.resource_group, row.group) for one in recorded)
        else ""
    )


def _done(lease: Lease[Orphan], now: datetime) -> None:
    if lease.release(requeue_at=now, attempts=0):
        actions.released(lease.row.pk)


def _begun(lease: Lease[Orphan], operation: Operation, now: datetime) -> None:
    operations.keep(lease, operation, "release", now=now)
    lease.finish(
        requeue_at=now + operations.wait_for(operation), now=now, attempts=0, message=""
    )


def _failed(lease: Lease[Orphan], error: ConnectorError, *, now: datetime) -> None:
    """Book the next try, later each time; what Azure says stands on the page."""
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    wait = RETRIES.wait(
        lease.row.attempts, chance=_random.random(), retry_after=retry_after
    )
    lease.finish(requeue_at=now + wait, now=now, message=error.message[:600])

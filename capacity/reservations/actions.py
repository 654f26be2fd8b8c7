"""What changes about reservations: what was granted adds up to machines, and what Azure says of them is kept."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest

from accounts.models import Team, User
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from capacity.reservations import notices
from capacity.reservations.enqueue import enqueue_on_commit
from capacity.reservations.models import Reservation, ReservationDay
from capacity.reservations.states import State
from capacity.retrying import require_lead, retry_now
from fleet.models import Flavor
from web.refusals import Conflict


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where machines are reserved, of which size, and for which kind of GPU nodes are made of them; None for none."""

    subscription: str
    resource_group: str
    region: str
    vm_size: str
    gpus_each: int
    usd_per_hour_each: Decimal
    zone: str = ""
    flavor: Flavor | None = None


def locked(reservation_id: int) -> Reservation:
    """A reservation, locked: after budgets, flavor and tenancy, before the audit chain."""
    return (
        Reservation.objects.select_for_update(of=("self",), no_key=True)
        .select_related("team")
        .get(pk=reservation_id)
    )


def at_place(team: Team, place: Place) -> QuerySet[Reservation]:
    """The reservation to which what the team is granted at a place adds; at most one."""
    return Reservation.objects.wanted_now().filter(
        team=team,
        subscription=place.subscription,
        region=place.region,
        zone=place.zone,
        vm_size=place.vm_size,
        flavor=place.flavor,
    )


def of_place(team: Team, place: Place, *, machines: int, now: datetime) -> Reservation:
    """The reservation that what was granted belongs to, locked: the team's own there, or a new one for so many.

    The caller holds a lock that keeps the same team from having it made twice, such as those of its budgets; whoever
    has none is refused by the database.
    """
    same = at_place(team, place)
    found = same.select_for_update(of=("self",), no_key=True).first()
    if found is not None:
        return found
    made = Reservation.objects.create(
        team=team,
        subscription=place.subscription,
        resource_group=place.resource_group,
        region=place.region,
        zone=place.zone,
        vm_size=place.vm_size,
        gpus_each=place.gpus_each,
        usd_per_hour_each=place.usd_per_hour_each,
        flavor=place.flavor,
        machines=machines,
        generation=1,
        created_at=now,
        requeue_at=now,
    )
    enqueue_on_commit(made.pk)
    return made


def want(
    reservation: Reservation, machines: int, *, actor: Actor, now: datetime
) -> None:
    """Have a locked reservation be of so many machines; 0 has it released. What is released stays so."""
    if (
        reservation.state not in (State.PENDING, State.RESERVED)
        or reservation.machines == machines
    ):
        return
    before, reservation.machines = reservation.machines, machines
    reservation.generation += 1
    reservation.message = ""
    if not machines:
        reservation.state = State.RELEASING
    fields = ["machines", "generation", "message", "state", *reservation.retry(now=now)]
    reservation.save(update_fields=fields)
    kind = Kind.RESERVATION_CHANGED if machines else Kind.RESERVATION_RELEASED
    append(kind, reservation, actor=actor, machines=machines, machines_before=before)
    enqueue_on_commit(reservation.pk)


@transaction.atomic
def try_again(reservation_id: int, *, by: User, now: datetime) -> Reservation:
    """Have a worker try it now, whatever wait its failures had earned it, parked or not; harmless to repeat.

    What Azure refused is asked for anew, and a node pool that AKS did not join is made anew once more. Raises NoRight
    for others than platform leads, Conflict for what is released.
    """
    require_lead(by)
    row = locked(reservation_id)
    if row.state == State.RELEASED:
        raise Conflict(
            "It is released: there is nothing to try.", code="reservation_is_released"
        )
    was_parked = retry_now(row, now=now)
    row.pool_remade, row.blocked_generation = False, None
    fields = ["pool_remade", "blocked_generation", *_forget_refusal(row)]
    row.save(update_fields=fields)
    append(
        Kind.RESERVATION_TRIED_AGAIN, row, actor=by.as_actor(), was_parked=was_parked
    )
    enqueue_on_commit(row.pk)
    return row


@transaction.atomic
def reserved(reservation_id: int, *, generation: int, now: datetime) -> None:
    """Write down that Azure has what a generation wanted, though it may have refused that before."""
    row = locked(reservation_id)
    if row.generation != generation:
        return
    if row.is_refused or row.blocked_generation is not None:
        row.blocked_generation = None
        row.save(update_fields=["blocked_generation", *_forget_refusal(row)])
    if row.state == State.PENDING:
        row.state, row.reserved_at = State.RESERVED, now
        row.save(update_fields=["state", "reserved_at"])
        append(Kind.RESERVATION_READY, row, actor=PORTAL, machines=row.machines)


def _forget_refusal(row: Reservation) -> list[str]:
    """Azure no longer refuses what is wanted now; returns the fields to be saved. Older refusals stay on record."""
    if row.is_refused:
        row.refusal, row.refused_generation = "", None
    return ["refusal", "refused_generation"]


@transaction.atomic
def released(reservation_id: int, *, now: datetime) -> None:
    """Write down that nothing of it is left in Azure."""
    row = locked(reservation_id)
    if row.state != State.RELEASING:
        return
    row.state, row.released_at, row.operation = State.RELEASED, now, None
    row.held = row.used = row.over = 0
    row.save(
        update_fields=["state", "released_at", "operation", "held", "used", "over"]
    )
    append(Kind.RESERVATION_GONE, row, actor=PORTAL)


@transaction.atomic
def refused(reservation_id: int, *, generation: int, why: str) -> None:
    """Write down that Azure refuses for good what a generation wants; what was granted with it fails."""
    row = locked(reservation_id)
    if row.state == State.RELEASING or row.generation != generation or row.is_refused:
        return
    row.refusal, row.refused_generation = why[:600], generation
    row.save(update_fields=["refusal", "refused_generation"])
    append(Kind.RESERVATION_REFUSED, row, actor=PORTAL, reason=row.refusal)


@transaction.atomic
def blocked(reservation_id: int, *, generation: int, why: str, now: datetime) -> None:
    """Tell platform leads, once for a generation, that Azure does not let the portal do what it wants."""
    row = locked(reservation_id)
    if row.generation != generation or row.blocked_generation == generation:
        return
    row.blocked_generation = generation
    row.save(update_fields=["blocked_generation"])
    notices.tell_blocked(row, why=why, now=now)


@transaction.atomic
def count_use(
    reservation_id: int, *, held: int, used: int, over: int, now: datetime
) -> None:
    """Count one look at how much of a reservation is in use, on its day (UTC)."""
    day = ReservationDay(
        reservation_id=reservation_id,
        day=now.date(),
        looks=0,
        held_sum=0,
        used_sum=0,
        most=0,
        last_at=now,
    )
    ReservationDay.objects.bulk_create([day], ignore_conflicts=True)
    ReservationDay.objects.filter(reservation=reservation_id, day=now.date()).update(
        looks=F("looks") + 1,
        held_sum=F("held_sum") + held,
        used_sum=F("used_sum") + used,
        most=Greatest(F("most"), used + over),
        over=F("over") + (1 if over else 0),
        last_at=now,
    )


def append(
    kind: Kind, reservation: Reservation, *, actor: Actor, **details: Any
) -> None:
    """Record an event about a reservation."""
    record(
        kind,
        actor=actor,
        subject=("reservation", reservation.pk),
        team_id=reservation.team_id,
        what=f"{reservation.vm_size} in {reservation.region}",
        **details,
    )

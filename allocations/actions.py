"""Grants: what is issued, from when it costs, and what goes on under a renewal.

Each moves the tenancy's desired state with it. Locks are taken in the order that `allocations.changes` has.
"""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.db import transaction
from django.db.models import F

from accounts.models import Team
from allocations.budgets.actions import tell_close
from allocations.changes import (
    end,
    end_part,
    locked_with_all,
    record_change,
    refresh,
    settle,
)
from allocations.models import Allocation, Budget, Hold
from allocations.schedule import NO_TERMS, Provisioner, Terms, next_reminder
from audit.actors import Actor
from audit.events import Kind
from fleet.models import Flavor
from provisioning import failpoints
from provisioning.desired.isolation import flavors_for
from provisioning.models import Tenancy
from web.refusals import Conflict

MAX_CHARGED_AT_ONCE = 200


class Granted(NamedTuple):
    """What was granted besides GPUs of a pool: the offering, what it is, where, and what it costs an hour in USD.

    `gpus` are those whose hours count against the budget.
    """

    offering: str
    title: str
    place: str
    usd_per_hour: Decimal
    gpus: int = 0


class HandedOver(NamedTuple):
    """How many GPUs go on under a renewal, and from when they cost; None while nobody has made what they are for."""

    gpus: int
    charged_from: datetime | None


NOTHING_HANDED_OVER = HandedOver(0, None)


@transaction.atomic
def issue(
    *,
    tenancy: Tenancy,
    flavor: Flavor,
    gpus: int,
    hold: Hold,
    until: datetime,
    actor: Actor,
    now: datetime,
    terms: Terms = NO_TERMS,
    offering: str = "gpus",
    provisioner: Provisioner = Provisioner.KUBERNETES,
    handed_over: HandedOver = NOTHING_HANDED_OVER,
) -> Allocation:
    """Give a team GPUs until a moment, and desire them on its tenancy in the same transaction.

    They cost from now on; what a person has to make first, and what the cluster cannot be told now, costs from when it
    is there. The money must have been set aside under the same hold. What is `handed_over` comes from `hand_over`
    in the same transaction, not from the pool. Raises Conflict when the others are not there.
    """
    needed = gpus - handed_over.gpus
    if needed and not flavor.take(needed):
        fewer = f"Fewer than {needed} × {flavor.product} are free on {flavor.cluster.name}."
        raise Conflict(fewer, code="not_enough_free")
    locked = Tenancy.objects.locked().get(pk=tenancy.pk)
    if not flavors_for(locked).filter(pk=flavor.pk).exists():
        raise Conflict("These GPUs are not for this team.", code="not_for_this_team", field="flavor")
    if not locked.is_here:
        raise Conflict("The team leaves this cluster: nothing new is granted there.", code="is_leaving")
    if not flavor.cluster.is_written_to:
        terms = terms.where_nothing_is_stopped()
    is_there = provisioner is Provisioner.KUBERNETES and flavor.cluster.reachable is not False
    if handed_over.gpus:
        is_there = handed_over.charged_from is not None
    allocation = Allocation.objects.create(
        team_id=locked.team_id,
        tenancy=locked,
        flavor=flavor,
        hold=hold,
        offering=offering,
        provisioner=provisioner,
        gpus=gpus,
        price_per_gpu_hour=flavor.price_per_gpu_hour,
        usd_per_hour=gpus * flavor.price_per_gpu_hour,
        starts_at=now,
        charged_from=now if is_there else None,
        until=until,
        kept_until=terms.kept_until(until),
        grace_hours=terms.grace_hours,
        when_over=terms.when_over,
        drain_hours=terms.drain_hours,
        remind_at=next_reminder(now, until, after=now),
    )
    failpoints.reach("allocation.issue")
    refresh(locked, actor=actor, now=now)
    record_change(Kind.ALLOCATION_ISSUED, allocation, actor, until=until.isoformat())
    # Only the budgets of this hold: those are locked already.
    tell_close(Budget.objects.filter(entries__hold=hold).distinct(), now=now)
    return allocation


@transaction.atomic
def issue_service(
    granted: Granted,
    *,
    team: Team,
    tenancy: Tenancy | None,
    provisioner: Provisioner,
    hold: Hold,
    until: datetime,
    now: datetime,
) -> Allocation:
    """Grant a team what takes no GPUs of a pool; what a person makes costs from when it is there.

    The money must have been set aside under the same hold. The events of its request tell of it: the caller has
    written that it was approved, and writes that it ended.
    """
    allocation = Allocation.objects.create(
        team=team,
        tenancy=tenancy,
        flavor=None,
        hold=hold,
        offering=granted.offering,
        title=granted.title,
        place=granted.place,
        provisioner=provisioner,
        gpus=granted.gpus,
        price_per_gpu_hour=0,
        usd_per_hour=granted.usd_per_hour,
        starts_at=now,
        charged_from=now if provisioner is Provisioner.KUBERNETES else None,
        until=until,
        kept_until=until,
        remind_at=next_reminder(now, until, after=now),
    )
    tell_close(Budget.objects.filter(entries__hold=hold).distinct(), now=now)
    return allocation


@transaction.atomic
def begin_charging(allocation_id: int, *, now: datetime) -> bool:
    """Let an allocation cost from now on, because it is there; what was set aside for the time before is free.

    False, and nothing changed, when it has ended or costs already.
    """
    allocation = locked_with_all(allocation_id)
    if allocation.ended_at is not None or allocation.charged_from is not None or allocation.until <= now:
        return False
    # Whoever waited for a lock may have an earlier moment than the grant.
    allocation.charged_from = max(now, allocation.starts_at)
    allocation.save(update_fields=["charged_from"])
    settle(allocation.hold, now=now, why="costs from when it is there")
    return True


def not_charged_though_there() -> list[int]:
    """The allocations that waited for a cluster, which has them by now."""
    rows = Allocation.objects.live().filter(charged_from=None, provisioner=Provisioner.KUBERNETES)
    there = rows.filter(
        tenancy__is_true=True,
        tenancy__observed_generation=F("tenancy__generation"),
        flavor__cluster__reachable=True,
    )
    return list(there.order_by("pk").values_list("pk", flat=True)[:MAX_CHARGED_AT_ONCE])


def hand_over(hold: Hold, *, flavor: Flavor, gpus: int, to: Hold, actor: Actor, now: datetime) -> HandedOver:
    """End what is held of a flavor under a hold so that as much of it, at most `gpus`, goes on under another one.

    Returns how many go on; none, and nothing changed, when nothing of it is held any more. What does not go on stays
    held until its own end. The caller has locked budgets and flavor, and issues in the same transaction: neither the
    pool nor the desired state changes in between.
    """
    allocation = Allocation.objects.held(now).filter(hold=hold, flavor=flavor).first()
    if allocation is None:
        return NOTHING_HANDED_OVER
    assert allocation.tenancy is not None  # noqa: S101 - GPUs of a flavor have one, as a constraint says
    Tenancy.objects.locked().get(pk=allocation.tenancy.pk)
    allocation.hold = hold
    going = min(gpus, allocation.gpus)
    if going < allocation.gpus:
        end_part(allocation, going, Allocation.End.RENEWED, by=actor.name, now=now)
    else:
        end(allocation, Allocation.End.RENEWED, by=actor.name, now=now)
    settle(hold, now=now, why="renewed")
    record_change(Kind.ALLOCATION_RENEWED, allocation, actor, renewed=going, under=to.reference)
    return HandedOver(going, allocation.charged_from)

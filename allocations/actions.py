"""Grants: what is issued, from when it costs, and what goes on under a renewal.

Each moves the tenancy's desired state with it. Locks are taken in the order that `allocations.changes` has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from accounts.models import Team, User
from allocations import provisioners, webhooks
from allocations.bookings.levels import lowest
from allocations.bookings.promised import has_bookings, levels_of, take_unpromised
from allocations.budgets.actions import tell_close
from allocations.changes import (
    end,
    end_part,
    locked_with_all,
    record_change,
    refresh_of,
    settle,
)
from allocations.ends.actions import give_up
from allocations.models import Allocation, Budget, Hold
from allocations.schedule import NO_TERMS, Phase, Provisioner, Terms, next_reminder
from audit.actors import PORTAL, Actor
from audit.events import Kind
from capacity.subscriptions.following import follow_shared
from fleet.models import Flavor
from manual.briefs import Instructions
from manual.models import Task
from notebooks.models import NotebookServer
from notebooks.servers.states import State as ServerState
from notices.channels.events import WebhookEvent
from provisioning.desired.isolation import flavors_for
from provisioning.models import Tenancy
from reconciling import failpoints
from web.refusals import Conflict

MAX_OBSERVED_AT_ONCE = 200


@dataclass(frozen=True, kw_only=True)
class Granted:
    """What was granted: which offering to whom, where, until when, at which price, and who makes it.

    `gpus` are those whose hours count against the budget, of `flavor` or of none; `usd_per_hour` is what all of it
    costs. People carry their part of it out within `task_hours`.
    """

    team: Team
    requester: User
    hold: Hold
    offering: str
    spec: Mapping[str, Any]
    count: int
    title: str
    instructions: Instructions
    provisioner: Provisioner
    until: datetime
    gpus: int = 0
    usd_per_hour: Decimal = Decimal(0)
    place: str = ""
    tenancy: Tenancy | None = None
    flavor: Flavor | None = None
    terms: Terms = NO_TERMS
    task_hours: int = 24
    starts_at: datetime | None = None

    def begins(self, now: datetime) -> datetime:
        """When it begins: now, or later where it was asked for from then on."""
        return now if self.starts_at is None else max(now, self.starts_at)


@dataclass(frozen=True)
class HandedOver:
    """How many GPUs go on under a renewal; from when they cost, and who or what makes what they are for.

    `charged_from` is None while nobody has made it; `generation` is that of the desired state that has them.
    """

    gpus: int = 0
    charged_from: datetime | None = None
    task: Task | None = None
    notebook: NotebookServer | None = None
    generation: int | None = None


NOTHING_HANDED_OVER = HandedOver()


@transaction.atomic(savepoint=False)
def grant(
    granted: Granted,
    *,
    actor: Actor,
    now: datetime,
    handed_over: HandedOver = NOTHING_HANDED_OVER,
) -> Allocation:
    """Give a team what was granted until a moment, and have its provisioner begin in the same transaction.

    It costs from now on; what a person has to make first, and what the cluster cannot be told now, costs from when it
    is there. The money must have been set aside under its hold. What is `handed_over` comes from `hand_over` in the
    same transaction, not from the pool. What starts later is booked: nothing is taken and nothing begins before then.
    Raises Conflict when GPUs are not there or not for this team.
    """
    flavor, terms, starts = granted.flavor, granted.terms, granted.begins(now)
    is_booked = starts > now
    if flavor is not None:
        _promise(flavor, granted, going_on=handed_over.gpus, now=now)
    tenancy = _place(granted)
    cluster = (
        flavor.cluster
        if flavor is not None
        else tenancy.cluster
        if tenancy is not None
        else None
    )
    if cluster is not None and not cluster.is_written_to:
        terms = terms.where_nothing_is_stopped()
    is_there = not is_booked and provisioners.is_there_at_once(
        granted.provisioner, cluster
    )
    if handed_over.gpus:
        is_there = handed_over.charged_from is not None
    allocation = Allocation.objects.create(
        team=granted.team,
        requester=granted.requester,
        tenancy=tenancy,
        flavor=flavor,
        hold=granted.hold,
        offering=granted.offering,
        spec=granted.spec,
        count=granted.count,
        title=granted.title,
        place=granted.place,
        provisioner=granted.provisioner,
        instructions=granted.instructions.to_json(),
        task=handed_over.task,
        notebook=handed_over.notebook,
        generation=None
        if is_booked
        else _generation(granted, tenancy=tenancy, handed_over=handed_over),
        task_hours=granted.task_hours,
        gpus=granted.gpus,
        price_per_gpu_hour=0 if flavor is None else flavor.price_per_gpu_hour,
        usd_per_hour=granted.usd_per_hour
        if flavor is None
        else granted.gpus * flavor.price_per_gpu_hour,
        starts_at=starts,
        begun_at=None if is_booked else now,
        charged_from=now if is_there else None,
        until=granted.until,
        kept_until=terms.kept_until(granted.until),
        grace_hours=terms.grace_hours,
        when_over=terms.when_over,
        drain_hours=terms.drain_hours,
        remind_at=None if is_booked else next_reminder(now, granted.until, after=now),
    )
    failpoints.reach("allocation.issue")
    told = {
        "until": granted.until.isoformat(),
        "usd_per_hour": f"{granted.usd_per_hour:.4f}",
    }
    if is_booked:
        begins = {"starts_at": starts.isoformat()}
        record_change(Kind.ALLOCATION_BOOKED, allocation, actor, **begins, **told)
    else:
        provisioners.begin(
            allocation, is_new=not handed_over.gpus, actor=actor, now=now
        )
        # What a renewal keeps was there before.
        if is_there and not handed_over.gpus:
            webhooks.tell_of(WebhookEvent.ALLOCATION_READY, allocation, now=now)
        record_change(Kind.ALLOCATION_ISSUED, allocation, actor, **told)
    # Only the budgets of this hold: those are locked already.
    tell_close(Budget.objects.filter(entries__hold=granted.hold).distinct(), now=now)
    return allocation


def _generation(
    granted: Granted, *, tenancy: Tenancy | None, handed_over: HandedOver
) -> int | None:
    """Which generation of its locked tenancy's desired state will have it: the next, but for GPUs that only go on.

    Known before it is published, it needs no statement of its own; `provisioners.begin` puts right what turns out else.
    """
    if handed_over.gpus and granted.gpus <= handed_over.gpus:
        return handed_over.generation
    return None if tenancy is None else tenancy.generation + 1


def _promise(flavor: Flavor, granted: Granted, *, going_on: int, now: datetime) -> None:
    """Take the GPUs that begin now from the pool, and see that all there are in the time of the grant; raises Conflict.

    Under the lock of the flavor nobody else takes or books at the same moment.
    """
    starts, more = granted.begins(now), granted.gpus - going_on
    is_booked = starts > now
    follow_shared(flavor)
    if not is_booked and more and take_unpromised(flavor, more):
        return
    rows = Flavor.objects.select_for_update(of=("self",), no_key=True).select_related(
        "cluster"
    )
    known = rows.get(pk=flavor.pk)
    where = f"{flavor.kind} are free on {flavor.cluster.title}"
    needed = granted.gpus
    if not is_booked:
        if more and not known.take(more):
            raise Conflict(f"Fewer than {more} × {where}.", code="not_enough_free")
        if not has_bookings(flavor):
            return
        known.refresh_from_db(fields=["allocated"])
        # Nodes that went away do not end what goes on.
        needed = min(0, known.gpus_total - known.allocated)
    ends = granted.terms.kept_until(granted.until)
    if lowest(levels_of(known, now=now), start=starts, end=ends) < needed:
        raise Conflict(
            f"Fewer than {granted.gpus} × {where} in all of that time.",
            code="not_enough_free",
        )


def _place(granted: Granted) -> Tenancy | None:
    """The tenancy where it was granted, locked; None for what is in none. Raises Conflict."""
    if granted.tenancy is None:
        return None
    rows = Tenancy.objects.locked().select_related("cluster", "team", "project")
    locked = rows.get(pk=granted.tenancy.pk)
    if (
        granted.flavor is not None
        and not flavors_for(locked).filter(pk=granted.flavor.pk).exists()
    ):
        raise Conflict(
            "These GPUs are not for this team.",
            code="not_for_this_team",
            field="flavor",
        )
    if not locked.is_here:
        raise Conflict(
            "The team leaves this cluster: nothing new is granted there.",
            code="is_leaving",
        )
    return locked


def begin_charging(allocation: Allocation, *, now: datetime) -> bool:
    """Let a locked allocation cost from now on, because it is there; what was set aside for before is free.

    False, and nothing changed, when its time is over.
    """
    if allocation.until <= now:
        return False
    # Whoever waited for a lock may have an earlier moment than the grant.
    allocation.charged_from = max(now, allocation.starts_at)
    allocation.save(update_fields=["charged_from"])
    settle(allocation.hold, now=now, why="costs from when it is there")
    webhooks.tell_of(WebhookEvent.ALLOCATION_READY, allocation, now=now)
    record_change(Kind.ALLOCATION_READY, allocation, PORTAL)
    return True


@transaction.atomic
def observe(allocation_id: int, *, now: datetime) -> bool:
    """Let an allocation cost once its provisioner has made it, or end it where that could not; False for neither.

    What could not be made, or nobody saw to in time, has cost nothing, and its GPUs are free again. What has ended
    needs no room on its cluster any more once it was taken down.
    """
    allocation = locked_with_all(allocation_id)
    if allocation.ended_at is not None:
        refresh_of(allocation, actor=PORTAL, now=now)
        return False
    if allocation.charged_from is not None:
        return False
    status = provisioners.status(allocation)
    if status.phase is Phase.READY:
        return begin_charging(allocation, now=now)
    if not status.is_given_up(now):
        return False
    give_up(allocation, why=status.failure or status.message, now=now)
    return True


def not_charged_yet(now: datetime) -> list[int]:
    """The allocations that somebody or something may have made, or given up, by now, the oldest first."""
    rows = Allocation.objects.held(now).filter(charged_from=None, until__gt=now)
    made_by_people = Q(task__state__in=[Task.State.DONE, Task.State.FAILED])
    on_cluster = Q(
        provisioner=Provisioner.KUBERNETES,
        tenancy__is_true=True,
        tenancy__observed_generation=F("tenancy__generation"),
        tenancy__cluster__reachable=True,
    )
    in_hub = Q(provisioner=Provisioner.JUPYTERHUB) & (
        Q(notebook=None)
        | Q(notebook__ready_at__isnull=False)
        | Q(notebook__ran_seconds__gt=0)
        | Q(notebook__state__in=provisioners.STOPPED)
        | Q(
            notebook__launched_at__gte=F("notebook__created_at")
            + provisioners.FREE_AFTER_FIRST_START
        )
        | Q(
            notebook__state=ServerState.FAILED,
            notebook__stopped_at__lte=now - provisioners.STARTED_AGAIN_WITHIN,
        )
    )
    in_azure = Q(provisioner=Provisioner.AZURE) & (
        Q(reservation__observed_generation=F("reservation__generation"))
        | Q(reservation__refused_generation=F("reservation__generation"))
    )
    in_openai = Q(provisioner=Provisioner.OPENAI) & (
        Q(endpoint__state="ready", endpoint__held=F("endpoint__capacity"))
        | Q(endpoint__refused_capacity__isnull=False)
    )
    found = rows.filter(
        made_by_people | on_cluster | in_hub | in_azure | in_openai
    ).order_by("pk")
    return list(found.values_list("pk", flat=True)[:MAX_OBSERVED_AT_ONCE])


def hand_over(
    hold: Hold, *, flavor: Flavor, gpus: int, to: Hold, actor: Actor, now: datetime
) -> HandedOver:
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
    record_change(
        Kind.ALLOCATION_RENEWED,
        allocation,
        actor,
        what=f"{going} × {flavor.kind}",
        renewed=going,
        under=to.reference,
    )
    return HandedOver(
        going,
        allocation.charged_from,
        allocation.task,
        allocation.notebook,
        allocation.generation,
    )

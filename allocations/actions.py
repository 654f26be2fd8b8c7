"""What changes about holdings: issued, given back, ended; each moves the tenancy's desired state with it.

Locks are taken in one order: budgets, then the flavor, then the tenancy, then the audit chain.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict, Unpack

from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.urls import reverse

from accounts.models import Team, User
from accounts.roles import Permission
from allocations.budgets import balances as budgets
from allocations.budgets import money
from allocations.desired_state import desired
from allocations.models import Allocation, Budget, Leftover
from allocations.notices import close_message
from allocations.places import kinds_of, place_of
from allocations.schedule import NO_TERMS, Provisioner, Terms, next_reminder
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Flavor
from notices.actions import tell
from notices.kinds import NoticeKind
from provisioning import failpoints
from provisioning.actions import publish
from provisioning.desired.isolation import flavors_for
from provisioning.models import Tenancy
from ui.amounts import hours
from web.refusals import BadInput, Conflict, NoRight

MAX_CHARGED_AT_ONCE = 200


class Limits(TypedDict, total=False):
    """What can be set of a month; what is not named stays. No `gpu_hours_limit` (None): as many as the money buys."""

    limit_usd: Decimal
    gpu_hours_limit: Decimal | None
    soft_percent: int


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
    reference: str,
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
    is there. The money must have been set aside under the same reference. What is `handed_over` comes from `hand_over`
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
        reference=reference,
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
    _tell(Kind.ALLOCATION_ISSUED, allocation, actor, until=until.isoformat())
    # Only what this reference has set aside: those budgets are locked already.
    tell_close(Budget.objects.filter(holds__reference=reference).distinct(), now=now)
    return allocation


@transaction.atomic
def issue_service(
    granted: Granted,
    *,
    team: Team,
    tenancy: Tenancy | None,
    provisioner: Provisioner,
    reference: str,
    until: datetime,
    now: datetime,
) -> Allocation:
    """Grant a team what takes no GPUs of a pool; what a person makes costs from when it is there.

    The money must have been set aside under the same reference. The events of its request tell of it: the caller has
    written that it was approved, and writes that it ended.
    """
    allocation = Allocation.objects.create(
        team=team,
        tenancy=tenancy,
        flavor=None,
        reference=reference,
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
    tell_close(Budget.objects.filter(holds__reference=reference).distinct(), now=now)
    return allocation


@transaction.atomic
def begin_charging(reference: str, *, now: datetime) -> bool:
    """Let what is held under a reference cost from now on, because it is there; what was set aside for before is free.

    False, and nothing changed, when nothing is held under it or it costs already.
    """
    found = Allocation.objects.live().filter(reference=reference, charged_from=None).first()
    if found is None:
        return False
    allocation = _locked(found.pk)
    if allocation.ended_at is not None or allocation.charged_from is not None or allocation.until <= now:
        return False
    # Whoever waited for a lock may have an earlier moment than the grant.
    allocation.charged_from = max(now, allocation.starts_at)
    allocation.save(update_fields=["charged_from"])
    _settle(reference, now=now, why="costs from when it is there")
    return True


def not_charged_though_there() -> list[str]:
    """The references of what waited for a cluster, which has it by now."""
    rows = Allocation.objects.live().filter(charged_from=None, provisioner=Provisioner.KUBERNETES)
    there = rows.filter(
        tenancy__is_true=True,
        tenancy__observed_generation=F("tenancy__generation"),
        flavor__cluster__reachable=True,
    )
    return list(there.order_by("pk").values_list("reference", flat=True)[:MAX_CHARGED_AT_ONCE])


def hand_over(
    reference: str, *, flavor: Flavor, gpus: int, to: str, actor: Actor, now: datetime
) -> HandedOver:
    """End what is held of a flavor under a reference so that as much of it, at most `gpus`, goes on under another one.

    Returns how many go on; none, and nothing changed, when nothing of it is held any more. What does not go on stays
    held until its own end. The caller has locked budgets and flavor, and issues in the same transaction: neither the
    pool nor the desired state changes in between.
    """
    live = Allocation.objects.live().filter(reference=reference, flavor=flavor, kept_until__gt=now)
    allocation = live.first()
    if allocation is None:
        return NOTHING_HANDED_OVER
    assert allocation.tenancy is not None  # noqa: S101 - GPUs of a flavor have one, as a constraint says
    Tenancy.objects.locked().get(pk=allocation.tenancy.pk)
    going = min(gpus, allocation.gpus)
    _end(allocation, Allocation.End.RENEWED, by=actor.name, now=now)
    if going < allocation.gpus:
        _rest_of(allocation, gpus=allocation.gpus - going, now=now)
    _settle(reference, now=now, why="renewed")
    _tell(Kind.ALLOCATION_RENEWED, allocation, actor, renewed=going, under=to)
    return HandedOver(going, allocation.charged_from)


def may_give_back(by: User, team_id: int) -> bool:
    """Whether what a team holds is this person's to give back before its end, or to let go."""
    return team_id in by.team_ids or by.may(Permission.GIVE_BACK_FOR_TEAMS)


def _not_held(allocation: Allocation, amount: int, held: int) -> str:
    """Why so many cannot be given back; of what goes on under another number, under which one."""
    if held:
        return f"{amount} cannot be given back: {held} are held."
    said = f"Nothing is held under allocation {allocation.pk} any more"
    if allocation.ended_at is None:
        return f"{said}: it has reached its end."
    same = Allocation.objects.filter(
        tenancy=allocation.tenancy_id, flavor=allocation.flavor_id, ended_at=None
    )
    following = same.filter(starts_at__gte=allocation.ended_at).order_by("starts_at", "pk").first()
    return f"{said}: allocation {following.pk} holds {following.gpus} now." if following else f"{said}."


@transaction.atomic
def give_back(allocation_id: int, *, gpus: int | None, by: User, now: datetime) -> Allocation | None:
    """Give back some or all of the GPUs early; returns the allocation of the rest, None when nothing is left.

    Raises Conflict when it has ended, holds fewer or is no GPUs, NoRight for who is neither of the team nor a platform
    lead.
    """
    allocation = _locked(allocation_id)
    if not may_give_back(by, allocation.team_id):
        raise NoRight("Members of the team and platform leads give GPUs back.", code="not_of_the_team")
    if allocation.flavor is None:
        raise Conflict(
            f"{allocation.title} is no GPUs of a pool. Let go of it on the page of its request.",
            code="no_gpus_to_give_back",
        )
    amount = allocation.gpus if gpus is None else gpus
    # What has reached its date is not held any more, though the task that ends it may still be on its way.
    held = allocation.gpus if allocation.ended_at is None and allocation.kept_until > now else 0
    if not 1 <= amount <= held:
        raise Conflict(_not_held(allocation, amount, held), code="not_held", field="gpus")
    whole = amount == allocation.gpus
    _end(allocation, Allocation.End.RETURNED if whole else Allocation.End.REPLACED, by=by.name, now=now)
    rest = None if whole else _rest_of(allocation, gpus=allocation.gpus - amount, now=now)
    allocation.flavor.put_back(amount)
    _leave(allocation, gpus=amount, now=now)
    freed = _settle(allocation.reference, now=now, why="given back")
    _refresh(allocation, actor=by.as_actor(), now=now)
    _tell(Kind.ALLOCATION_RETURNED, allocation, by.as_actor(), returned=amount, freed_usd=str(freed.usd))
    return rest


@transaction.atomic
def let_go(reference: str, *, actor: Actor, now: datetime, why: str) -> bool:
    """End what takes no GPUs of a pool before its date; what it will not cost is free again. False for nothing held."""
    found = Allocation.objects.live().filter(reference=reference, flavor=None).first()
    if found is None:
        return False
    allocation = _locked(found.pk)
    if allocation.ended_at is not None:
        return False
    _end(allocation, Allocation.End.RETURNED, by=actor.name, now=min(now, allocation.kept_until))
    _settle(reference, now=now, why=why)
    return True


@transaction.atomic
def take_back(allocation_id: int, *, actor: Actor, now: datetime) -> bool:
    """Give back all of an allocation where its team is leaving, whose queue is stopped; what it will not cost is free.

    False, and nothing changed, when it has ended, its date has come, the team is here after all, or it is no GPUs.
    """
    allocation = _locked(allocation_id)
    place, flavor = allocation.tenancy, allocation.flavor
    if allocation.ended_at is not None or allocation.kept_until <= now:
        return False
    if place is None or flavor is None or place.is_here:
        return False
    _end(allocation, Allocation.End.RETURNED, by=actor.name, now=now)
    flavor.put_back(allocation.gpus)
    freed = _settle(allocation.reference, now=now, why="the team leaves")
    _refresh(allocation, actor=actor, now=now)
    _tell(
        Kind.ALLOCATION_RETURNED,
        allocation,
        actor,
        returned=allocation.gpus,
        freed_usd=str(freed.usd),
        reason="The team leaves.",
    )
    return True


@transaction.atomic
def expire(allocation_id: int, *, now: datetime) -> bool:
    """End what has reached its date and its grace; False, and nothing changed, when it has ended or they are ahead."""
    allocation = _locked(allocation_id)
    if allocation.ended_at is not None or allocation.kept_until > now:
        return False
    _end(allocation, Allocation.End.EXPIRED, by=PORTAL.name, now=now)
    if allocation.charged_from is None:
        _settle(allocation.reference, now=now, why="over before it was there")
    if allocation.flavor is not None:
        allocation.flavor.put_back(allocation.gpus)
        _leave(allocation, gpus=allocation.gpus, now=now)
        _refresh(allocation, actor=PORTAL, now=now)
        _tell(Kind.ALLOCATION_EXPIRED, allocation, PORTAL)
    return True


@transaction.atomic
def set_budget(team: Team, *, month: date, by: User, **limits: Unpack[Limits]) -> Budget:
    """Set a month's limits; raises NoRight for others than platform leads, Conflict below what is set aside."""
    if not by.may(Permission.MANAGE_BUDGETS):
        raise NoRight("Platform leads set budgets.", code="not_a_platform_lead")
    budget = budgets.budgets_of(team, [month], lock=True)[month]
    before = {f"{name}_before": _plain(getattr(budget, name)) for name in limits}
    for name, value in limits.items():
        setattr(budget, name, value)
    if not 1 <= budget.soft_percent <= 100:
        raise BadInput("The soft stage is 1 to 100 percent.", code="no_such_percentage", field="soft_percent")
    _above_what_is_held(budget)
    budget.save(update_fields=list(limits))
    record(
        Kind.BUDGET_SET,
        actor=by.as_actor(),
        subject=("team", team.pk),
        team_id=team.pk,
        month=str(month),
        **before,
        **{name: _plain(getattr(budget, name)) for name in limits},
    )
    return budget


@transaction.atomic
def tell_close(rows: QuerySet[Budget], *, now: datetime) -> int:
    """Tell members and audit log of each of these budgets that has reached its soft stage, once a month's budget.

    Returns how many were told of. Months that are over are not told of any more.
    """
    told = 0
    close = Budget.objects.to_tell(now).filter(pk__in=rows.values("pk"))
    for budget in close.select_related("team").order_by("team", "month"):
        # The mark is the guard: whoever sets it tells.
        if Budget.objects.filter(pk=budget.pk, soft_told_at=None).update(soft_told_at=now):
            _tell_close(budget, now=now)
            told += 1
    return told


def _tell_close(budget: Budget, *, now: datetime) -> None:
    team = budget.team
    tell(
        NoticeKind.BUDGET_SOFT,
        to=User.objects.filter(memberships__team=team),
        subject=("team", team.pk),
        link=reverse("team-budget", args=[team.slug]),
        message=close_message(budget),
        now=now,
    )
    numbers = ("held_usd", "limit_usd", "held_gpu_hours", "gpu_hours_limit", "soft_percent")
    record(
        Kind.BUDGET_SOFT_REACHED,
        actor=PORTAL,
        subject=("team", team.pk),
        team_id=team.pk,
        month=f"{budget.month:%B %Y}",
        percent=budget.percent_held,
        **{name: _plain(getattr(budget, name)) for name in numbers},
    )


def _above_what_is_held(budget: Budget) -> None:
    if budget.limit_usd < budget.held_usd:
        raise Conflict(
            f"${budget.held_usd:,.2f} of this month is set aside already; the limit cannot be lower.",
            code="below_what_is_held",
            field="limit_usd",
        )
    if budget.gpu_hours_limit is not None and budget.gpu_hours_limit < budget.held_gpu_hours:
        raise Conflict(
            f"{hours(budget.held_gpu_hours)} of this month are set aside already; the limit cannot be lower.",
            code="below_what_is_held",
            field="gpu_hours_limit",
        )


def _plain(value: Decimal | int | None) -> str:
    return "none" if value is None else str(value)


def refresh(tenancy: Tenancy, *, actor: Actor, now: datetime) -> int:
    """Publish the desired state that the live allocations of a locked tenancy add up to; returns its generation."""
    live = Allocation.objects.live().of_gpus().filter(tenancy=tenancy)
    rows = live.values("flavor__name").annotate(gpus=Sum("gpus"))
    held: Mapping[str, int] = {row["flavor__name"]: row["gpus"] for row in rows}
    left = Leftover.objects.open().filter(tenancy=tenancy).order_by().values("flavor__name")
    over = {row["flavor__name"]: row["gpus"] for row in left.annotate(gpus=Sum("gpus"))}
    kinds = kinds_of(tenancy, held={*held, *over})
    return publish(
        tenancy, spec=desired(place_of(tenancy), kinds=kinds, held=held, over=over), actor=actor, now=now
    )


def _refresh(allocation: Allocation, *, actor: Actor, now: datetime) -> None:
    if allocation.tenancy is not None:
        refresh(allocation.tenancy, actor=actor, now=now)


def _locked(allocation_id: int) -> Allocation:
    """The allocation with its budgets, flavor and tenancy locked, read after the locks."""
    found = Allocation.objects.select_related("team").get(pk=allocation_id)
    budgets.lock_all(found.team, [])
    if found.flavor_id is not None:
        Flavor.objects.select_for_update(no_key=True).get(pk=found.flavor_id)
    if found.tenancy_id is not None:
        Tenancy.objects.locked().get(pk=found.tenancy_id)
    return Allocation.objects.select_related(
        "tenancy__cluster", "tenancy__team", "tenancy__project", "flavor__cluster"
    ).get(pk=allocation_id)


def _end(allocation: Allocation, reason: str, *, by: str, now: datetime) -> None:
    allocation.ended_at = min(now, allocation.kept_until) if reason == Allocation.End.EXPIRED else now
    allocation.end_reason, allocation.ended_by = reason, by
    allocation.save(update_fields=["ended_at", "end_reason", "ended_by"])


def _rest_of(allocation: Allocation, *, gpus: int, now: datetime) -> Allocation:
    """What stays of GPUs of which a part goes; what nobody has made yet goes on costing nothing."""
    return Allocation.objects.create(
        team_id=allocation.team_id,
        tenancy=allocation.tenancy,
        flavor=allocation.flavor,
        reference=allocation.reference,
        offering=allocation.offering,
        provisioner=allocation.provisioner,
        gpus=gpus,
        price_per_gpu_hour=allocation.price_per_gpu_hour,
        usd_per_hour=gpus * allocation.price_per_gpu_hour,
        starts_at=now,
        charged_from=None if allocation.charged_from is None else now,
        until=allocation.until,
        kept_until=allocation.kept_until,
        grace_hours=allocation.grace_hours,
        when_over=allocation.when_over,
        drain_hours=allocation.drain_hours,
        remind_at=allocation.remind_at,
    )


def _leave(allocation: Allocation, *, gpus: int, now: datetime) -> None:
    """Keep room for what still runs on GPUs that were just let go, until somebody has looked."""
    tenancy, flavor = allocation.tenancy, allocation.flavor
    assert tenancy is not None  # noqa: S101 - the callers have GPUs, which have both
    assert flavor is not None  # noqa: S101
    Leftover.objects.create(
        allocation=allocation,
        tenancy=tenancy,
        flavor=flavor,
        reference=allocation.reference,
        gpus=gpus,
        since=now,
        stop_at=allocation.terms.stop_at(now),
        look_at=now,
    )


def _settle(reference: str, *, now: datetime, why: str) -> money.Amount:
    """Let go of what the holdings of a reference, past and present, will not need."""
    needed: dict[date, money.Amount] = {}
    for row in Allocation.objects.filter(reference=reference):
        parts = row.by_month(start=row.charge_start(row.starts_at), end=row.charged_until)
        for month, part in parts.items():
            needed[month] = needed.get(month, money.NOTHING).plus(part)
    return budgets.settle(reference=reference, parts=needed, now=now, why=why)


def _tell(kind: Kind, allocation: Allocation, actor: Actor, **details: Any) -> None:
    record(
        kind,
        actor=actor,
        subject=("allocation", allocation.pk),
        team_id=allocation.team_id,
        gpus=allocation.gpus,
        flavor="" if allocation.flavor is None else allocation.flavor.name,
        reference=allocation.reference,
        **details,
    )

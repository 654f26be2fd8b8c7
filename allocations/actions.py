"""What changes about holdings: issued, given back, ended; each moves the tenancy's desired state with it.

Locks are taken in one order: budgets, then the flavor, then the tenancy, then the audit chain.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypedDict, Unpack

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.urls import reverse

from accounts.models import Team, User
from accounts.refusals import BadInput, Conflict, NoRight
from accounts.roles import Permission
from allocations import budgets, money
from allocations.desired_state import Kind as FlavorKind
from allocations.desired_state import Place, desired
from allocations.models import Allocation, Budget
from allocations.told import close_message
from allocations.words import hours
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Flavor
from notices.actions import tell
from notices.kinds import NoticeKind
from provisioning.actions import publish
from provisioning.models import Tenancy


class Limits(TypedDict, total=False):
    """What can be set of a month; what is not named stays. No `gpu_hours_limit` (None): as many as the money buys."""

    limit_usd: Decimal
    gpu_hours_limit: Decimal | None
    soft_percent: int


@transaction.atomic
def issue(*, tenancy: Tenancy, flavor: Flavor, gpus: int, reference: str, until: datetime, actor: Actor,
          now: datetime) -> Allocation:  # fmt: skip
    """Give a team GPUs until a moment, and desire them on its tenancy in the same transaction.

    The money must have been set aside under the same reference. Raises Conflict when they are not there.
    """
    if not flavor.take(gpus):
        raise Conflict(
            f"Fewer than {gpus} × {flavor.product} are free on {flavor.cluster.name}.", code="not_enough_free"
        )
    locked = Tenancy.objects.select_for_update(no_key=True).get(pk=tenancy.pk)
    allocation = Allocation.objects.create(
        team_id=locked.team_id,
        tenancy=locked,
        flavor=flavor,
        reference=reference,
        gpus=gpus,
        price_per_gpu_hour=flavor.price_per_gpu_hour,
        starts_at=now,
        until=until,
    )
    refresh(locked, actor=actor, now=now)
    _tell(Kind.ALLOCATION_ISSUED, allocation, actor, until=until.isoformat())
    # Only what this reference has set aside: those budgets are locked already.
    tell_close(Budget.objects.filter(holds__reference=reference).distinct(), now=now)
    return allocation


@transaction.atomic
def give_back(allocation_id: int, *, gpus: int | None, by: User, now: datetime) -> Allocation | None:
    """Give back some or all of an allocation early; returns the allocation of the rest, None when nothing is left.

    Raises Conflict when it has ended or holds fewer, NoRight for who is neither of the team nor a platform lead.
    """
    allocation = _locked(allocation_id)
    if allocation.team_id not in by.team_ids and not by.may(Permission.MANAGE_BUDGETS):
        raise NoRight("Members of the team and platform leads give GPUs back.", code="not_of_the_team")
    amount = allocation.gpus if gpus is None else gpus
    # What has reached its date is not held any more, though the task that ends it may still be on its way.
    held = allocation.gpus if allocation.ended_at is None and allocation.until > now else 0
    if not 1 <= amount <= held:
        raise Conflict(f"{amount} cannot be given back: {held} are held.", code="not_held", field="gpus")
    whole = amount == allocation.gpus
    _end(allocation, Allocation.End.RETURNED if whole else Allocation.End.REPLACED, by=by.name, now=now)
    rest = None if whole else _rest_of(allocation, gpus=allocation.gpus - amount, now=now)
    allocation.flavor.put_back(amount)
    freed = _settle(allocation.reference, now=now, why="given back")
    refresh(allocation.tenancy, actor=by.as_actor(), now=now)
    _tell(Kind.ALLOCATION_RETURNED, allocation, by.as_actor(), returned=amount, freed_usd=str(freed.usd))
    return rest


@transaction.atomic
def expire(allocation_id: int, *, now: datetime) -> bool:
    """End an allocation whose date has come; False, and nothing changed, when it has ended or its date is ahead."""
    allocation = _locked(allocation_id)
    if allocation.ended_at is not None or allocation.until > now:
        return False
    _end(allocation, Allocation.End.EXPIRED, by=PORTAL.name, now=now)
    allocation.flavor.put_back(allocation.gpus)
    refresh(allocation.tenancy, actor=PORTAL, now=now)
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
    record(Kind.BUDGET_SET, actor=by.as_actor(), subject=("team", team.pk), team_id=team.pk, month=str(month),
           **before, **{name: _plain(getattr(budget, name)) for name in limits})  # fmt: skip
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
        NoticeKind.BUDGET_SOFT, to=User.objects.filter(memberships__team=team), subject=("team", team.pk),
        link=reverse("team-budget", args=[team.slug]), message=close_message(budget), now=now,
    )  # fmt: skip
    numbers = ("held_usd", "limit_usd", "held_gpu_hours", "gpu_hours_limit", "soft_percent")
    record(Kind.BUDGET_SOFT_REACHED, actor=PORTAL, subject=("team", team.pk), team_id=team.pk,
           month=f"{budget.month:%B %Y}", percent=budget.percent_held,
           **{name: _plain(getattr(budget, name)) for name in numbers})  # fmt: skip


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
    rows = Allocation.objects.live().filter(tenancy=tenancy).values("flavor__name").annotate(gpus=Sum("gpus"))
    held: Mapping[str, int] = {row["flavor__name"]: row["gpus"] for row in rows}
    kinds = [
        FlavorKind(name=f.name, cpu_per_gpu=f.cpu_per_gpu, memory_gib_per_gpu=f.memory_gib_per_gpu)
        for f in tenancy.cluster.flavors.order_by("name")
    ]
    return publish(tenancy, spec=desired(_place(tenancy), kinds=kinds, held=held), actor=actor, now=now)


def _place(tenancy: Tenancy) -> Place:
    team, cluster = tenancy.team, tenancy.cluster
    return Place(
        tenancy=tenancy.pk,
        team=team.slug,
        project=tenancy.project.slug,
        cost_centre=team.cost_centre,
        environment=tenancy.environment,
        namespace=tenancy.namespace,
        entra_group=str(team.entra_group),
        cohort=cluster.cohort,
        storage_class=cluster.storage_class,
        borrow_percent=cluster.borrow_percent,
    )


def _locked(allocation_id: int) -> Allocation:
    """The allocation with its budgets, flavor and tenancy locked, read after the locks."""
    found = Allocation.objects.select_related("team").get(pk=allocation_id)
    budgets.lock_all(found.team, [])
    Flavor.objects.select_for_update(no_key=True).get(pk=found.flavor_id)
    Tenancy.objects.select_for_update(no_key=True).get(pk=found.tenancy_id)
    return Allocation.objects.select_related(
        "tenancy__cluster", "tenancy__team", "tenancy__project", "flavor"
    ).get(pk=allocation_id)


def _end(allocation: Allocation, reason: str, *, by: str, now: datetime) -> None:
    allocation.ended_at = min(now, allocation.until) if reason == Allocation.End.EXPIRED else now
    allocation.end_reason, allocation.ended_by = reason, by
    allocation.save(update_fields=["ended_at", "end_reason", "ended_by"])


def _rest_of(allocation: Allocation, *, gpus: int, now: datetime) -> Allocation:
    return Allocation.objects.create(
        team_id=allocation.team_id,
        tenancy=allocation.tenancy,
        flavor=allocation.flavor,
        reference=allocation.reference,
        gpus=gpus,
        price_per_gpu_hour=allocation.price_per_gpu_hour,
        starts_at=now,
        until=allocation.until,
    )


def _settle(reference: str, *, now: datetime, why: str) -> money.Amount:
    """Let go of what the holdings of a reference, past and present, will not need."""
    needed: dict[date, money.Amount] = {}
    for row in Allocation.objects.filter(reference=reference):
        parts = money.by_month(
            gpus=row.gpus,
            usd_per_hour=row.gpus * row.price_per_gpu_hour,
            start=row.starts_at,
            end=row.ended_at or row.until,
        )
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
        flavor=allocation.flavor.name,
        reference=allocation.reference,
        **details,
    )

"""What changes about budgets: a month's limits, and that they are close."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypedDict, Unpack

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import Team, User
from accounts.roles import Permission
from allocations.budgets import balances as budgets
from allocations.models import Budget
from allocations.notices import close_message
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from ui.amounts import cents, hours
from web.refusals import BadInput, Conflict, NoRight


class Limits(TypedDict, total=False):
    """What can be set of a month; what is not named stays. No `gpu_hours_limit` (None): as many as the money buys."""

    limit_usd: Decimal
    gpu_hours_limit: Decimal | None
    soft_percent: int


@transaction.atomic
def set_budget(
    team: Team, *, month: date, by: User, **limits: Unpack[Limits]
) -> Budget:
    """Set a month's limits, and with them those of later months that nobody set.

    Raises NoRight for others than platform leads, Conflict below what is set aside in the month.
    """
    if not by.may(Permission.MANAGE_BUDGETS):
        raise NoRight("Platform leads set budgets.", code="not_a_platform_lead")
    locked = budgets.lock_all(team, [month])
    budget = locked[month]
    before = {row.month: _limits_of(row) for row in locked.values()}
    for name, value in limits.items():
        setattr(budget, name, value)
    if not 1 <= budget.soft_percent <= 100:
        raise BadInput(
            "The soft stage is 1 to 100 percent.",
            code="no_such_percentage",
            field="soft_percent",
        )
    _above_what_is_held(budget)
    budget.is_set = True
    budget.save(update_fields=[*limits, "is_set"])
    followed = budgets.follow(
        budget, later=[row for row in locked.values() if row.month > month]
    )
    record(
        Kind.BUDGET_SET,
        actor=by.as_actor(),
        subject=("team", team.pk),
        team_id=team.pk,
        month=str(month),
        followed_by=[
            {"month": str(row.month), **_changes(row, before[row.month], after=False)}
            for row in followed
        ],
        **_changes(budget, before[month]),
    )
    return budget


def _limits_of(budget: Budget) -> dict[str, str]:
    return {name: _plain(getattr(budget, name)) for name in Limits.__annotations__}


def _changes(
    budget: Budget, before: Mapping[str, str], *, after: bool = True
) -> dict[str, str]:
    """What was another limit before, by name, and with `after` what it is now: the same for all that follow."""
    told: dict[str, str] = {}
    for name, now in _limits_of(budget).items():
        if now != before[name]:
            told[f"{name}_before"] = before[name]
            told |= {name: now} if after else {}
    return told


@transaction.atomic(savepoint=False)
def tell_close(rows: QuerySet[Budget], *, now: datetime) -> int:
    """Tell members and audit log of each of these budgets that has reached its soft stage, once a month's budget.

    Returns how many were told of. Months that are over are not told of any more.
    """
    told = 0
    close = Budget.objects.to_tell(now).filter(pk__in=rows.values("pk"))
    for budget in close.select_related("team").order_by("team", "month"):
        # The mark is the guard: whoever sets it tells.
        if Budget.objects.filter(pk=budget.pk, soft_told_at=None).update(
            soft_told_at=now
        ):
            _tell_close(budget, now=now)
            told += 1
    return told


def _tell_close(budget: Budget, *, now: datetime) -> None:
    team, kind = budget.team, NoticeKind.BUDGET_SOFT
    members = User.objects.filter(memberships__team=team)
    about, link = ("team", team.pk), reverse("team-budget", args=[team.slug])
    message = close_message(budget)
    tell_with_channels(
        kind, to=members, subject=about, link=link, message=message, now=now
    )
    numbers = (
        "held_usd",
        "limit_usd",
        "held_gpu_hours",
        "gpu_hours_limit",
        "soft_percent",
    )
    record(
        Kind.BUDGET_SOFT_REACHED,
        actor=PORTAL,
        subject=("team", team.pk),
        team_id=team.pk,
        month=f"{budget.month:%B %Y}",
        percent=budget.percent_held,
        part=budget.closest,
        **{name: _plain(getattr(budget, name)) for name in numbers},
    )


def _above_what_is_held(budget: Budget) -> None:
    if budget.limit_usd < budget.held_usd:
        raise Conflict(
            f"{cents(budget.held_usd)} of this month is set aside already; the limit cannot be lower.",
            code="below_what_is_held",
            field="limit_usd",
        )
    if (
        budget.gpu_hours_limit is not None
        and budget.gpu_hours_limit < budget.held_gpu_hours
    ):
        raise Conflict(
            f"{hours(budget.held_gpu_hours)} of this month are set aside already; the limit cannot be lower.",
            code="below_what_is_held",
            field="gpu_hours_limit",
        )


def _plain(value: Decimal | int | None) -> str:
    if value is None:
        return "none"
    return f"{value:.2f}" if isinstance(value, Decimal) else str(value)

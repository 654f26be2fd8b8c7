"""Setting money aside and letting it go, by conditional update: concurrent asks can never overspend."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import F, OuterRef, Sum

from accounts.models import Team
from accounts.refusals import Conflict
from allocations.models import Budget, Hold
from allocations.totals import total


def budgets_of(team: Team, months: list[date], *, lock: bool = False) -> dict[date, Budget]:
    """The budgets of these months, made with the usual limit where there was none; locked in order of month."""
    limit = last_limit(team)
    for month in months:
        Budget.objects.get_or_create(team=team, month=month, defaults={"limit_usd": limit})
    rows = Budget.objects.filter(team=team, month__in=months).order_by("month")
    return {row.month: row for row in (rows.select_for_update(no_key=True) if lock else rows)}


def lock_all(team: Team, months: list[date]) -> None:
    """Lock every budget of a team in order of month, with these months among them.

    What a request set aside earlier may lie in other months than it needs now, and both are moved at once.
    """
    budgets_of(team, months)
    list(Budget.objects.select_for_update(no_key=True).filter(team=team).order_by("month"))


def last_limit(team: Team) -> Decimal:
    """The limit a new month starts with: the newest month's, else the installation's."""
    newest = Budget.objects.filter(team=team).order_by("-month").values_list("limit_usd", flat=True).first()
    return newest if newest is not None else Decimal(settings.ENV.monthly_budget_usd)


def left_by_month(team: Team, months: list[date], *, own: str = "") -> dict[date, tuple[Decimal, Decimal]]:
    """(left, limit) in USD of each month, read in one query and without writing anything.

    What the reference `own` has set aside counts as left.
    """
    held = Hold.objects.filter(budget=OuterRef("pk"), reference=own)
    rows = (
        Budget.objects.filter(team=team).annotate(own=total(held, Sum("usd"), by="budget")).order_by("-month")
    )
    known = {row.month: row for row in rows}
    newest = next(iter(known.values()), None)
    usual = newest.limit_usd if newest is not None else Decimal(settings.ENV.monthly_budget_usd)
    return {
        month: (row.left_usd + (row.own or 0), row.limit_usd) if (row := known.get(month)) else (usual, usual)
        for month in months
    }


def hold(team: Team, *, reference: str, parts: Mapping[date, Decimal], now: datetime) -> None:
    """Set aside USD by month for a reference; raises Conflict and the caller's transaction must roll back."""
    budgets = budgets_of(team, sorted(parts), lock=True)
    for month, usd in sorted(parts.items()):
        budget = budgets[month]
        moved = Budget.objects.filter(pk=budget.pk, limit_usd__gte=F("held_usd") + usd).update(
            held_usd=F("held_usd") + usd
        )
        if not moved:
            raise Conflict(
                f"{month:%B %Y} has ${budget.left_usd:,.2f} left of ${budget.limit_usd:,.2f}; "
                f"this needs ${usd:,.2f}.",
                code="budget_too_small",
            )
        Hold.objects.create(budget=budget, reference=reference, usd=usd, at=now, why="set aside")


def settle(*, reference: str, parts: Mapping[date, Decimal], now: datetime, why: str) -> Decimal:
    """Make what a reference holds equal to `parts`, which is never more in any month; returns the USD let go."""
    held = (
        Hold.objects.filter(reference=reference).values("budget_id", "budget__month").annotate(usd=Sum("usd"))
    )
    freed = Decimal(0)
    for row in held.order_by("budget__month"):
        surplus = row["usd"] - parts.get(row["budget__month"], Decimal(0))
        if surplus <= 0:
            continue
        Budget.objects.filter(pk=row["budget_id"]).update(held_usd=F("held_usd") - surplus)
        Hold.objects.create(budget_id=row["budget_id"], reference=reference, usd=-surplus, at=now, why=why)
        freed += surplus
    return freed

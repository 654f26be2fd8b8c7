"""Setting money and GPU-hours aside and letting them go, by conditional update: nothing is ever overspent."""

from collections.abc import Container, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from django.conf import settings
from django.db.models import F, OuterRef, Q, Sum
from django.db.models.functions import Round

from accounts.models import Team
from allocations.budgets.money import NOTHING, Amount, Left
from allocations.budgets.totals import in_cents, total
from allocations.models import Budget, Hold, LedgerEntry
from ui.amounts import cents, hours
from web.refusals import Conflict


class Replayed(NamedTuple):
    """What a month's budget says is held, and what its ledger adds up to."""

    month: date
    held: Amount
    ledger: Amount

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.held == self.ledger


def budgets_of(
    team: Team, months: list[date], *, lock: bool = False
) -> dict[date, Budget]:
    """The budgets of these months, made with the usual limits where there was none; locked in order of month."""
    rows = Budget.objects.filter(team=team, month__in=months).order_by("month")
    found = {row.month: row for row in rows}
    if _make_missing(team, months, known=found):
        found = {row.month: row for row in rows.all()}
    return (
        {row.month: row for row in rows.select_for_update(no_key=True)}
        if lock
        else found
    )


def _make_missing(
    team: Team, months: Iterable[date], *, known: Container[date]
) -> bool:
    """Make the months that are not there; whether any was missing. Nothing may be locked: two would wait in a ring."""
    missing = sorted(month for month in months if month not in known)
    if missing:
        rows = list(Budget.objects.filter(team=team, month__lt=missing[-1]))
        # Somebody else may make the same month now: theirs then stands.
        Budget.objects.bulk_create(
            (starting(team, month, known=rows) for month in missing),
            ignore_conflicts=True,
        )
    return bool(missing)


def lock_all(team: Team, months: list[date]) -> dict[date, Budget]:
    """Lock every budget of a team in order of month, with these months among them; returns them as they are then.

    What a request set aside earlier may lie in other months than it needs now, and both are moved at once.
    """
    rows = Budget.objects.filter(team=team).order_by("month")
    if months:
        _make_missing(
            team,
            months,
            known=set(rows.filter(month__in=months).values_list("month", flat=True)),
        )
    return {row.month: row for row in rows.select_for_update(no_key=True)}


def starting(team: Team, month: date, *, known: Iterable[Budget]) -> Budget:
    """A month as it starts, not saved: with the limits of the newest known month before it, else the installation's.

    `known` are budgets of the team, in any order. What was set for a later month says nothing about an earlier one.
    """
    like = max(
        (row for row in known if row.month < month),
        key=lambda row: row.month,
        default=Budget(limit_usd=Decimal(settings.ENV.monthly_budget_usd)),
    )
    return Budget(
        team=team,
        month=month,
        limit_usd=like.limit_usd,
        gpu_hours_limit=like.gpu_hours_limit,
        soft_percent=like.soft_percent,
    )


def follow(budget: Budget, *, later: Iterable[Budget]) -> list[Budget]:
    """Give the limits of a month to those after it, up to the first that has limits of its own; returns those changed.

    A month in which more is set aside than the new limits keeps its own, and so do those after it. `later` are locked.
    """
    followed = []
    for row in sorted(later, key=lambda row: row.month):
        if row.is_set or not _has_room(budget, row):
            break
        row.limit_usd = budget.limit_usd
        row.gpu_hours_limit = budget.gpu_hours_limit
        row.soft_percent = budget.soft_percent
        row.save(update_fields=["limit_usd", "gpu_hours_limit", "soft_percent"])
        followed.append(row)
    return followed


def _has_room(limits: Budget, row: Budget) -> bool:
    """Whether what a month has set aside fits into the limits of another."""
    hours = limits.gpu_hours_limit
    return row.held_usd <= limits.limit_usd and (
        hours is None or row.held_gpu_hours <= hours
    )


def fresh(team: Team, month: date) -> Budget:
    """A month that is not there as it would start, read in one query and not saved."""
    before = Budget.objects.filter(team=team, month__lt=month).order_by("-month")
    return starting(team, month, known=before[:1])


def left_by_month(
    team: Team,
    months: Iterable[date],
    own: int = 0,
    *,
    locked: Mapping[date, Budget] | None = None,
) -> dict[date, Left]:
    """What is left of each month, read in one query and without writing anything.

    What the hold `own` has set aside counts as left. Of nobody's own, the `locked` budgets of the team say it as well.
    """
    if locked is not None and not own:
        return {
            month: _left(
                locked.get(month) or starting(team, month, known=locked.values()),
                NOTHING,
            )
            for month in months
        }
    held = LedgerEntry.objects.filter(budget=OuterRef("pk"), hold=own)
    rows = Budget.objects.filter(team=team).annotate(
        own_usd=total(held, in_cents(Sum("usd")), by="budget"),
        own_hours=total(held, in_cents(Sum("gpu_hours")), by="budget"),
    )
    known = {row.month: row for row in rows}
    return {
        month: _left(row, _annotated(row, "own_usd", "own_hours"))
        if (row := known.get(month))
        else _left(starting(team, month, known=known.values()), NOTHING)
        for month in months
    }


def _annotated(row: Budget, usd: str, gpu_hours: str) -> Amount:
    """What a query has added to a budget under two names; NULL is nothing."""
    return Amount(
        getattr(row, usd) or Decimal(0), getattr(row, gpu_hours) or Decimal(0)
    )


def _left(budget: Budget, own: Amount) -> Left:
    left = budget.left_gpu_hours
    return Left(
        usd=budget.left_usd + own.usd,
        usd_limit=budget.limit_usd,
        gpu_hours=None if left is None else left + own.gpu_hours,
        gpu_hours_limit=budget.gpu_hours_limit,
        soft_percent=budget.soft_percent,
    )


def reserve(
    hold: Hold,
    *,
    parts: Mapping[date, Amount],
    now: datetime,
    locked: Mapping[date, Budget] | None = None,
) -> None:
    """Set amounts of its team aside by month; raises Conflict and the caller's transaction must roll back.

    The codes are `budget_too_small` and `gpu_hours_too_few`. `locked` are budgets that the caller has locked; where
    they are all that is needed, none is looked up.
    """
    budgets = (
        locked
        if locked and parts.keys() <= locked.keys()
        else budgets_of(hold.team, sorted(parts))
    )
    needed = [
        (budgets[month], part)
        for month, part in sorted(parts.items())
        if part != NOTHING
    ]
    for budget, part in needed:
        then_usd, then_hours = _after(part)
        moved = Budget.objects.filter(
            Q(gpu_hours_limit=None) | Q(gpu_hours_limit__gte=then_hours),
            pk=budget.pk,
            limit_usd__gte=then_usd,
        ).update(held_usd=then_usd, held_gpu_hours=then_hours)
        if not moved:
            raise _too_little(Budget.objects.get(pk=budget.pk), part)
    LedgerEntry.objects.bulk_create(
        LedgerEntry(
            budget=budget,
            hold=hold,
            usd=part.usd,
            gpu_hours=part.gpu_hours,
            at=now,
            why="set aside",
        )
        for budget, part in needed
    )


def _after(change: Amount) -> tuple[Round, Round]:
    """USD and GPU-hours that a budget holds after a change."""
    return in_cents(F("held_usd") + change.usd), in_cents(
        F("held_gpu_hours") + change.gpu_hours
    )


def _too_little(budget: Budget, part: Amount) -> Conflict:
    if part.usd > budget.left_usd:
        return Conflict(
            f"{budget.month:%B %Y} has {cents(budget.left_usd)} left of {cents(budget.limit_usd)}; "
            f"this needs {cents(part.usd)}.",
            code="budget_too_small",
        )
    left, limit = (
        budget.left_gpu_hours or Decimal(0),
        budget.gpu_hours_limit or Decimal(0),
    )
    return Conflict(
        f"{budget.month:%B %Y} has {hours(left)} left of {hours(limit)}; this needs {hours(part.gpu_hours)}.",
        code="gpu_hours_too_few",
    )


def settle(
    hold: Hold, *, parts: Mapping[date, Amount], now: datetime, why: str
) -> Amount:
    """Make what is set aside equal to `parts`, which is never more in any month; returns what was freed."""
    rows = LedgerEntry.objects.filter(hold=hold)
    # Locked before they are added up: what two settle at the same time is let go once.
    locked = (
        Budget.objects.select_for_update(no_key=True)
        .filter(pk__in=rows.order_by().values("budget"))
        .order_by("month")
    )
    if not list(locked):
        return NOTHING
    held = rows.values("budget_id", "budget__month").annotate(
        usd=in_cents(Sum("usd")), gpu_hours=in_cents(Sum("gpu_hours"))
    )
    freed = NOTHING
    for row in held.order_by("budget__month"):
        surplus = Amount(row["usd"], row["gpu_hours"]).minus(
            parts.get(row["budget__month"], NOTHING)
        )
        surplus = Amount(
            max(surplus.usd, Decimal(0)), max(surplus.gpu_hours, Decimal(0))
        )
        if surplus == NOTHING:
            continue
        then_usd, then_hours = _after(NOTHING.minus(surplus))
        Budget.objects.filter(pk=row["budget_id"]).update(
            held_usd=then_usd, held_gpu_hours=then_hours
        )
        LedgerEntry.objects.create(
            budget_id=row["budget_id"],
            hold=hold,
            usd=-surplus.usd,
            gpu_hours=-surplus.gpu_hours,
            at=now,
            why=why,
        )
        freed = freed.plus(surplus)
    return freed


def replay(team: Team) -> list[Replayed]:
    """Add the team's whole ledger up again and set it beside what the budgets say, oldest month first."""
    rows = Budget.objects.filter(team=team).annotate(
        ledger_usd=in_cents(Sum("entries__usd", default=Decimal(0))),
        ledger_hours=in_cents(Sum("entries__gpu_hours", default=Decimal(0))),
    )
    return [
        Replayed(
            row.month,
            Amount(row.held_usd, row.held_gpu_hours),
            _annotated(row, "ledger_usd", "ledger_hours"),
        )
        for row in rows.order_by("month")
    ]

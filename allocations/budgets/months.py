"""A team's months as pages and API show them: set aside, left, where the month leads, and its ledger line by line."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from django.urls import reverse

from accounts.models import Team
from allocations.budgets import balances as budgets
from allocations.budgets.money import month_of, months_in_a_row, next_month
from allocations.budgets.pacing import Holding, Pace, pace, pace_words
from allocations.models import Allocation, Budget, Hold, LedgerEntry
from ui.amounts import usd
from ui.parts import Cell, Columns, Row

MONTHS_AHEAD = 3
LINES = 50
MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])", re.ASCII)
LINE = re.compile(r"\d{1,18}", re.ASCII)


def months_from(now: datetime) -> list[date]:
    """This month and those after it that a limit can be set for."""
    return months_in_a_row(month_of(now), MONTHS_AHEAD)


def month_named(text: str) -> date | None:
    """The first day of a month written like 2026-11; None for anything else."""
    parts = MONTH.fullmatch(text)
    return date(int(parts[1]), int(parts[2]), 1) if parts else None


def budget_of(team: Team, month: date) -> Budget:
    """A month's budget, or what it would begin with; writes nothing."""
    return Budget.objects.filter(team=team, month=month).first() or budgets.fresh(
        team, month
    )


def pace_of(
    budget: Budget, *, now: datetime, rows: Iterable[Allocation] | None = None
) -> Pace | None:
    """Where the budget's month leads, None when it is not the month under way.

    Reads what the team holds, held or has booked in the month in one query, unless `rows` are these.
    """
    if budget.month != month_of(now):
        return None
    if rows is None:
        start = datetime(budget.month.year, budget.month.month, 1, tzinfo=UTC)
        every = Allocation.objects.charged_within(start, next_month(start))
        rows = every.filter(team=budget.team_id).order_by()
    return pace(
        [
            Holding(
                row.gpus,
                row.usd_per_hour,
                start=row.charge_start(now),
                end=row.charged_until,
            )
            for row in rows
        ],
        usd_limit=budget.limit_usd,
        gpu_hours_limit=budget.gpu_hours_limit,
        now=now,
    )


def pace_sentences(seen: Pace | None, *, now: datetime) -> list[str]:
    """What a pace says: a sentence for the money, and one for GPU-hours where they have a limit."""
    if seen is None:
        return []
    more = (
        [pace_words(seen.gpu_hours, now=now, unit="GPU-hours")]
        if seen.gpu_hours
        else []
    )
    return [pace_words(seen.usd, now=now), *more]


def close_sentence(budget: Budget) -> str:
    """That the soft stage is reached, and what it means; empty before."""
    if not budget.is_close:
        return ""
    part = "" if budget.closest == "budget" else "the GPU-hours of "
    is_are = "are" if part else "is"
    return (
        f"{budget.percent_held} % of {part}{budget.month:%B} {is_are} set aside. "
        f"{budget.stage_words}"
    )


def budgets_ahead(team: Team, *, now: datetime) -> dict[date, Budget]:
    """This month's budget and those ahead, read in one query; a month that is not there stands as it would start."""
    known = {row.month: row for row in Budget.objects.filter(team=team)}
    return {
        month: known.get(month) or budgets.starting(team, month, known=known.values())
        for month in months_from(now)
    }


def last_month(team: Team, *, now: datetime) -> Budget | None:
    """The budget of the month before this one, None where the team had none; one query."""
    before = (month_of(now) - timedelta(days=1)).replace(day=1)
    return Budget.objects.filter(team=team, month=before).first()


@dataclass(frozen=True, kw_only=True)
class ThisMonth:
    """Where the month under way leads: its budget, that it is close to its limit, and its pace in sentences."""

    budget: Budget
    close: str
    pace: Pace | None
    says: list[str]


def this_month(
    team: Team,
    *,
    now: datetime,
    budget: Budget | None = None,
    rows: Iterable[Allocation] | None = None,
) -> ThisMonth:
    """This month's budget, whether it is close, and where it leads; `budget` and `rows` if they were read already."""
    budget = budget or budgets_ahead(team, now=now)[month_of(now)]
    seen = pace_of(budget, now=now, rows=rows)
    return ThisMonth(
        budget=budget,
        close=close_sentence(budget),
        pace=seen,
        says=pace_sentences(seen, now=now),
    )


@dataclass(frozen=True, kw_only=True)
class MonthLine:
    """A month with what is left of its limits, or was if it is over; `month` is written like 2026-11."""

    month: str
    label: str
    budget: Budget
    is_over: bool
    note: str
    hours_note: str


def month_lines(rows: Iterable[Budget], *, now: datetime) -> list[MonthLine]:
    """What is set aside of each limit of each month."""
    return [_month_line(row, is_over=row.month < month_of(now)) for row in rows]


def _month_line(row: Budget, *, is_over: bool) -> MonthLine:
    return MonthLine(
        month=f"{row.month:%Y-%m}",
        label=f"{row.month:%B %Y}",
        budget=row,
        is_over=is_over,
        note=f"the month is over, {usd(row.left_usd)} was left"
        if is_over
        else f"{usd(row.left_usd)} left",
        hours_note=""
        if row.left_gpu_hours is None
        else f"{row.left_gpu_hours:,.0f} GPU-hours {'were left' if is_over else 'left'}",
    )


@dataclass(frozen=True)
class Ledger:
    """Lines of a month, newest first, and the addresses of the pages beside them (empty where there is none)."""

    rows: Sequence[Row]
    newer: str
    older: str


COLUMNS: Columns = (
    "When",
    "For",
    "Why",
    {"label": "USD", "kind": "number"},
    {"label": "GPU-hours", "kind": "number"},
)


def ledger_of(budget: Budget, query: Mapping[str, str]) -> Ledger:
    """One page of a month's ledger; `before` or `after` in the query name the line where it begins."""
    before, after = (query.get(name, "") for name in ("before", "after"))
    lines = LedgerEntry.objects.select_related("hold__request__flavor")
    lines = lines.filter(budget=budget.pk) if budget.pk else lines.none()
    if LINE.fullmatch(after):
        found = list(lines.filter(pk__gt=int(after)).order_by("pk")[: LINES + 1])
        more, found = len(found) > LINES, found[:LINES][::-1]
        newer, older = more, True
    else:
        is_first = not LINE.fullmatch(before)
        lines = lines if is_first else lines.filter(pk__lt=int(before))
        found = list(lines.order_by("-pk")[: LINES + 1])
        newer, older, found = not is_first, len(found) > LINES, found[:LINES]
    return Ledger(
        rows=[_line(row) for row in found],
        newer=f"?after={found[0].pk}" if found and newer else "",
        older=f"?before={found[-1].pk}" if found and older else "",
    )


def _line(row: LedgerEntry) -> Row:
    """A line as cells: what is let go stands there with a minus."""
    return {
        "cells": [
            row.at,
            _named(row.hold),
            row.why.capitalize(),
            _signed(row.usd),
            _signed(row.gpu_hours),
        ]
    }


def _named(hold: Hold) -> str | Cell:
    number = hold.request_id
    if number is None:
        return hold.reference
    return {
        "text": hold.about,
        "href": reverse("request", args=[number]),
        "sub": f"request {number}",
    }


def _signed(amount: Decimal) -> Cell:
    sign = "−" if amount < 0 else "+" if amount > 0 else ""
    return {"text": f"{sign}{abs(amount):,.2f}"}

"""What is set aside for the months to come, by team: what is granted, booked or asked for beyond this month."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Q
from django.urls import reverse

from accounts.models import Team, User
from allocations.budgets.money import month_of
from allocations.models import Budget
from insights.costs.charges import codes_of
from ui.amounts import usd
from ui.parts import Cell, Column, Columns, Content, Row

MOST_MONTHS = 6


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """A table of teams by months, and how many months are left out at its end."""

    columns: Columns
    rows: Sequence[Row]
    more: int


def ahead_of(user: User, *, team: str, cost_centre: str, now: datetime) -> Ahead | None:
    """Of the teams whose costs this person sees; None where nothing is set aside. One query.

    Of one of them by its slug, or of those that have one cost centre now, where these are named.
    """
    rows = Budget.objects.filter(month__gt=month_of(now), held_usd__gt=0)
    codes = codes_of(user)
    if codes is not None:
        mine = Q(team__in=user.team_ids)
        for code in codes:
            mine |= Q(team__cost_centre__iexact=code)
        rows = rows.filter(mine)
    if team:
        rows = rows.filter(team__slug=team)
    if cost_centre:
        rows = rows.filter(team__cost_centre__iexact=cost_centre)
    found: dict[Team, dict[date, Budget]] = {}
    for row in rows.select_related("team").order_by("team__name", "month"):
        found.setdefault(row.team, {})[row.month] = row
    months = sorted({month for of_team in found.values() for month in of_team})
    shown = months[:MOST_MONTHS]
    if not found:
        return None
    lines = [
        _row(one, of_team, shown, is_seen=codes is None or one.pk in user.team_ids)
        for one, of_team in found.items()
    ]
    if len(lines) > 1:
        lines.append(_total([*found.values()], shown))
    ends = [Column(label=f"{month:%b %Y}", kind="number") for month in shown]
    return Ahead(columns=["Team", *ends], rows=lines, more=len(months) - len(shown))


def _row(
    team: Team, months: dict[date, Budget], shown: Sequence[date], *, is_seen: bool
) -> Row:
    name: Cell = {"text": team.name}
    if is_seen:
        name["href"] = reverse("team-budget", args=[team.slug])
    cells: list[Content] = [name]
    for month in shown:
        row = months.get(month)
        cells.append(
            "–"
            if row is None
            else {"text": usd(row.held_usd), "sub": f"of {usd(row.limit_usd)}"}
        )
    return {"cells": cells}


def _total(teams: Sequence[dict[date, Budget]], shown: Sequence[date]) -> Row:
    cells: list[Content] = ["All of them"]
    for month in shown:
        of_month = [months[month] for months in teams if month in months]
        cells.append(usd(sum((row.held_usd for row in of_month), Decimal(0))))
    return {"cells": cells}

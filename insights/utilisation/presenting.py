"""The weeks of use as the page of utilisation shows them: a chart with its table, and small bars in the rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import dropwhile
from typing import TypedDict
from urllib.parse import urlencode

from django.utils.html import format_html

from insights.utilisation.charting import WeekChart, week_bars, week_chart
from insights.utilisation.history import History
from insights.utilisation.weeks import Week, percent_of, summed
from ui.amounts import gpus, usd
from ui.parts import Cell, Columns, Content, Row

# So many whole weeks are compared with as many before.
COMPARED = 4
SUNDAY = timedelta(days=6)
WEEK_COLUMNS: Columns = [
    "Week",
    {"label": "GPU-hours held", "kind": "number"},
    {"label": "GPU-hours used", "kind": "number"},
    {"label": "In use", "kind": "number"},
    {"label": "Unused", "kind": "number"},
]


class WeeksPanel(TypedDict):
    """The weeks of several places added up; no `chart` before there are two weeks to draw."""

    trend: str
    chart: WeekChart | None
    columns: Columns
    rows: Sequence[Row]


def weeks_panel(histories: Sequence[History], *, now: datetime) -> WeeksPanel | None:
    """What the page shows of some places together, from the first week in which any held something; None for none."""
    weeks = summed((one.weeks for one in histories), now=now)
    known = list(dropwhile(lambda week: not week.held, weeks))
    if not known:
        return None
    return {
        "trend": trend_words(weeks),
        "chart": week_chart(known),
        "columns": WEEK_COLUMNS,
        "rows": [_row(week) for week in reversed(known)],
    }


def trend_words(weeks: Sequence[Week]) -> str:
    """How the last whole weeks compare with those before; empty where nothing of them was measured."""
    whole = [week for week in weeks if week.is_over]
    late = percent_of(whole[-COMPARED:])
    early = percent_of(whole[-2 * COMPARED : -COMPARED])
    if late is None:
        return ""
    before = "" if early is None else f", {_percent(early)} in the four before"
    return f"Work used {_percent(late)} of the GPU-hours that were measured in the last four whole weeks{before}."


def bars_cell(history: History | None, number: int) -> Content:
    """Small bars of what a place used week by week, which lead to its weeks; nothing where none was measured."""
    if history is None:
        return "–"
    bars = week_bars(history.weeks)
    if not bars.track:
        return "–"
    tenancy, flavor = history.tenancy, history.flavor
    query = {"namespace": tenancy.namespace, "flavor": flavor.key}
    return {
        "html": format_html(
            '<a class="table__link" href="?{}#weeks"><svg width="{}" height="{}" aria-hidden="true">'
            '<path class="fill-track" d="{}"/><path class="fill-used" d="{}"/></svg>'
            '<span class="sr-only">Weeks of {} in <bdi>{}</bdi></span></a>',
            urlencode(query),
            bars.width,
            bars.height,
            bars.track,
            bars.used,
            gpus(number, flavor.kind),
            tenancy.namespace,
        )
    }


def _row(week: Week) -> Row:
    used = "–" if week.used is None else _hours(week.used)
    unused = "–" if week.unused_usd is None else usd(week.unused_usd)
    return {"cells": [_name(week), _held(week), used, _in_use(week), unused]}


def _name(week: Week) -> Cell:
    """From Monday to Sunday; one that has only begun says so."""
    last = week.begins + SUNDAY
    first = f"{week.begins.day} {week.begins:%b}"
    return {
        "text": f"{first} – {last.day} {last:%b %Y}",
        "sub": week.name if week.is_over else f"{week.name}, under way",
    }


def _held(week: Week) -> Cell:
    return {"text": _hours(week.held)} if week.held else {"text": "–", "sub": "nothing"}


def _in_use(week: Week) -> Cell:
    """The share that was used; what nobody measured has none."""
    if not week.held:
        return {"text": "–"}
    if week.percent is None:
        return {"text": "–", "sub": "not measured"}
    cell: Cell = {"text": _percent(week.percent)}
    if week.measured < week.held:
        cell["sub"] = f"of {_hours(week.measured)} measured"
    return cell


def _percent(share: Decimal) -> str:
    """ "17 %"; what is something is never told as nothing."""
    return "< 1 %" if 0 < share < 1 else f"{share:.0f} %"


def _hours(amount: Decimal) -> str:
    """GPU-hours, with a tenth where there are few of them."""
    return f"{amount:,.1f}" if 0 < amount < 10 else f"{amount:,.0f}"

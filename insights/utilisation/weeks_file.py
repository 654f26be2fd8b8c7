"""The weeks of use as a CSV file for spreadsheets: a line for each week, team, namespace and kind of GPU."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from django.http import HttpResponse

from insights.utilisation.history import History
from insights.utilisation.weeks import Week, empty_weeks
from web import downloads
from web.spreadsheets import csv_lines


def csv_file(histories: Sequence[History], *, now: datetime) -> HttpResponse:
    """The weeks as a file to keep, named after the one under way."""
    name = f"use-by-week-{empty_weeks(now)[-1].name}.csv"
    return downloads.csv_file(as_csv(histories), name=name)


def as_csv(histories: Sequence[History]) -> str:
    """A line for each week in which something was held, oldest first, under the names of their columns.

    What nobody measured stays empty: a spreadsheet would count a zero.
    """
    lines = [(one, week) for one in histories for week in one.weeks if week.held]
    # Sorting keeps teams in order within a week.
    lines.sort(key=lambda line: line[1].begins)
    cells = ([cell(*line) for cell in COLUMNS.values()] for line in lines)
    return csv_lines([COLUMNS, *cells])


def _or_empty(value: object) -> object:
    return "" if value is None else value


# In the order of the file.
COLUMNS: Mapping[str, Callable[[History, Week], object]] = {
    "week": lambda one, week: week.name,
    "begins": lambda one, week: week.begins.isoformat(),
    "is_over": lambda one, week: "yes" if week.is_over else "no",
    "team": lambda one, week: one.tenancy.team.slug,
    "team_name": lambda one, week: one.tenancy.team.name,
    "namespace": lambda one, week: one.tenancy.namespace,
    "flavor": lambda one, week: one.flavor.key,
    "kind": lambda one, week: one.flavor.kind,
    "held_gpu_hours": lambda one, week: week.held,
    "measured_gpu_hours": lambda one, week: week.measured,
    "used_gpu_hours": lambda one, week: _or_empty(week.used),
    "used_percent": lambda one, week: _or_empty(week.percent),
    "unused_usd": lambda one, week: _or_empty(week.unused_usd),
}

"""Work on GPUs that are no longer held, as pages and the API tell it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from allocations.models import Leftover
from allocations.notices import fate
from ui.amounts import gpus, jobs
from ui.parts import Entry


class StillRunning(TypedDict):
    """A job that runs beyond what is held, as the API gives it."""

    job: str
    flavor: str
    gpus: int
    priority: int
    since: str
    stop_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job among the work that is left."""

    job: str
    gpus: int
    priority: int
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class LeftWork:
    """What still runs on one kind of GPU beyond what is held, and what becomes of it."""

    title: str
    why: str
    where: str
    jobs: Sequence[Job]


def leftovers_of(hold_id: int) -> list[Leftover]:
    """What was left when these holdings ended, dealt with or not, with what was stopped; in two queries."""
    rows = Leftover.objects.filter(allocation__hold=hold_id).select_related(
        "flavor__cluster"
    )
    return list(rows.prefetch_related("stopped"))


def open_of_team(team_id: int) -> list[Leftover]:
    """What a team has left that is not dealt with."""
    return list(
        Leftover.objects.open()
        .filter(tenancy__team=team_id)
        .select_related("flavor__cluster")
    )


def still_running(hold_id: int) -> list[StillRunning]:
    """Each job that runs beyond what is held, once, with when it is stopped."""
    rows = (
        Leftover.objects.open()
        .filter(allocation__hold=hold_id)
        .select_related("flavor")
    )
    found: dict[str, StillRunning] = {}
    for row in rows:
        for one in row.running:
            told = found.setdefault(
                one["uid"],
                {
                    "job": one["job"],
                    "flavor": row.flavor.name,
                    "gpus": one["gpus"].get(row.flavor.name, 0),
                    "priority": one["priority"],
                    "since": one["since"],
                    "stop_at": row.stop_at,
                },
            )
            if row.stop_at is not None:
                told["stop_at"] = min(told["stop_at"] or row.stop_at, row.stop_at)
    return list(found.values())


def stop_of(tenancy_id: int, job: str) -> datetime | None:
    """When a job that runs beyond what is held is stopped; None for any other, and for one that may finish."""
    rows = (
        Leftover.objects.open()
        .filter(tenancy=tenancy_id, stop_at__isnull=False)
        .order_by("stop_at")
    )
    found = rows.values_list("stop_at", "running")
    return next(
        (stop_at for stop_at, work in found if any(one["job"] == job for one in work)),
        None,
    )


def now_running(left: Iterable[Leftover], *, now: datetime) -> Iterator[Entry]:
    """An entry for the timeline for each kind of GPU on which work still runs."""
    for rows in _by_flavor(left):
        yield {
            "phase": "now",
            "tone": "ending",
            "title": title(rows),
            "at": "now",
            "why": said(rows, now=now),
        }


def coming_stops(left: Iterable[Leftover], *, now: datetime) -> Iterator[Entry]:
    """The dates on which work that still runs is stopped, for the timeline."""
    stops = {
        row.stop_at
        for row in left
        if row.done_at is None and row.running and row.stop_at and row.stop_at > now
    }
    for at in sorted(stops):
        yield {"phase": "future", "title": "Work that still runs is stopped", "at": at}


def lines(left: Iterable[Leftover], *, now: datetime) -> list[LeftWork]:
    """What still runs, for the page of a team: a sentence for each kind of GPU, and the jobs with their numbers."""
    return [
        LeftWork(
            title=title(rows),
            why=fate(rows, now=now),
            where=rows[0].flavor.cluster.title,
            jobs=[
                Job(
                    job=one["job"],
                    gpus=one["gpus"].get(rows[0].flavor.name, 0),
                    priority=one["priority"],
                    since=datetime.fromisoformat(one["since"])
                    if one["since"]
                    else None,
                )
                for one in rows[0].running
            ],
        )
        for rows in _by_flavor(left)
    ]


def title(rows: Sequence[Leftover]) -> str:
    """ "2 jobs still use 4 × A100 that are no longer held"."""
    work, flavor = rows[0].running, rows[0].flavor
    used = sum(one["gpus"].get(flavor.name, 0) for one in work)
    verb = "uses" if len(work) == 1 else "use"
    return (
        f"{jobs(len(work))} still {verb} {gpus(used, flavor.kind)} beyond what is held"
    )


def said(rows: Sequence[Leftover], *, now: datetime) -> str:
    """Which jobs, and what becomes of them."""
    names = ", ".join(one["job"] for one in rows[0].running[:5])
    more = len(rows[0].running) - 5
    return f"{names}{f' and {more} more' if more > 0 else ''}. {fate(rows, now=now)}"


def _by_flavor(left: Iterable[Leftover]) -> Iterator[list[Leftover]]:
    groups: dict[tuple[int, int], list[Leftover]] = {}
    for row in left:
        if row.done_at is None and row.running:
            groups.setdefault((row.tenancy_id, row.flavor_id), []).append(row)
    yield from groups.values()

"""What a maintenance of the cluster makes of the answer to whoever starts something there."""

from datetime import datetime, timedelta

from fleet.maintenance import Maintenance, not_before_words, save_before_words
from fleet.models import Cluster
from ui.amounts import duration, moment
from ui.parts import Verdict
from workloads.runs.models import Run

AFTER = "It starts after the maintenance"
MINUTE = timedelta(minutes=1)


def with_maintenance(
    found: Verdict, cluster: Cluster, limit: timedelta | None, *, now: datetime
) -> Verdict:
    """The answer of a run with this limit that is sent now: put off, or with what a planned maintenance does to it."""
    planned = cluster.maintenance(now)
    if planned is None:
        return found
    if maintained := maintained_until_words(cluster, now):
        return {
            **found,
            "tone": "waiting",
            "sentence": AFTER,
            "detail": f"{maintained} {found['detail']}",
        }
    if found["tone"] != "good":
        # Nobody knows when it starts.
        said = _if_it_runs_words(cluster, planned, now)
    elif limit is None or now + limit > planned.starts:
        said = _too_long_words(cluster, planned, now)
    else:
        return found
    return {**found, "detail": f"{found['detail']} {said}"}


def _if_it_runs_words(cluster: Cluster, planned: Maintenance, now: datetime) -> str:
    """What becomes of a run that waits, in a maintenance that is planned."""
    at = moment(planned.starts, now)
    return f"If it runs when the maintenance of {cluster.title} starts, {at}, {_becomes(planned, now)}."


def maintenance_stop_of(run: Run, now: datetime) -> datetime | None:
    """When a planned maintenance stops a run that runs now; None where it may not run so long, or does not run."""
    planned = run.tenancy.cluster.maintenance(now)
    at = planned.stops_at(now) if planned is not None else None
    return at if at is not None and _runs_until(run, at) else None


def maintenance_words(run: Run, now: datetime) -> str:
    """What a planned maintenance does to a run that goes on; empty where it does nothing to it."""
    cluster = run.tenancy.cluster
    planned = cluster.maintenance(now)
    if planned is None or planned.is_on(now):
        return ""
    if run.running_since is None:
        return _if_it_runs_words(cluster, planned, now)
    if not _runs_until(run, planned.starts):
        return ""
    said = save_before_words(cluster.title, moment(planned.starts, now), planned.drains)
    anew = f" It starts anew after {moment(planned.ends, now)}."
    return f"{said}{anew if planned.drains else ''}"


def _runs_until(run: Run, at: datetime) -> bool:
    """Whether a run that runs now may still run at a moment."""
    if run.running_since is None or run.stop_asked_at is not None:
        return False
    return run.limit_at is None or run.limit_at > at


def maintained_until_words(cluster: Cluster, now: datetime) -> str:
    """That nothing starts on a cluster which is maintained now; empty where none is."""
    maintenance = cluster.maintenance_now(now)
    if maintenance is None:
        return ""
    return not_before_words(cluster.title, moment(maintenance.ends, now))


def _too_long_words(cluster: Cluster, planned: Maintenance, now: datetime) -> str:
    at, minutes = moment(planned.starts, now), (planned.starts - now) // MINUTE
    said = f"The maintenance of {cluster.title} starts {at}, before it may have ended: {_becomes(planned, now)}."
    if not minutes:
        return said
    return f"{said} With a time limit of up to {duration(minutes * MINUTE)} it ends before."


def _becomes(planned: Maintenance, now: datetime) -> str:
    if not planned.drains:
        return "it goes on, and can be interrupted"
    return f"it is stopped then, and starts anew after {moment(planned.ends, now)}"

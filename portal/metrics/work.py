"""Figures of what runs and waits on clusters."""

from collections.abc import Iterator

from django.db.models import Count

from portal.metrics.families import Family, age_of
from portal.metrics.moment import Moment
from workloads.models import Run
from workloads.queue_board import NOTHING_WAITS, waiting_by_cluster
from workloads.runs.states import OVER, State


def jobs(moment: Moment) -> Iterator[Family]:
    """What waits in the queues of each cluster, from the portal's copy."""
    found = waiting_by_cluster()
    yield moment.by_cluster(
        "quartermaster_jobs_waiting",
        "Jobs of teams that wait in the queues of the cluster.",
        lambda one: found.get(one.pk, NOTHING_WAITS).jobs,
    )
    yield moment.by_cluster(
        "quartermaster_jobs_waiting_gpus",
        "GPUs that these jobs wait for.",
        lambda one: found.get(one.pk, NOTHING_WAITS).gpus,
    )
    yield moment.by_cluster(
        "quartermaster_jobs_oldest_waiting_seconds",
        "For how long the first of these jobs has waited, in seconds; 0 where none waits.",
        lambda one: age_of(found.get(one.pk, NOTHING_WAITS).oldest, now=moment.now),
    )


def runs(moment: Moment) -> Iterator[Family]:
    """Runs that have not ended."""
    counted = dict(
        Run.objects.live().order_by().values_list("state").annotate(number=Count("pk"))
    )
    yield Family(
        name="quartermaster_runs",
        words="Runs that have not ended, by state.",
        labels=["state"],
        samples={
            (state.value,): counted.get(state.value, 0)
            for state in State
            if state not in OVER
        },
    )

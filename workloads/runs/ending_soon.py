"""Runs that are about to reach their time limit: who submitted one is told while there is time to give it more."""

from datetime import datetime, timedelta

from django.db import transaction

from reconciling.sweeping import for_each
from workloads.runs.models import Run
from workloads.runs.notices import tell_ending
from workloads.runs.states import State

# Of a shorter one somebody is there, or begins it anew soon.
SHORTEST_LIMIT = timedelta(hours=2)
# A tenth of the limit before its end, within these: time to act, and not so long before that it is forgotten again.
PART, LEAST_LEFT, MOST_LEFT = 10, timedelta(minutes=20), timedelta(hours=6)


def tell_of_ends(*, now: datetime) -> None:
    """Tell who submitted a run that its time limit ends it soon, once for each such end."""
    running = Run.objects.live().filter(
        state=State.RUNNING,
        stop_asked_at=None,
        running_since__isnull=False,
        limit_seconds__gte=SHORTEST_LIMIT.total_seconds(),
    )
    fields = ("running_since", "limit_since", "limit_seconds", "limit_told_at")
    due = [one.pk for one in running.only(*fields) if _is_due(one, now)]
    for_each(due, lambda pk: _tell(pk, now=now))


def _is_due(run: Run, now: datetime) -> bool:
    at, limit = run.limit_at, timedelta(seconds=run.limit_seconds or 0)
    left = min(max(limit / PART, LEAST_LEFT), MOST_LEFT)
    return at is not None and run.limit_told_at != at and at - left <= now < at


@transaction.atomic
def _tell(run_id: int, *, now: datetime) -> None:
    run = Run.objects.locked().get(pk=run_id)
    if run.is_over or run.stop_asked_at is not None or not _is_due(run, now):
        return
    run.limit_told_at = run.limit_at
    run.save(update_fields=["limit_told_at"])
    tell_ending(run, now=now)

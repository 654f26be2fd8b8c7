"""When people and webhooks are told of a run's end: at once, or when its log was read that says why it failed."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from reconciling.sweeping import for_each
from workloads.failures.causes import VAGUE
from workloads.runs import notices, webhooks
from workloads.runs.models import Run
from workloads.runs.states import State

# Some passes over the logs; a cluster that is away longer keeps nobody from being told.
LONGEST_WAIT = timedelta(minutes=5)


def tell_ended(run: Run, *, now: datetime) -> None:
    """Tell of a run that ends now; of a failure of which its pods tell too little, once its log is kept.

    Take it with its row locked.
    """
    if _log_may_tell_more(run):
        run.end_told_by = now + LONGEST_WAIT
        run.save(update_fields=["end_told_by"])
    else:
        _tell(run, now=now)


def tell_skipped(runs: Sequence[Run], *, because_of: Run, now: datetime) -> None:
    """Tell webhooks of each run that was skipped, and who submitted them of all at once."""
    for one in runs:
        webhooks.tell_ended(one, now=now)
    notices.tell_skipped(runs, because_of=because_of, now=now)


@transaction.atomic
def tell_waiting(run_id: int, *, now: datetime) -> None:
    """Tell of an end that waited to be told, once."""
    run = Run.objects.locked().get(pk=run_id)
    if run.end_told_by is None:
        return
    run.end_told_by = None
    run.save(update_fields=["end_told_by"])
    _tell(run, now=now)


def tell_overdue(*, now: datetime) -> None:
    """Tell of the ends whose logs did not come in time."""
    due = Run.objects.filter(end_told_by__lte=now).order_by("end_told_by")
    for_each(
        due.values_list("pk", flat=True), lambda run_id: tell_waiting(run_id, now=now)
    )


def _log_may_tell_more(run: Run) -> bool:
    return (
        run.state == State.FAILED
        and run.cause in VAGUE
        and not run.was_stopped_at_limit
        and run.started_at is not None
        and run.logs_kept_at is None
        and bool(settings.ENV.logs_kept_days)
    )


def _tell(run: Run, *, now: datetime) -> None:
    notices.tell_ended(run, now=now)
    webhooks.tell_ended(run, now=now)

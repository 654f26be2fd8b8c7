"""What can stop a run before it has ended."""

from datetime import datetime, timedelta

from workloads.runs.held_until import too_few_before, too_few_words
from workloads.runs.models import Run
from workloads.runs.planning.maintained import maintenance_words


def early_stop_words(run: Run, now: datetime) -> str:
    """That a run which goes on can be stopped before it has ended, and by what; empty where nothing is known to."""
    if run.is_over or run.stop_asked_at is not None:
        return ""
    # One that waits may run for as long from whenever it begins.
    until = run.limit_at
    if until is None and run.limit_seconds:
        until = now + timedelta(seconds=run.limit_seconds)
    found = too_few_before(run.tenancy, run.flavor, run.gpus, until=until)
    words = [too_few_words(found, run.tenancy, now=now), maintenance_words(run, now)]
    return " ".join(filter(None, words))

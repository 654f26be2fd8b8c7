"""Attempts of a run: each time that it ran, and why it ran no longer.

What a run says of how long it ran (`running_since`, `ran_seconds`) is written here alone, from its attempts and
together with them.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from workloads.reasons.starting import RECOVERING
from workloads.runs.models import Attempt, Run

LONGEST_REASON = 600


@transaction.atomic
def begin(
    run: Run,
    *,
    at: datetime,
    admitted_at: datetime | None,
    limit_since: datetime | None = None,
) -> bool:
    """Write down that a run runs since then; False where another worker wrote something of it since it was read.

    Its time limit counts from `limit_since`, where that is earlier.
    """
    found = Run.objects.locked().get(pk=run.pk)
    if found.is_over or _told(found) != _told(run):
        return False
    last = found.run_attempts.last()
    if last is not None and last.ended_at is not None:
        at = max(at, last.ended_at)
    Attempt.objects.create(
        run=found,
        number=1 if last is None else last.number + 1,
        started_at=at,
        admitted_at=admitted_at,
    )
    run.running_since, run.started_at = at, run.started_at or at
    run.limit_since = min(limit_since, at) if limit_since is not None else None
    run.save(update_fields=["running_since", "started_at", "limit_since"])
    return True


@transaction.atomic
def finish(run: Run, *, at: datetime, why: str, is_sent_back: bool) -> bool:
    """Write down that a run runs no more since then, but goes on, and why; False as `begin`."""
    found = Run.objects.locked().get(pk=run.pk)
    if found.is_over or _told(found) != _told(run):
        return False
    run.save(update_fields=finished(run, at=at, why=why, is_sent_back=is_sent_back))
    return True


def ended_with_last(run: Run) -> None:
    """Take it back that the last attempt of a run that failed was interrupted: no pod came in the failed one's place.

    A pod has failed for a moment before Kubernetes says that its job has, which is when nobody knows which it will be.
    """
    last = run.run_attempts.last()
    if last is not None and last.ended_at is not None and last.why == RECOVERING:
        last.why = ""
        last.save(update_fields=["why"])


def _told(run: Run) -> tuple[datetime | None, datetime | None, int]:
    return run.started_at, run.running_since, run.ran_seconds


def finished(
    run: Run, *, at: datetime, why: str = "", is_sent_back: bool = False
) -> Sequence[str]:
    """End the attempt that is not over of a run that is locked; the fields of the run to be saved with it."""
    attempts = [*run.run_attempts.all()]
    for one in attempts:
        if one.ended_at is None:
            one.ended_at, one.why = max(at, one.started_at), why[:LONGEST_REASON]
            one.is_sent_back = is_sent_back
            one.save(update_fields=["ended_at", "why", "is_sent_back"])
    ran = [one.ended_at - one.started_at for one in attempts if one.ended_at]
    run.running_since = run.limit_since = None
    run.ran_seconds = round(sum(each.total_seconds() for each in ran))
    return ["running_since", "limit_since", "ran_seconds"]

"""How a run ends, which is written down once, and what becomes of the runs that wait for it."""

from collections.abc import Iterable
from datetime import datetime
from heapq import heappop, heappush

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from workloads.runs import attempts, telling
from workloads.runs.enqueue import enqueue_on_commit
from workloads.runs.models import Run
from workloads.runs.states import State


@transaction.atomic
def end(
    run_id: int,
    state: State,
    *,
    now: datetime,
    message: str = "",
    cause: str = "",
    at: datetime | None = None,
) -> bool:
    """Write down how a run ended, once; False when it had ended. Those who are to know are told.

    What waits for it is sent when it finished, and skipped otherwise. `cause` is the code of that for which its program
    failed; empty where it is not known, and where it did not fail.
    """
    run = Run.objects.locked().get(pk=run_id)
    if run.is_over:
        return False
    has_finished = state is State.FINISHED
    followers = lock_followers(run, all_of_them=not has_finished)
    _write_end(run, state, now=now, message=message, cause=cause, at=at)
    skipped = list[Run]()
    if has_finished:
        _release(followers, now=now)
    else:
        skipped = _skip(followers, run, now=now)
    telling.tell_ended(run, now=now)
    telling.tell_skipped(skipped, because_of=run, now=now)
    # Last, for each takes the audit chain.
    for one in (run, *skipped):
        _record(one)
    return True


def _write_end(
    run: Run,
    state: State,
    *,
    now: datetime,
    message: str,
    cause: str = "",
    at: datetime | None = None,
) -> None:
    """Write down how a run ended that is locked and was not over."""
    run.state, run.message, run.cause = state, message[:600], cause
    run.ended_at = max(at or now, run.running_since or run.started_at or run.created_at)
    ran = attempts.finished(run, at=run.ended_at)
    if state is State.FAILED and not run.was_stopped_at_limit:
        attempts.ended_with_last(run)
    run.save(update_fields=["state", "message", "cause", "ended_at", *ran])


def _record(run: Run) -> None:
    record(
        Kind.RUN_ENDED,
        actor=PORTAL,
        subject=("run", run.pk),
        team_id=run.team_id,
        name=run.name,
        state=str(run.state),
        message=run.message or None,
    )


def lock_followers(run: Run, *, all_of_them: bool) -> list[Run]:
    """Lock what waits for a run that is locked, or also what waits for that, and so on; ascending by number.

    In this order everybody locks runs, and each was submitted after the one that it waits for. Before anything is
    recorded, for the audit chain is locked last. None is added to them meanwhile.
    """
    found, line = list[Run](), _numbers_of_followers(run)
    while line:
        waiting = Run.objects.locked().filter(state=State.BLOCKED)
        one = waiting.filter(pk=heappop(line)).first()
        # Else somebody stopped it meanwhile.
        if one is not None:
            found.append(one)
            for number in _numbers_of_followers(one) if all_of_them else ():
                heappush(line, number)
    return found


def _numbers_of_followers(run: Run) -> list[int]:
    rows = Run.objects.filter(after=run, state=State.BLOCKED).order_by("pk")
    return [*rows.values_list("pk", flat=True)]


def _release(followers: Iterable[Run], *, now: datetime) -> None:
    """Have a worker send what waited for a run that has finished."""
    for one in followers:
        one.state, one.requeue_at = State.SUBMITTED, now
        one.save(update_fields=["state", "requeue_at"])
        enqueue_on_commit(one.pk)


def _skip(followers: Iterable[Run], run: Run, *, now: datetime) -> list[Run]:
    """End without sending it what waited for a run that ended otherwise than it had to, or for what waited for that.

    The followers ascend by number, so that each comes after the one that it waited for.
    """
    ended = {run.pk: run}
    for one in followers:
        if one.after_id is not None:
            message = _skipped_words(ended[one.after_id])
            _write_end(one, State.SKIPPED, now=now, message=message)
            ended[one.pk] = one
    return [*ended.values()][1:]


def _skipped_words(before: Run) -> str:
    how = before.word.lower()
    return f"It waited for run {before.pk}, {before.title}: {how}."

"""Why a run failed, by the log that is kept of it: torchrun writes so much at the end that its pods tell too little."""

from collections.abc import Iterator

from django.db import transaction

from workloads.failures.causes import VAGUE, Cause
from workloads.failures.signs import cause_in
from workloads.runs.models import KeptLog, Run
from workloads.runs.states import State


@transaction.atomic
def learn_cause(run_id: int) -> None:
    """Write down why a run failed where its kept logs say it more clearly than its pods did."""
    run = Run.objects.locked().get(pk=run_id)
    if run.state != State.FAILED or run.was_stopped_at_limit:
        return
    if run.cause not in VAGUE:
        return
    logs = list(run.kept_logs.filter(attempt=run.last_attempt))
    told = min(_told(logs), key=lambda one: (not one[0].is_clear, one[1]), default=None)
    if told is None:
        return
    cause, _, label = told
    run.cause = cause.code
    run.message = cause.began_in(label if len(logs) > 1 else "")
    run.save(update_fields=["cause", "message"])


def _told(logs: list[KeptLog]) -> Iterator[tuple[Cause, str, str]]:
    """The cause that each log tells, the place of its line, which begins with its time, and what the pod is called."""
    for one in logs:
        lines = one.placed
        found = cause_in([text for _, text in lines])
        if found is not None:
            number, cause = found
            yield cause, lines[number][0], one.label

"""Work that Kubernetes stopped at its time limit, of which a JobSet says only that a Job of it has failed. Pure."""

import re
from collections.abc import Iterator
from datetime import timedelta

from ui.amounts import duration
from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Condition, Facts, Job
from workloads.reading.values import LATEST

REASON = "DeadlineExceeded"
# The kinds whose controllers watch the time themselves say it in words of their own, which Kueue carries over.
SAID = re.compile(
    r"longer than (?:the )?specified deadline|exceeded its active deadline"
)
AT_LIMIT = "It was stopped at its time limit"
MORE_TIME = Step(Action.RUN_AGAIN, "Run it again with more time", {"field": "minutes"})


def at_limit(facts: Facts, ended: Condition) -> Answer | None:
    """That what has failed was stopped at its time limit; None where it failed of anything else."""
    said = _said(facts, ended)
    if said is None:
        return None
    limit = next(_limits(facts), None)
    return Answer(
        code="stopped_at_limit",
        outlook=Outlook.NEVER,
        what=f"{AT_LIMIT}." if limit is None else f"{AT_LIMIT} of {duration(limit)}.",
        do="Run it again from its last checkpoint, with a longer limit if it needs one.",
        when="It is over.",
        since=ended.since,
        step=MORE_TIME,
        detail=said,
    )


def _said(facts: Facts, ended: Condition) -> str | None:
    """What Kubernetes says of the time limit, of the whole or of that part of it which failed first."""
    own = facts.job.outcome if facts.job is not None else None
    failed = [
        one.outcome
        for one in facts.parts
        if one.outcome is not None and one.outcome.kind == "Failed"
    ]
    # What fails after the first part does so because that one is gone.
    first = min(failed, key=lambda one: one.since or LATEST, default=None)
    for one in (ended, own, first):
        if one is not None and (one.reason == REASON or SAID.search(one.message)):
            return one.message
    # Of Volcano's jobs the pods have the limit.
    pods = [one for one in facts.pods if one.phase == "Failed"]
    return "" if pods and all(one.reason == REASON for one in pods) else None


def _limits(facts: Facts) -> Iterator[timedelta]:
    """How long it, or a part of it, may be active."""
    jobs: list[Job] = [*((facts.job,) if facts.job is not None else ()), *facts.parts]
    return (one.limit for one in jobs if one.limit is not None)

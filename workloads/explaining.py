"""Why a job does not run: one answer from observed facts. Pure.

Reasons are asked in the order in which a job goes its way, and the first that applies is the answer; what is over stays
over, also while the cluster is silent. What is observed live goes before what Kueue wrote into the Workload, which may
be older. Only `detail` quotes Kubernetes; names of jobs that the reader may not see stand nowhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from workloads.estimating import Estimate, History
from workloads.explanations import Answer, Explanation, Outlook
from workloads.observed import Facts
from workloads.reasons import (
    absent,
    checks,
    line,
    queues,
    refusals,
    starting,
    stops,
    volcano,
    waiting,
)
from workloads.reasons.clock import Clock
from workloads.reasons.words import redacted

Reason = Callable[[Facts, Clock], Answer | None]
ORDER: Sequence[Reason] = (
    absent.finished,
    absent.silent,
    volcano.without_group,
    absent.unseen,
    stops.inactive,
    stops.being_stopped,
    waiting.gated,
    absent.queues_down,
    queues.closed,
    stops.backing_off,
    waiting.in_line,
    checks.unsatisfied,
    refusals.refused,
    starting.admitted,
)
UNKNOWN = "unknown"


def explain(facts: Facts, *, now: datetime) -> Explanation:
    """Say why a job does not run: what, since when, where in line, when, and what can be done.

    There is always an answer. One that the portal does not know has the code `unknown` and quotes the cluster.
    """
    clock = Clock(now)
    for reason in ORDER:
        answer = reason(facts, clock)
        if answer is not None:
            return _told(answer, facts, clock)
    return _told(_unknown(facts), facts, clock)


def explain_pods(facts: Facts, *, now: datetime) -> Explanation:
    """The same of pods that were started without a job, which no queue lets in."""
    clock = Clock(now)
    answer = starting.over_on_its_own(facts) or absent.silent(facts, clock)
    return _told(answer or starting.on_its_own(facts, clock), facts, clock)


def later(
    found: Explanation, history: History | None, gpus: int, *, now: datetime
) -> Explanation:
    """An explanation of a job of so many GPUs as it reads now, while nothing has changed and before its `until`.

    `history` is that of its queue, as it was when the explanation was made.
    """
    if not found.is_by_history or history is None:
        return found
    estimate = _estimate(history, gpus, found.since, now)
    if estimate == found.estimate:
        return found
    when = line.estimated(estimate, found.latest_at, now)
    return replace(found, estimate=estimate, when=when)


def _estimate(
    history: History, gpus: int, since: datetime, now: datetime
) -> Estimate | None:
    return history.estimate(gpus, waited=max(now - since, timedelta(0)))


def _told(answer: Answer, facts: Facts, clock: Clock) -> Explanation:
    since = answer.since or _beginning(facts) or clock.now
    latest_at = _latest(answer, facts, clock)
    is_by_history = line.is_by_history(answer, facts)
    estimate = None
    if is_by_history and facts.history is not None and facts.workload is not None:
        estimate = _estimate(facts.history, facts.workload.gpus, since, clock.now)
    return Explanation(
        code=answer.code,
        outlook=answer.outlook,
        what=answer.what,
        since=since,
        line=line.describe(answer, facts),
        when=line.estimated(estimate, latest_at, clock.now)
        if is_by_history
        else line.when(answer, clock, latest_at),
        do=answer.do,
        step=answer.step,
        position=line.position(answer, facts),
        at=answer.at,
        estimate=estimate,
        is_by_history=is_by_history,
        latest_at=latest_at,
        detail=redacted(answer.detail),
        until=clock.until,
    )


def _latest(answer: Answer, facts: Facts, clock: Clock) -> datetime | None:
    """By when it starts; None for what does not wait its turn, and once that time has come and it has not started."""
    at = facts.latest_start
    if at is None or not line.waits_its_turn(answer) or clock.has_come(at):
        return None
    clock.written(at)
    return at


def _beginning(facts: Facts) -> datetime | None:
    """Since the job is there, or was put back into the line; Kueue's own time is that of its last look."""
    workload = facts.workload
    if workload is None:
        return facts.job.created if facts.job else None
    requeued = workload.holds("Requeued")
    condition = workload.lacks("QuotaReserved")
    found = requeued.since if requeued is not None else workload.created
    return found or (condition.since if condition is not None else None)


def _unknown(facts: Facts) -> Answer:
    condition = facts.workload.lacks("QuotaReserved") if facts.workload else None
    return Answer(
        code=UNKNOWN,
        outlook=Outlook.ESCALATE,
        what="It does not run, for a reason that the portal does not know.",
        do="The message below says which; a platform lead can look it up.",
        in_line=True,
        detail=condition.message if condition else "",
    )

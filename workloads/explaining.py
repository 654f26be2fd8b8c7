"""Why a job does not run: one answer from observed facts. Pure.

Reasons are asked in the order in which a job goes its way, and the first that applies is the answer. What is observed
live goes before what Kueue wrote into the Workload, which may be older. Only `detail` quotes Kubernetes; names of jobs
that the reader may not see stand nowhere.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from workloads.answers import Answer, Explanation, Outlook
from workloads.observed import Facts
from workloads.reasons import absent, checks, line, queues, refusals, starting, stops, waiting
from workloads.reasons.words import redacted

Reason = Callable[[Facts, datetime], Answer | None]
ORDER: Sequence[Reason] = (
    absent.silent,
    absent.finished,
    absent.unseen,
    stops.inactive,
    stops.being_stopped,
    waiting.gated,
    absent.kueue_down,
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
    for reason in ORDER:
        answer = reason(facts, now)
        if answer is not None:
            return _told(answer, facts, now)
    return _told(_unknown(facts), facts, now)


def explain_pods(facts: Facts, *, now: datetime) -> Explanation:
    """The same of pods that were started without a job, which no queue lets in."""
    return _told(absent.silent(facts, now) or starting.on_its_own(facts, now), facts, now)


def _told(answer: Answer, facts: Facts, now: datetime) -> Explanation:
    since = answer.since or _beginning(facts) or now
    estimate = line.estimate(answer, facts, since, now)
    return Explanation(
        code=answer.code,
        outlook=answer.outlook,
        what=answer.what,
        since=since,
        line=line.describe(answer, facts),
        when=line.when(answer, estimate, facts, now),
        do=answer.do,
        step=answer.step,
        position=line.position(answer, facts),
        at=answer.at,
        estimate=estimate,
        detail=redacted(answer.detail),
    )


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

"""What is known before Kueue has a Workload, once everything is over, and while the cluster is silent. Pure."""

from datetime import timedelta

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.failures.of_pods import why_failed
from workloads.observed import Condition, Facts, Job
from workloads.reasons import maintenance
from workloads.reasons.clock import Clock
from workloads.reasons.limits import at_limit
from workloads.reasons.sources import never_fetched

PROMPT = timedelta(seconds=30)
AGAIN = Step(Action.RUN_AGAIN, "Run it again")
LABEL = "kueue.x-k8s.io/queue-name"
# Why a Workload is over, by the reason of its Finished condition, with what that is worth.
ENDINGS = {
    "OwnerNotFound": "Its job was deleted.",
    "OutOfSync": "Its job was changed while it waited, so the queue gave it up.",
}


def silent(facts: Facts, clock: Clock) -> Answer | None:
    """The cluster does not answer: what is known of the job, its place too, is as old as its last answer."""
    since = facts.cluster.silent_since
    if since is None:
        return None
    do = "What runs there goes on. A platform lead looks at the cluster if it lasts."
    maintained_until = maintenance.ends_at(facts, clock)
    if maintained_until is not None:
        do = f"Wait: it is maintained until {clock.written(maintained_until)}."
    return Answer(
        code="cluster_silent",
        outlook=Outlook.WAIT if maintained_until else Outlook.ESCALATE,
        what=f"{facts.cluster.title} has not answered since {clock.written(since)}; nothing newer is known.",
        do=do,
        since=since,
        in_line=facts.line is not None,
    )


def finished(facts: Facts, clock: Clock) -> Answer | None:
    """It is over, well or not."""
    ended = facts.workload.holds("Finished") if facts.workload else None
    ended = ended or (facts.job.outcome if facts.job else None)
    if ended is None:
        return None
    answer = _ending(ended)
    if answer.code != "failed":
        return answer
    return (
        never_fetched(facts.pods, since=ended.since)
        or at_limit(facts, ended)
        or why_failed(facts.pods, since=ended.since)
        or answer
    )


def _ending(ended: Condition) -> Answer:
    failed = (
        "Fail" in ended.reason or "Exceeded" in ended.reason or ended.kind == "Failed"
    )
    if ended.reason in ENDINGS:
        what, do, step = (
            ENDINGS[ended.reason],
            "Run it again if it is still needed.",
            AGAIN,
        )
    elif failed:
        what, do = (
            "It has failed.",
            "Look at its logs, mend the cause, and run it again.",
        )
        step = Step(Action.SHOW_LOGS, "Show its logs")
    else:
        what, do, step = "It has finished.", "There is nothing to do.", AGAIN
    return Answer(
        code="failed" if failed else "finished",
        outlook=Outlook.NEVER,
        what=what,
        do=do,
        when="It is over.",
        since=ended.since,
        step=step,
        detail=ended.message,
    )


def unseen(facts: Facts, clock: Clock) -> Answer | None:
    """Kueue has made no Workload for the job: no queue, no such priority, Kueue away, or it is only just there."""
    if facts.workload is not None:
        return None
    if facts.job is None:
        return _nothing_known()
    return (
        _queues_down(facts, clock)
        or _unknown_priority(facts.job, facts)
        or _without_queue(facts.job, facts)
        or _not_looked_at(facts.job, facts, clock)
    )


def queues_down(facts: Facts, clock: Clock) -> Answer | None:
    """What keeps the queues is away and the job has no quota yet: nobody lets anything in."""
    workload = facts.workload
    if workload is None or workload.holds("QuotaReserved"):
        return None
    return _queues_down(facts, clock)


def _queues_down(facts: Facts, clock: Clock) -> Answer | None:
    since = facts.cluster.queues_down_since
    if since is None:
        return None
    do = "A platform lead looks at its controller."
    maintained_until = maintenance.ends_at(facts, clock)
    if maintained_until is not None:
        do = f"Wait: it is maintained until {clock.written(maintained_until)}."
    return Answer(
        code="queues_down",
        outlook=Outlook.WAIT if maintained_until else Outlook.ESCALATE,
        what=f"The queue of {facts.cluster.title} does not answer, so no job starts there.",
        do=f"{do} Your job keeps its place; what runs goes on.",
        since=since,
        stands_still=True,
    )


def _nothing_known() -> Answer:
    return Answer(
        code="not_found",
        outlook=Outlook.NEVER,
        what="Nothing of it is on the cluster: it was deleted, or was never there.",
        do="Run it again if it is still needed.",
        step=AGAIN,
    )


def _unknown_priority(job: Job, facts: Facts) -> Answer | None:
    known = facts.cluster.priorities
    if not job.priority or known is None or job.priority in known:
        return None
    return Answer(
        code="unknown_priority",
        outlook=Outlook.CHANGE,
        what=f"It names the priority {job.priority}, which {facts.cluster.title} does not have, "
        "and no queue takes up such a job.",
        do="Name one of the cluster's priorities, or none, and submit it again.",
        step=Step(
            Action.CHANGE_RUN, "Choose another priority", {"field": "priority_class"}
        ),
    )


def _without_queue(job: Job, facts: Facts) -> Answer | None:
    # A job without one came when it could not be put into its namespace's.
    if job.queue or not facts.cluster.labels_jobs:
        return None
    suspended = job.is_suspended is True
    return Answer(
        code="no_queue",
        outlook=Outlook.CHANGE,
        what="It names no queue and somebody suspended it, so nobody starts it."
        if suspended
        else "It names no queue, so it is in no line and runs outside of your team's GPUs.",
        do="Add the label of your team's queue and submit it again.",
        step=Step(
            Action.CHANGE_RUN,
            "Put it into the team's queue",
            {"field": "queue", "label": LABEL},
        ),
        detail=f"There is no label {LABEL} on it.",
    )


def _not_looked_at(job: Job, facts: Facts, clock: Clock) -> Answer:
    if job.created is None or not clock.has_come(job.created + PROMPT):
        return Answer(
            code="just_created",
            outlook=Outlook.WAIT,
            what="It was created just now, and the queue is about to look at it.",
            do="Wait: it takes seconds.",
        )
    return Answer(
        code="not_queued",
        outlook=Outlook.ESCALATE,
        what=f"No queue has taken it up: {_why_not(job, facts)}.",
        do="A platform lead checks whether Kueue is set up for this namespace and jobs of this kind.",
    )


def _why_not(job: Job, facts: Facts) -> str:
    if job.is_suspended is False:
        return "it runs outside of the queue"
    return f"this namespace is not set up for it, or not for a {job.key.kind}"

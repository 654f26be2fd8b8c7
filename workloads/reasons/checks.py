"""Quota is reserved, and admission checks have not all agreed. Pure."""

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Check, Facts
from workloads.reasons.clock import Clock


def unsatisfied(facts: Facts, clock: Clock) -> Answer | None:
    """The check that matters most: one that rejected it, one that asks to try later, or one that has not answered."""
    workload = facts.workload
    if (
        workload is None
        or not workload.holds("QuotaReserved")
        or workload.holds("Admitted")
    ):
        return None
    for state, answer in ANSWERS.items():
        found = next((one for one in workload.checks if one.state == state), None)
        if found is not None:
            return answer(found, facts, clock)
    return Answer(
        code="being_admitted",
        outlook=Outlook.WAIT,
        what="Its quota is reserved, and the queue is letting it in.",
        do="Wait: it takes seconds.",
        since=workload.conditions["QuotaReserved"].since,
    )


def _rejected(check: Check, facts: Facts, clock: Clock) -> Answer:
    why = f': "{check.message}"' if check.message else ""
    return Answer(
        code="check_rejected",
        outlook=Outlook.NEVER,
        what=f"The check {check.name} rejected it{why}. It does not come back, not even when somebody resumes it.",
        do="Change what was refused, and run it again.",
        since=check.since,
        step=Step(Action.RUN_AGAIN, "Run it again"),
    )


def _retry(check: Check, facts: Facts, clock: Clock) -> Answer:
    at = facts.workload.requeue_at if facts.workload else None
    later = f" It is tried again on {clock.written(at)}." if at else ""
    return Answer(
        code="check_retry",
        outlook=Outlook.WAIT,
        what=f"The check {check.name} asks to try again later.{later}",
        do="Wait: its GPUs are given back, and it is queued again.",
        since=check.since,
        at=at,
        detail=check.message,
    )


def _pending(check: Check, facts: Facts, clock: Clock) -> Answer:
    return Answer(
        code="awaits_check",
        outlook=Outlook.ESCALATE,
        what=f"Its GPUs are set aside, and it waits for the check {check.name}.",
        do="Remind them if it is urgent: GPUs stand idle for it meanwhile.",
        since=check.since,
        detail=check.message,
    )


ANSWERS = {"Rejected": _rejected, "Retry": _retry, "Pending": _pending}

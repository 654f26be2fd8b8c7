"""Where in line, and when: the two answers that every explanation has, also when nobody can know. Pure."""

from ui.amounts import span
from workloads.estimating import MIN_SAMPLES, Estimate
from workloads.explanations import Answer, Outlook
from workloads.observed import Facts
from workloads.reasons.clock import Clock


def describe(answer: Answer, facts: Facts) -> str:
    """Where in line it is, in words."""
    if _is_past(answer, facts):
        return "It is past the line: its quota is reserved."
    if not answer.in_line:
        return "It is in no line."
    if facts.line is None:
        return "Its place in the line is not known."
    of = f" of {facts.line.length}" if facts.line.length else ""
    text = f"It is number {facts.line.position + 1}{of} in the line."
    if answer.stands_still:
        return f"{text} Nobody in it starts now."
    if facts.queue is not None and not facts.queue.is_strict and facts.line.position:
        return f"{text} The line goes by priority and age; a smaller job may start earlier."
    return text


def _is_past(answer: Answer, facts: Facts) -> bool:
    workload = facts.workload
    if workload is None or answer.outlook == Outlook.NEVER:
        return False
    is_leaving = not workload.is_active or workload.holds("Evicted")
    return bool(workload.holds("QuotaReserved")) and not is_leaving


def position(answer: Answer, facts: Facts) -> int | None:
    """Its place from 0, where it is in a line and the place is known."""
    waits = facts.workload is not None and not facts.workload.holds("QuotaReserved")
    return (
        facts.line.position
        if answer.in_line and waits and facts.line is not None
        else None
    )


def is_by_history(answer: Answer, facts: Facts) -> bool:
    """Whether how long others waited says when it starts: it waits its turn in a queue whose history is known."""
    waits_its_turn = (
        answer.outlook == Outlook.WAIT and answer.in_line and answer.at is None
    )
    return (
        waits_its_turn
        and not answer.when
        and facts.workload is not None
        and facts.history is not None
    )


def estimated(found: Estimate | None) -> str:
    """How much longer it waits, in words."""
    if found is None:
        return TOO_FEW
    return (
        f"An estimate: {span(found.low)} to {span(found.high)} more, half of such jobs within "
        f"{span(found.median)} ({found.samples} waits, {found.source})."
    )


def when(answer: Answer, clock: Clock) -> str:
    """When a job starts whose history says nothing, in words."""
    if answer.when:
        return answer.when
    if answer.at is not None:
        return f"The next try is at {clock.written(answer.at)}."
    return (
        NO_HISTORY
        if answer.outlook == Outlook.WAIT and answer.in_line
        else UNKNOWN[answer.outlook]
    )


NO_HISTORY = (
    "Nobody can say yet: how long jobs waited in this queue before is not known."
)
TOO_FEW = f"Nobody can say yet: fewer than {MIN_SAMPLES} jobs of this size have waited here as long as this one."
UNKNOWN = {
    Outlook.WAIT: "Soon, if nothing else comes in between.",
    Outlook.CHANGE: "Not before you change something.",
    Outlook.ESCALATE: "Nobody can say: it depends on what others do.",
    Outlook.NEVER: "Never: it does not start as it is.",
}

"""Where in line, and when: the two answers that every explanation has, also when nobody can know. Pure."""

from datetime import datetime

from ui.amounts import moment, span
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
    is_known = facts.workload is not None and facts.history is not None
    return is_known and waits_its_turn(answer)


def waits_its_turn(answer: Answer) -> bool:
    """Whether it starts once what is ahead of it makes room, and nothing else says when."""
    in_line = answer.outlook == Outlook.WAIT and answer.in_line
    return in_line and answer.at is None and not answer.when


def latest(at: datetime, now: datetime) -> str:
    """By when it starts, where all that is ahead of it has a time limit."""
    return (
        f"It starts by about {moment(at, now)} unless other work goes first: all that is ahead of it has ended by "
        "then, or has reached its time limit."
    )


def estimated(found: Estimate | None, latest_at: datetime | None, now: datetime) -> str:
    """How much longer it waits, in words: from how long others waited, and from the time limits of what is ahead."""
    known = [latest(latest_at, now)] if latest_at is not None else []
    if found is None:
        return known[0] if known else TOO_FEW
    estimate = (
        f"An estimate: {span(found.low)} to {span(found.high)} more, half of such jobs within "
        f"{span(found.median)} ({found.samples} waits, {found.source})."
    )
    return " ".join([estimate, *known])


def when(answer: Answer, clock: Clock, latest_at: datetime | None) -> str:
    """When a job starts whose history says nothing, in words."""
    if latest_at is not None:
        return latest(latest_at, clock.now)
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

"""A cluster that is maintained: nothing new starts until that ends, and what runs may be stopped for it. Pure."""

from dataclasses import replace
from datetime import datetime

from fleet.maintenance import SETTLES, not_before_words, save_before_words
from workloads.explanations import Answer, Outlook
from workloads.observed import Facts, Workload
from workloads.reasons.clock import Clock

KEEPS_PLACE = "Wait: it keeps its place in the line and goes on by itself."


def ends_at(facts: Facts, clock: Clock) -> datetime | None:
    """When the maintenance that is on ends; None while none is."""
    found = facts.cluster.maintenance
    if found is None or not clock.has_come(found.starts) or clock.has_come(found.ends):
        return None
    return found.ends


def held(facts: Facts, workload: Workload, clock: Clock) -> Answer | None:
    """Why nothing starts in a queue that is held: a maintenance is on, or is over and the queue is not open yet."""
    found, title = facts.cluster.maintenance, facts.cluster.title
    if found is None or not clock.has_come(found.starts):
        return None
    answer = Answer(
        code="maintenance",
        outlook=Outlook.WAIT,
        what=f"The maintenance of {title} has ended, and its queues are being opened again.",
        do=KEEPS_PLACE,
        since=found.ends,
        in_line=True,
        stands_still=True,
    )
    if (ends := ends_at(facts, clock)) is not None:
        until = clock.written(ends)
        return replace(
            answer,
            what=not_before_words(title, until),
            when=f"Not before {until}.",
            since=max(found.starts, workload.created or found.starts),
        )
    is_over = clock.has_come(found.ends + SETTLES) and not facts.is_queue_behind
    return None if is_over else answer


def cause(facts: Facts, at: datetime | None) -> str:
    """Why a queue stopped what runs at this moment, in a clause; empty where no maintenance did."""
    found = facts.cluster.maintenance
    if found is None or at is None or not found.explains_stop(at):
        return ""
    return f"the maintenance of {facts.cluster.title} began"


def warned(answer: Answer, facts: Facts, clock: Clock) -> Answer:
    """The answer of what runs, with what to do where a maintenance is planned before its time limit ends it."""
    planned = facts.cluster.maintenance
    if planned is None or clock.has_come(planned.starts):
        return answer
    own = facts.workload.key if facts.workload is not None else None
    limits = [one.ends_at for one in facts.running if one.key == own and one.ends_at]
    if limits and max(limits) <= planned.starts:
        return answer
    at = clock.written(planned.starts)
    return replace(
        answer, do=save_before_words(facts.cluster.title, at, planned.drains)
    )

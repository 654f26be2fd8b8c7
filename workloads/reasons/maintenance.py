"""A cluster that is maintained: nothing new starts until it is over, and what runs may be stopped for it. Pure."""

from dataclasses import replace
from datetime import datetime

from fleet.maintenance import SETTLES
from workloads.explanations import Answer, Outlook
from workloads.observed import Facts, Workload
from workloads.reasons.clock import Clock

KEEPS_PLACE = "Wait: it keeps its place in the line and goes on by itself."


def holds_the_line(facts: Facts, workload: Workload, clock: Clock) -> Answer | None:
    """Nothing starts before the maintenance ends, and until the queue is open again after it."""
    found = facts.cluster.maintenance
    if found is None or not clock.has_come(found.starts):
        return None
    title, ends = facts.cluster.title, clock.written(found.ends)
    if not clock.has_come(found.ends):
        return Answer(
            code="maintenance",
            outlook=Outlook.WAIT,
            what=f"{title} is maintained until {ends}, and nothing new starts before.",
            do=KEEPS_PLACE,
            when=f"Not before {ends}.",
            since=max(found.starts, workload.created or found.starts),
            in_line=True,
            stands_still=True,
        )
    if clock.has_come(found.ends + SETTLES):
        return None
    return Answer(
        code="maintenance",
        outlook=Outlook.WAIT,
        what=f"The maintenance of {title} has ended, and its queues are being opened again.",
        do=KEEPS_PLACE,
        since=found.ends,
        in_line=True,
        stands_still=True,
    )


def stopped_for_it(facts: Facts, at: datetime | None) -> str:
    """Why a queue stopped what runs at this moment, in a clause; empty where no maintenance did."""
    found = facts.cluster.maintenance
    if found is None or at is None or not found.stopped_what_ended(at):
        return ""
    return f"the maintenance of {facts.cluster.title} began"


def before_it(found: Answer, facts: Facts, clock: Clock) -> Answer:
    """Of what runs where a maintenance is about to stop it, that it does."""
    planned = facts.cluster.maintenance
    if planned is None or not planned.drains or clock.has_come(planned.starts):
        return found
    at = clock.written(planned.starts)
    return replace(
        found,
        do=f"Save what you keep of it before {at}: the maintenance of {facts.cluster.title} stops what runs then.",
    )

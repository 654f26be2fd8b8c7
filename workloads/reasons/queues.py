"""Queues that let nobody in: missing, stopped, broken, or going strictly in order behind one that never fits. Pure."""

import re
from dataclasses import replace
from datetime import datetime

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Ahead, Condition, Facts, Queue, Workload
from workloads.reasons import maintenance
from workloads.reasons.clock import Clock
from workloads.reasons.words import display_name

MISSING = re.compile(r"(LocalQueue|ClusterQueue) (\S+) doesn't exist")
INACTIVE = re.compile(r"(LocalQueue|ClusterQueue) (\S+) is inactive")
HELD = re.compile(r"(LocalQueue|ClusterQueue)( \S+)? is (inactive|stopped)")
HOLD_POLICIES = ("Hold", "HoldAndDrain")
# By the words in a ClusterQueue's own condition, which lists all of its faults: the first that applies.
FAULTS = (
    ("is stopped", "somebody has stopped it"),
    ("terminating", "it is being deleted"),
    (
        "references missing ResourceFlavor",
        "it names a kind of GPU that the cluster does not know",
    ),
    ("references missing AdmissionCheck", "it names a check that does not exist"),
    ("references inactive AdmissionCheck", "the controller of its check does not run"),
    ("no Topology", "it names a topology that does not exist"),
)
MEND = (
    "A platform lead looks after the queue; it goes on by itself when the queue does."
)


def closed(facts: Facts, clock: Clock) -> Answer | None:
    """The queue lets nobody in, as its own state says: what the Workload says about it may be older."""
    workload = facts.workload
    if workload is None or workload.holds("QuotaReserved"):
        return None
    return (
        _namespace_leaves(facts, workload, clock)
        or _maintained(facts, workload, clock)
        or _team_queue_stopped(facts, workload)
        or _queue_closed(facts, workload)
    )


def misconfigured(
    facts: Facts, condition: Condition, workload: Workload, clock: Clock
) -> Answer | None:
    """What the Workload says about a queue that is not there, or inactive for a reason nobody read."""
    if "Queue" not in condition.message:
        return None
    # The copy of the queue is ahead of what the Workload says, or behind it.
    if HELD.search(condition.message) and (
        answer := maintenance.held(facts, workload, clock)
    ):
        return answer
    if found := MISSING.search(condition.message):
        return _missing(found[1], found[2], condition, facts)
    if found := INACTIVE.search(condition.message):
        whose = "The team's queue" if found[1] == "LocalQueue" else "The queue"
        what = f"{whose} {found[2]} lets no job in."
        return replace(_standing_still("queue_inactive", what, condition), in_line=True)
    if "doesn't match ClusterQueue selector" in condition.message:
        return _standing_still(
            "namespace_not_selected",
            "The queue does not take jobs of this namespace.",
            condition,
        )
    if (
        "ClusterQueue is stopped" in condition.message
        or "LocalQueue is stopped" in condition.message
    ):
        return Answer(
            code="queue_stopped",
            outlook=Outlook.ESCALATE,
            what="It was stopped because somebody stopped its queue.",
            do=MEND,
            in_line=True,
            stands_still=True,
            detail=condition.message,
        )
    return None


def behind(facts: Facts, workload: Workload) -> Answer | None:
    """A queue that goes strictly in order says nothing to those behind its head: only their place shows it."""
    line, queue = facts.line, facts.queue
    if queue is None or not queue.is_strict or line is None or line.position == 0:
        return None
    never = next((one for one in line.ahead if one.fits is False), None)
    if never is not None:
        return _blocked(never, facts)
    first = (
        f" The first is {display_name(line.ahead[0].key, facts)}." if line.ahead else ""
    )
    return Answer(
        code="strictly_in_order",
        outlook=Outlook.WAIT,
        what=f"This queue goes strictly in order, and {_jobs(line.position)} before it.{first}",
        do="Wait: nobody passes those ahead, however small a job is.",
        in_line=True,
    )


def _blocked(never: Ahead, facts: Facts) -> Answer:
    name = display_name(never.key, facts)
    what = f"This queue goes strictly in order, and ahead of it is {name}, which can never start."
    if facts.viewer.may_see(never.key):
        target: dict[str, str | int] = {
            "namespace": never.key.namespace,
            "name": never.key.name,
        }
        return Answer(
            code="blocked_by_own",
            outlook=Outlook.CHANGE,
            what=what,
            do=f"Stop {name}, or make it smaller: nothing behind it starts before.",
            in_line=True,
            stands_still=True,
            step=Step(
                Action.STOP_JOB, f"Stop {name}", {**target, "kind": never.key.kind}
            ),
        )
    return Answer(
        code="blocked_by_other",
        outlook=Outlook.ESCALATE,
        what=what,
        do="A platform lead stops that job or lets the queue pass it.",
        in_line=True,
        stands_still=True,
    )


def _namespace_leaves(facts: Facts, workload: Workload, clock: Clock) -> Answer | None:
    """The portal has stopped the queue because the team leaves: nothing starts there again by itself."""
    queue, at = facts.queue, facts.leaves_at
    if at is None or queue is None or queue.stop_policy not in HOLD_POLICIES:
        return None
    return Answer(
        code="namespace_leaves",
        outlook=Outlook.CHANGE,
        what=f"Your team's namespace leaves {facts.cluster.title} on {clock.written(at)}, "
        "and nothing new starts in it.",
        do="Run it in another namespace of your team. Here it starts only if a platform lead restores this one.",
        since=_later(queue.active.since if queue.active else None, workload.created),
        in_line=True,
        stands_still=True,
        detail=queue.active.message if queue.active else "",
    )


def _maintained(facts: Facts, workload: Workload, clock: Clock) -> Answer | None:
    queue = facts.queue
    if queue is None or queue.stop_policy not in HOLD_POLICIES:
        return None
    return maintenance.held(facts, workload, clock)


def _team_queue_stopped(facts: Facts, workload: Workload) -> Answer | None:
    own = facts.team_queue
    if own is None:
        return None
    if own.stop_policy not in HOLD_POLICIES and (
        own.active is None or own.active.reason != "Stopped"
    ):
        return None
    since = own.active.since if own.active else None
    return Answer(
        code="queue_stopped",
        outlook=Outlook.ESCALATE,
        what=f"Somebody has stopped the team's queue {own.name}.",
        do=MEND,
        since=_later(since, workload.created),
        in_line=True,
        stands_still=True,
        detail=own.active.message if own.active else "",
    )


def _queue_closed(facts: Facts, workload: Workload) -> Answer | None:
    queue = facts.queue
    if queue is None or not _is_closed(queue):
        return None
    message = queue.active.message if queue.active else ""
    stopped = queue.stop_policy in HOLD_POLICIES
    fault = next(
        (words for mark, words in FAULTS if mark in message),
        FAULTS[0][1] if stopped else "",
    )
    return Answer(
        code="queue_stopped" if fault == FAULTS[0][1] else "queue_broken",
        outlook=Outlook.ESCALATE,
        what=f"The queue lets no job in: {fault}."
        if fault
        else "The queue lets no job in.",
        do=MEND,
        since=_later(queue.active.since if queue.active else None, workload.created),
        in_line=True,
        stands_still=True,
        detail=message,
    )


def _is_closed(queue: Queue) -> bool:
    return queue.stop_policy in HOLD_POLICIES or (
        queue.active is not None and not queue.active.is_true
    )


def _missing(kind: str, name: str, condition: Condition, facts: Facts) -> Answer:
    if kind == "ClusterQueue":
        return _standing_still(
            "queue_missing",
            f"The queue {name}, where its quota lies, does not exist.",
            condition,
        )
    own = facts.team_queue.name if facts.team_queue else "default"
    if name == own:
        return _standing_still(
            "queue_missing", f"The team's queue {name} is gone.", condition
        )
    return Answer(
        code="unknown_queue",
        outlook=Outlook.CHANGE,
        what=f"It names the queue {name}, and this namespace has none of that name.",
        do=f"Name the queue {own} instead, and submit it again.",
        since=condition.since,
        step=Step(Action.CHANGE_RUN, f"Use the queue {own}", {"queue": own}),
        detail=condition.message,
    )


def _standing_still(code: str, what: str, condition: Condition) -> Answer:
    return Answer(
        code=code,
        outlook=Outlook.ESCALATE,
        what=what,
        do=MEND,
        since=condition.since,
        stands_still=True,
        detail=condition.message,
    )


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    """From when both hold."""
    return max((at for at in (first, second) if at is not None), default=None)


def _jobs(count: int) -> str:
    return "1 job is" if count == 1 else f"{count} jobs are"

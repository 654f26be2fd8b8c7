"""Jobs that were stopped: by a person, by Kueue for ever, or for now with their next turn. Pure."""

import re
from dataclasses import replace
from datetime import datetime

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Condition, Facts, Stop, Workload
from workloads.reasons import maintenance
from workloads.reasons.clock import Clock
from workloads.reasons.words import asked_already, display_name, request_more

JOB_UID = re.compile(r"JobUID: ([0-9a-fA-F-]+)")
REJECTED = re.compile(r'AdmissionCheck in Rejected state: "([^"]*)"(?: \((.*)\))?')
AGAIN = Step(Action.RUN_AGAIN, "Run it again")
# Why one job makes room for another, by the reason of its Preempted condition.
MADE_ROOM = {
    "InClusterQueue": "which ranks higher in your queue",
    "InCohortReclamation": "whose team took back GPUs that are guaranteed to it",
    "InCohortFairSharing": "whose team uses less of its share",
    "InCohortReclaimWhileBorrowing": "which ranks higher than work on borrowed GPUs",
}
# Why Kueue stops one for now, by the reason of its Evicted condition.
FOR_NOW = {
    "PodsReadyTimeout": "its pods were not ready in time",
    "AdmissionCheck": "a check asked to try again later",
    "ClusterQueueStopped": "somebody stopped its queue",
    "LocalQueueStopped": "somebody stopped the team's queue",
    "NodeFailures": "a node that it ran on failed",
    "NodeFailure": "a node that it ran on failed",
    "FlavorMigration": "it moves to a better kind of GPU",
}

# Of a queue that was stopped, its own state tells, and of what was made inactive that it is.
TOLD_WHILE_IT_WAITS = {"Preempted", *FOR_NOW} - {
    "ClusterQueueStopped",
    "LocalQueueStopped",
}


def inactive(facts: Facts, clock: Clock) -> Answer | None:
    """Made inactive: a person can take that back, and what Kueue decided stays even when it is made active again."""
    workload = facts.workload
    if workload is None:
        return None
    reason, condition = _deactivation(workload)
    if reason.startswith("DeactivatedDueTo") and condition is not None:
        return _for_ever(workload, condition)
    if workload.is_active:
        return None
    since = condition.since if condition else None
    if facts.stop is not None:
        return _by_portal(facts.stop, facts, since)
    return Answer(
        code="stopped_by_person",
        outlook=Outlook.CHANGE,
        what="Somebody stopped it; its job is kept and its GPUs are free for others.",
        do="Resume it when it is to run: it goes back into the line.",
        since=since,
        step=Step(Action.RESUME, "Resume it"),
        detail=condition.message if condition else "",
    )


def being_stopped(facts: Facts, clock: Clock) -> Answer | None:
    """Evicted while its pods still end: it has its quota, and gives it back."""
    workload = facts.workload
    condition = workload.holds("Evicted") if workload else None
    if workload is None or condition is None or not workload.holds("QuotaReserved"):
        return None
    why = _why(condition, workload, facts)
    return Answer(
        code="being_stopped",
        outlook=Outlook.WAIT,
        what=f"The queue is stopping it: {why}.",
        do="Wait: it goes back into the line when its pods have ended, and starts anew from its last checkpoint.",
        since=condition.since,
        detail=condition.message,
    )


def backing_off(facts: Facts, clock: Clock) -> Answer | None:
    """Stopped for now, with a time before which Kueue does not try again."""
    workload = facts.workload
    if (
        workload is None
        or workload.requeue_at is None
        or clock.has_come(workload.requeue_at)
    ):
        return None
    if workload.holds("QuotaReserved") and not workload.holds("Evicted"):
        return None
    condition = workload.holds("Evicted")
    why = (
        _why(condition, workload, facts) if condition else "its last start did not work"
    )
    tries = f" This was try {workload.requeues}." if workload.requeues else ""
    return Answer(
        code="backing_off",
        outlook=Outlook.WAIT,
        what=f"The queue stopped it because {why}.{tries}",
        do="Wait for the next try; look at its logs if this repeats, for after some tries the queue gives up.",
        since=condition.since if condition else None,
        at=workload.requeue_at,
        step=Step(Action.SHOW_LOGS, "Show the logs of the last try"),
        detail=condition.message if condition else "",
    )


def evicted(facts: Facts, condition: Condition, workload: Workload) -> Answer | None:
    """Back in the line after a stop, or on its way there, and not looked at since."""
    eviction = workload.conditions.get("Evicted")
    if eviction is None or eviction.message != condition.message:
        return None
    is_back = workload.holds("Requeued") is not None
    if eviction.reason == "Deactivated":
        return _resumed(condition)
    if eviction.reason.endswith("QueueStopped") and not is_back:
        return None
    why = _why(eviction, workload, facts)
    back = (
        "it is back in the line" if is_back else "it is about to go back into the line"
    )
    return Answer(
        code="back_in_line",
        outlook=Outlook.WAIT,
        what=f"The queue stopped it because {why}; {back}.",
        do="Wait: it starts anew from its last checkpoint when it is its turn.",
        since=eviction.since,
        in_line=True,
        detail=condition.message,
    )


def after_eviction(
    answer: Answer | None, facts: Facts, workload: Workload
) -> Answer | None:
    """What keeps a job in the line, led by why the queue had stopped it, as long as it has not started again."""
    eviction = workload.holds("Evicted")
    if answer is None or eviction is None or eviction.reason not in TOLD_WHILE_IT_WAITS:
        return answer
    return replace(
        answer,
        what=f"The queue stopped it because {_why(eviction, workload, facts)}. {answer.what}",
    )


def why_stopped(workload: Workload, facts: Facts) -> str:
    """Why it ran no longer when it was stopped last, also once it was let in again; empty where it never was."""
    eviction = workload.conditions.get("Evicted")
    if eviction is None:
        return ""
    if not eviction.is_true:
        # Kueue keeps the message then, and no reason.
        made_room = JOB_UID.search(eviction.message) is not None
        because = (
            f" because {_made_room(eviction, workload, facts)}" if made_room else ""
        )
        return f"The queue stopped it{because}, and let it in again."
    if eviction.reason == "Deactivated":
        return "Somebody stopped it."
    if eviction.reason.startswith("Deactivated"):
        return _for_ever(workload, eviction).what
    return f"The queue stopped it because {_why(eviction, workload, facts)}."


def sent_back_at(workload: Workload) -> datetime | None:
    """When the queue stopped it for now; None where it has started since, or was stopped for good."""
    eviction = workload.holds("Evicted")
    return (
        eviction.since if eviction is not None and not is_for_good(workload) else None
    )


def is_for_good(workload: Workload) -> bool:
    """Whether it was stopped so that it is in no line: by a person, or by Kueue for ever."""
    eviction = workload.holds("Evicted")
    return eviction is not None and eviction.reason.startswith("Deactivated")


def preemptor(workload: Workload) -> str:
    """The uid of the job that this one made room for; empty where it made room for none since it ran last."""
    eviction = workload.holds("Evicted")
    found = JOB_UID.search(eviction.message) if eviction is not None else None
    return found[1] if found else ""


def _why(condition: Condition, workload: Workload, facts: Facts) -> str:
    if condition.reason == "ClusterQueueStopped" and (
        why := maintenance.cause(facts, condition.since)
    ):
        return why
    if condition.reason != "Preempted":
        return FOR_NOW.get(condition.reason, "it lost its quota")
    return _made_room(condition, workload, facts)


def _made_room(condition: Condition, workload: Workload, facts: Facts) -> str:
    preempted = workload.conditions.get("Preempted")
    uid = JOB_UID.search(condition.message)
    key = facts.jobs.get(uid[1]) if uid else None
    who = display_name(key, facts) if key is not None else "another job"
    rule = MADE_ROOM.get(preempted.reason if preempted else "", "")
    return f"it made room for {who}" + (f", {rule}" if rule else "")


def _deactivation(workload: Workload) -> tuple[str, Condition | None]:
    """Why it is or was inactive; what Kueue decided counts until it has put the job back into its line."""
    requeued = workload.conditions.get("Requeued")
    condition = workload.holds("Evicted")
    if requeued is not None and requeued.is_true and workload.is_active:
        return "", None
    if condition is not None and condition.reason.startswith("Deactivated"):
        return condition.reason, condition
    target = workload.holds("DeactivationTarget")
    if target is not None:
        return f"DeactivatedDueTo{target.reason}", target
    return "", condition


def _for_ever(workload: Workload, condition: Condition) -> Answer:
    reason = condition.reason.removeprefix("DeactivatedDueTo")
    answers = {
        "AdmissionCheck": (
            "check_rejected",
            _rejection(condition.message),
            "Change what was refused, and run it again.",
        ),
        "MaximumExecutionTimeExceeded": (
            "time_limit",
            "It ran as long as its time limit lets it, and was stopped then.",
            "Run it again from its last checkpoint, with a longer limit if it needs one.",
        ),
        "RequeuingLimitExceeded": (
            "gave_up",
            f"Its pods were not ready in time, again and again, so the queue gave up{_tries(workload)}.",
            "Look at the logs and events of its pods, mend the cause, and run it again.",
        ),
    }
    code, what, do = answers.get(
        reason,
        (
            "deactivated",
            "The queue stopped it for good.",
            "Look at its events, and run it again when the cause is gone.",
        ),
    )
    return Answer(
        code=code,
        outlook=Outlook.NEVER,
        what=f"{what} It does not come back, not even when somebody resumes it.",
        do=do,
        since=condition.since,
        step=AGAIN,
        detail=condition.message,
    )


def _tries(workload: Workload) -> str:
    return f" after {workload.requeues} tries" if workload.requeues > 1 else ""


def _rejection(message: str) -> str:
    found = REJECTED.search(message)
    if found is None:
        return "A check rejected it."
    why = f': "{found[2]}"' if found[2] else ""
    return f"The check {found[1]} rejected it{why}."


def _resumed(condition: Condition) -> Answer:
    return Answer(
        code="resumed",
        outlook=Outlook.WAIT,
        what="Somebody resumed it, and it is being put back into the line.",
        do="Wait: it takes seconds.",
        in_line=True,
        detail=condition.message,
    )


def _by_portal(stop: Stop, facts: Facts, since: datetime | None) -> Answer:
    title = facts.title(stop.flavor)
    held = facts.queue.own(stop.flavor) if facts.queue is not None else 0
    what = f"your team no longer holds the {stop.gpus} × {title} that it used."
    do = "Ask for them again, and run it again then."
    step = request_more(stop.gpus, stop.flavor, facts)
    if (asked := facts.requests.get(stop.flavor)) is not None:
        lacking = stop.gpus - held - asked.in_all
        more = f" Ask for {lacking} more than that." if lacking > 0 else ""
        do = f"{asked_already(asked)}{more} Run it again when they are granted."
    if held >= stop.gpus:
        # Asked for again since, or others of its team have what is left.
        what = f"your team held less than what it used. Your team holds {held} × {title} now."
        do, step = "Run it again: it does not go on by itself.", AGAIN
    return Answer(
        code="stopped_by_portal",
        outlook=Outlook.CHANGE,
        what=f"The portal stopped it: {what}",
        do=f"{do} Its job is kept until you delete it.",
        since=since or stop.at,
        step=step,
    )

"""Jobs in the line: gated, waiting for quota or for others, or not looked at yet. Pure."""

from collections.abc import Mapping

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Condition, Facts, Queue, Workload, by_profile
from workloads.reasons import queues, starting, stops, volcano
from workloads.reasons.clock import Clock
from workloads.reasons.fit import CHANGE_RUN
from workloads.reasons.messages import HOPELESS, decisive
from workloads.reasons.quota import no_quota
from workloads.reasons.words import gpu_words, use_elsewhere

GATE = "Admission is gated by: "
WAIT = "Wait: it goes on by itself."
# What is known by words in the message alone: the code, what it means and what to do.
RACES: Mapping[str, tuple[str, str, str]] = {
    "no longer fits after processing another workload": (
        "overtaken",
        "Another job took the GPUs in the same moment.",
        "Wait: it is looked at again when something ends.",
    ),
    "will fit after these preemptions complete": (
        "making_room",
        "The queue is stopping other jobs, and it fits when they have ended.",
        "Wait: it takes about a minute.",
    ),
    "overlapping preemption targets": (
        "overtaken",
        "Other jobs are being stopped to make room for somebody else first.",
        "Wait: it is looked at again when they have ended.",
    ),
    "in PodsReady condition": (
        "others_start_first",
        "The queue lets in one job after the other, and waits until the pods of the one before are ready.",
        "Wait: it is let in when they are, or when that one is given up.",
    ),
    "pending evaluation": (
        "just_queued",
        "It is in the line, and it is about to be looked at.",
        WAIT,
    ),
    "equivalent workload recently failed": (
        "behind_twin",
        "A job that asks for exactly the same was just refused, so this one was not looked at again.",
        "Wait: both are looked at again when something ends.",
    ),
}
# What is known by the reason alone, with the wording that becomes the default in Kueue 0.20.
REASONS: Mapping[str, tuple[str, Outlook, str, str]] = {
    "WaitingForQuota": (
        "quota_full",
        Outlook.WAIT,
        "It waits until enough of its queue's quota is free.",
        "Wait: it starts when jobs ahead of it or running ones end.",
    ),
    "ExceedsMaxQuota": (
        "larger_than_quota",
        Outlook.CHANGE,
        "It asks for more than its queue can ever give.",
        "Ask for more for your team, or run it with less.",
    ),
    "NoMatchingFlavor": (
        "no_flavor_fits",
        Outlook.CHANGE,
        "No kind of GPU in its queue fits what its pods ask for.",
        "Change what its pods ask for.",
    ),
    "WaitingForPreemptedWorkloads": (
        "making_room",
        Outlook.WAIT,
        "The queue is stopping other jobs to make room for it.",
        "Wait: it starts when they have ended.",
    ),
    "TopologyPlacementFailed": (
        "no_room_together",
        Outlook.WAIT,
        "Its pods must run close together, and there is no such room now.",
        "Wait, or let its pods be spread.",
    ),
    "WaitingForPodsReady": (
        "others_start_first",
        Outlook.WAIT,
        *RACES["in PodsReady condition"][1:],
    ),
    "PendingEvaluation": (
        "just_queued",
        Outlook.WAIT,
        *RACES["pending evaluation"][1:],
    ),
    "Suspended": (
        "queue_inactive",
        Outlook.ESCALATE,
        "Its queue lets no job in.",
        queues.MEND,
    ),
    "Inadmissible": (
        "queue_inactive",
        Outlook.ESCALATE,
        "Its queue does not let it in.",
        queues.MEND,
    ),
    "Misconfigured": (
        "queue_broken",
        Outlook.ESCALATE,
        "Its queue is not set up for it.",
        queues.MEND,
    ),
    "OnHold": (
        "scaled_to_zero",
        Outlook.CHANGE,
        "It is scaled to zero.",
        "Scale it up when it is to run.",
    ),
}


def is_in_line(workload: Workload, queue: Queue | None) -> bool:
    """Whether a Workload without quota starts once its turn comes: of any other it is said that it is in no line.

    A ClusterQueue of a team holds all of its flavors and goes by BestEffortFIFO (`provisioning.desired.queues`), by
    which Kueue lays aside what it cannot admit and nobody waits for it. Where somebody has made a queue StrictFIFO, all
    stand behind its head, also where that never starts: there everything counts.
    """
    if queue is not None and queue.is_strict:
        return True
    if queue is not None and not queue.can_give(workload):
        return False
    condition = workload.lacks("QuotaReserved")
    if condition is None:
        return True
    if _gates(condition):
        return False
    cause = decisive(condition.message, queue.groups if queue is not None else ())
    if cause is not None:
        return cause.kind not in HOPELESS
    known = REASONS.get(condition.reason)
    return known is None or known[1] != Outlook.CHANGE


def is_gated(workload: Workload) -> bool:
    """Whether it comes into the line only once somebody approves it."""
    condition = workload.lacks("QuotaReserved")
    return condition is not None and _gates(condition)


def gated(facts: Facts, clock: Clock) -> Answer | None:
    """Held before the queue until somebody approves it."""
    condition = _not_reserved(facts.workload)
    if condition is None or not _gates(condition):
        return None
    return Answer(
        code="awaits_approval",
        outlook=Outlook.ESCALATE,
        what="It waits for an approval.",
        do="Remind them if it is urgent: it goes into the line once they approve.",
        since=condition.since,
        detail=condition.message,
    )


def _gates(condition: Condition) -> bool:
    return condition.reason == "AdmissionGated" or condition.message.startswith(GATE)


def in_line(facts: Facts, clock: Clock) -> Answer | None:
    """Whatever else keeps a job without quota in the line, from what Kueue says or leaves unsaid."""
    workload = facts.workload
    if workload is None or workload.holds("QuotaReserved"):
        return None
    hopeless = _too_large_for_a_node(facts, workload)
    if hopeless is not None:
        return hopeless
    condition = _not_reserved(workload)
    if condition is None:
        return queues.behind(facts, workload) or _unsaid(facts)
    return _by_words(facts, workload, condition, clock)


def _by_words(
    facts: Facts, workload: Workload, condition: Condition, clock: Clock
) -> Answer | None:
    return (
        volcano.waits(
            facts,
            workload,
            condition,
            lambda pods: starting.why_stuck(pods, facts, clock),
        )
        or stops.evicted(facts, condition, workload)
        or stops.after_eviction(
            _of_queue(facts, workload, condition, clock), facts, workload
        )
    )


def _of_queue(
    facts: Facts, workload: Workload, condition: Condition, clock: Clock
) -> Answer | None:
    return (
        queues.misconfigured(facts, condition, workload, clock)
        or no_quota(facts, condition.message, clock)
        or _race(condition)
        or _resources(condition)
        or _by_reason(condition)
    )


def _not_reserved(workload: Workload | None) -> Condition | None:
    return workload.lacks("QuotaReserved") if workload is not None else None


def _race(condition: Condition) -> Answer | None:
    found = next(
        (answer for words, answer in RACES.items() if words in condition.message), None
    )
    if found is None:
        return None
    code, what, do = found
    return Answer(
        code=code,
        outlook=Outlook.WAIT,
        what=what,
        do=do,
        in_line=True,
        detail=condition.message,
    )


def _resources(condition: Condition) -> Answer | None:
    if (
        "resources validation failed" not in condition.message
        and "LimitRange constraints" not in condition.message
    ):
        return None
    return Answer(
        code="resources_refused",
        outlook=Outlook.CHANGE,
        what="What its pods ask for contradicts itself or the limits of the namespace.",
        do="Write requests equal to limits, within the namespace's limits, and submit it again.",
        step=Step(Action.CHANGE_RUN, CHANGE_RUN, {"field": "resources"}),
        detail=condition.message,
    )


def _by_reason(condition: Condition) -> Answer | None:
    if condition.reason not in REASONS:
        return None
    code, outlook, what, do = REASONS[condition.reason]
    return Answer(
        code=code,
        outlook=outlook,
        what=what,
        do=do,
        in_line=outlook in (Outlook.WAIT, Outlook.ESCALATE),
        stands_still=outlook == Outlook.ESCALATE,
        detail=condition.message,
    )


def _unsaid(facts: Facts) -> Answer:
    """Kueue says nothing of a job that it has not looked at, or whose twin it has just refused."""
    return Answer(
        code="not_evaluated",
        outlook=Outlook.WAIT,
        what="It is in the line, and the queue has said nothing about it yet: jobs ahead of it come first, "
        "or one that asks for the same was just refused.",
        do=WAIT,
        in_line=True,
        step=use_elsewhere(facts),
    )


def _too_large_for_a_node(facts: Facts, workload: Workload) -> Answer | None:
    """A pod that is larger than any node of the cluster never runs, whatever the quota."""
    profile, pod = _beyond_a_node(facts, workload)
    if not pod or not _is_every_flavor_known(facts):
        return None
    largest = facts.nodes.largest[profile]
    count, each = -(-pod // largest), ((profile, largest),) if profile else ()
    words = gpu_words(pod, ((profile, pod),) if profile else ())
    return Answer(
        code="larger_than_node",
        outlook=Outlook.CHANGE,
        what=f"One of its pods asks for {words}; the largest node of {facts.cluster.title} has {largest}.",
        do=f"Spread it over {count} nodes with {gpu_words(largest, each)} each, or fewer.",
        step=use_elsewhere(facts)
        or Step(
            Action.CHANGE_RUN,
            f"Run it on {count} nodes",
            {"nodes": count, "gpus_per_node": largest},
        ),
    )


def _beyond_a_node(facts: Facts, workload: Workload) -> tuple[str, int]:
    """Of what a pod asks for more than the largest node has: whole GPUs ("") or a MIG profile, and how many; else 0."""
    largest = facts.nodes.largest
    for one in workload.pod_sets:
        for profile, count in by_profile(one.gpus, one.slices).items():
            if count > largest.get(profile, count):
                return profile, count
    return "", 0


def _is_every_flavor_known(facts: Facts) -> bool:
    """Whether a node of each flavor was read: a pool that has none now may have larger ones when it grows."""
    wanted = (
        {one.flavor for one in facts.queue.quotas} if facts.queue else set(facts.titles)
    )
    return wanted <= facts.nodes.flavors

"""Kueue has let it in: its pods are refused, find no node, cannot start, fail, or run. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.failures.of_pods import why_failed
from workloads.observed import Condition, Facts, Pod, Workload
from workloads.reasons import maintenance
from workloads.reasons.clock import Clock
from workloads.reasons.containers import not_running
from workloads.reasons.nodes import unscheduled
from workloads.reasons.sources import never_fetched, unfetched
from workloads.reasons.words import pods

PROMPT = timedelta(minutes=2)
RECOVERING = (
    "One of its pods has failed, and another one is being started in its place."
)
HOPES = (Outlook.NEVER, Outlook.CHANGE, Outlook.ESCALATE, Outlook.WAIT)


def admitted(facts: Facts, clock: Clock) -> Answer | None:
    """What its pods do once it is let in."""
    workload = facts.workload
    condition = workload.holds("Admitted") if workload else None
    if workload is None or condition is None:
        return None
    live = [one for one in facts.pods if not one.is_stopping and not one.is_over]
    stuck = why_stuck(live, facts, clock)
    if stuck is not None:
        return stuck
    ready = workload.conditions.get("PodsReady")
    if ready is not None and ready.is_true and not _is_of_before(ready, condition):
        found = _running(ready)
    elif ready is not None and ready.reason == "WaitForRecovery":
        found = _recovering(ready)
    else:
        found = (
            _none_yet(workload, condition, clock)
            if not live
            else _some(live, workload, condition)
        )
    return _while_it_may(found, facts, clock)


def _is_of_before(ready: Condition, admitted: Condition) -> bool:
    """Whether pods were ready of an earlier time that it was let in: Kueue writes the two in two steps."""
    if ready.since is None or admitted.since is None:
        return False
    return ready.since < admitted.since


def _while_it_may(found: Answer, facts: Facts, clock: Clock) -> Answer:
    """Of what runs where its GPUs are about to go, that it is stopped then."""
    if found.code != "running":
        return found
    if facts.leaves_at is not None:
        at = clock.written(facts.leaves_at)
        do = f"Save what you keep of it: your team's namespace leaves on {at}, and what runs then is stopped."
        return replace(found, do=do)
    over = _over_quota(facts)
    if over is None:
        return maintenance.warned(found, facts, clock)
    count, flavor = over
    more = f"{count} × {facts.title(flavor)} more than your team holds"
    return replace(
        found,
        do=f"Save what you keep of it: the jobs in its queue use {more}, and what is too much is stopped. "
        "The team's page says when.",
    )


def _over_quota(facts: Facts) -> tuple[int, str] | None:
    """How many GPUs of a flavor of this job its queue uses beyond what it has and may borrow."""
    flavors = facts.workload.flavors if facts.workload is not None else ()
    for one in facts.queue.quotas if facts.queue is not None else ():
        if one.flavor in flavors and one.borrowing is not None:
            count = one.reserved - one.nominal - one.borrowing
            if count > 0:
                return count, one.flavor
    return None


def on_its_own(facts: Facts, clock: Clock) -> Answer:
    """What pods do that no queue was asked for."""
    ended = over_on_its_own(facts)
    if ended is not None:
        return ended
    live = _live(facts)
    stuck = why_stuck(live, facts, clock)
    if stuck is not None:
        return stuck
    began = min((one.created for one in live if one.created), default=None)
    if all(one.phase == "Running" for one in live):
        return _running(Condition("Ready", True, since=began))
    return Answer(
        code="starting",
        outlook=Outlook.WAIT,
        what=f"Of its pods, {sum(one.is_ready for one in live)} of {len(live)} are ready.",
        do="Wait: it takes a few minutes when an image is large.",
        since=began,
    )


def over_on_its_own(facts: Facts) -> Answer | None:
    """How pods ended that no queue was asked for; None while one of them goes on."""
    if _live(facts):
        return None
    return (
        never_fetched(facts.pods)
        or why_failed(facts.pods, since=None)
        or _ended(facts.pods)
    )


def _live(facts: Facts) -> list[Pod]:
    return [one for one in facts.pods if not one.is_over]


def _ended(gone: Sequence[Pod]) -> Answer:
    failed = any(one.phase == "Failed" for one in gone)
    return Answer(
        code="failed" if failed else "finished",
        outlook=Outlook.NEVER,
        what="It has failed." if failed else "It has finished.",
        do="Look at its logs, mend the cause, and run it again."
        if failed
        else "There is nothing to do.",
        when="It is over.",
        since=min((one.created for one in gone if one.created), default=None),
        step=Step(Action.SHOW_LOGS, "Show its logs"),
        detail=", ".join(sorted({one.ended_as for one in gone} - {""})),
    )


def why_stuck(live: Sequence[Pod], facts: Facts, clock: Clock) -> Answer | None:
    """Of what keeps pods from running, that which you or others must mend; else what passes by itself."""
    found = [
        answer for one in live if (answer := _of_pod(one, facts, clock)) is not None
    ]
    return min(found, key=lambda one: HOPES.index(one.outlook), default=None)


def _of_pod(pod: Pod, facts: Facts, clock: Clock) -> Answer | None:
    if pod.gates:
        return Answer(
            code="pods_gated",
            outlook=Outlook.WAIT,
            what="Its pods are held until their nodes are chosen.",
            do="Wait: it takes seconds.",
            since=pod.created,
            detail=", ".join(pod.gates),
        )
    return unscheduled(pod, facts, clock) or unfetched(pod) or not_running(pod, clock)


def _running(ready: Condition) -> Answer:
    return Answer(
        code="running",
        outlook=Outlook.WAIT,
        what="It runs.",
        do="There is nothing to do.",
        when="It has started.",
        since=ready.since,
        step=Step(Action.SHOW_LOGS, "Show its logs"),
    )


def _recovering(ready: Condition) -> Answer:
    return Answer(
        code="recovering",
        outlook=Outlook.WAIT,
        what=RECOVERING,
        do="Look at the logs of the failed pod if it happens again.",
        when="It has started before.",
        since=ready.since,
        step=Step(Action.SHOW_LOGS, "Show its logs"),
        detail=ready.message,
    )


def _some(live: Sequence[Pod], workload: Workload, condition: Condition) -> Answer:
    ready = sum(1 for one in live if one.is_ready)
    wanted = max(sum(one.count for one in workload.pod_sets), len(live))
    if ready == wanted:
        # Kueue tells of ready pods only where it was set up to wait for them.
        return _running(condition)
    return Answer(
        code="starting",
        outlook=Outlook.WAIT,
        what=f"It has its GPUs, and {ready} of its {pods(wanted)} are ready.",
        do="Wait: the others are starting.",
        since=condition.since,
    )


def _none_yet(workload: Workload, condition: Condition, clock: Clock) -> Answer:
    if condition.since is None or not clock.has_come(condition.since + PROMPT):
        return Answer(
            code="starting",
            outlook=Outlook.WAIT,
            what="It has its GPUs, and its pods are about to be made.",
            do="Wait: it takes seconds.",
            since=condition.since,
        )
    return Answer(
        code="no_pods",
        outlook=Outlook.ESCALATE,
        what=f"It has its GPUs, and no pod of it is there: nothing on the cluster carries out a {workload.key.kind}.",
        do="Stop it to free the GPUs; a platform lead looks whether the controller for such jobs runs.",
        since=condition.since,
        step=Step(
            Action.STOP_JOB,
            "Stop it",
            {"name": workload.key.name, "kind": workload.key.kind},
        ),
    )

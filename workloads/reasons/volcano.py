"""What Volcano says of a job that waits, in its conditions, its events and its job's phase. Pure.

Its words stand in pkg/scheduler of release 1.15: plugins/capacity and plugins/overcommit tell by events of a PodGroup
why it is not let in, plugins/gang and api/job_info.go by its condition why its pods find no nodes together.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from fleet.names import RESOURCE, fits, profile_of
from provisioning.desired.kueue_form import ABORTED, REASON, VOLCANO_JOB
from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import (
    Condition,
    Event,
    Facts,
    Job,
    Pod,
    Quota,
    Workload,
    by_profile,
)
from workloads.reasons.clock import Clock
from workloads.reasons.words import (
    gpu_words,
    request_more,
    request_waits,
    resource_words,
    use_elsewhere,
)

PROMPT = timedelta(seconds=30)
# Why a group is not let in: its queue is full, or what was let in before it may take all that is free.
QUEUE_FULL, OVERUSED = (
    "queue resource quota insufficient",
    "resource in cluster is overused",
)
NAMED = re.compile(r"(?:insufficient|overused) ([^\s,]+)")
NO_POD = "Error creating pods"
LOGS = Step(Action.SHOW_LOGS, "Show the logs of the last try")
WAIT = "Wait: it goes on by itself."
# What is known by the phase of the job alone: the code, what it means and what to do.
PHASES = {
    "Restarting": (
        "starting_anew",
        "A pod of it failed or lost its node, so all of them are started anew.",
        "Wait: it goes back into its line. Look at its logs if it happens again.",
    ),
    "Terminating": ("ending", "It is being ended: its pods are stopping.", WAIT),
    "Completing": (
        "ending",
        "It has done its work, and its other pods are stopping.",
        WAIT,
    ),
}


def without_group(facts: Facts, clock: Clock) -> Answer | None:
    """A Volcano Job whose pods are of no group: it was stopped, starts anew, ends, or has only just been made."""
    job = facts.job
    if facts.workload is not None or job is None or job.key.kind != VOLCANO_JOB:
        return None
    if job.phase in ABORTED:
        return Answer(
            code="stopped_by_person",
            outlook=Outlook.CHANGE,
            what="Somebody stopped it by a command of Volcano; its job is kept and its GPUs are free for others.",
            do="Who stopped it has it go on by the same way (vcctl job resume), or you stop it and run it again.",
            step=Step(Action.RUN_AGAIN, "Run it again"),
        )
    if job.phase in PHASES:
        code, what, do = PHASES[job.phase]
        return Answer(code=code, outlook=Outlook.WAIT, what=what, do=do, step=LOGS)
    return _just_made(job, clock)


def waits(
    facts: Facts, workload: Workload, condition: Condition, starting: "Starting"
) -> Answer | None:
    """Why a PodGroup has no nodes yet; None for what is not Volcano's. `starting` tells of pods that find none."""
    if not condition.reason.startswith(REASON):
        return None
    phase = condition.reason.removeprefix(REASON)
    refused = next(
        (one for one in facts.events if one.message.startswith(NO_POD)), None
    )
    if refused is not None:
        return _pods_refused(refused)
    if phase == "Completed":
        return Answer(
            code="ending",
            outlook=Outlook.WAIT,
            what="Its pods have ended, and Volcano is about to say how.",
            do="Wait: it takes seconds.",
            detail=condition.message,
        )
    return (
        _let_in(facts, condition, starting)
        if phase == "Inqueue"
        else _in_line(facts, workload, condition)
    )


# What the pods of a job that was let in say: the same as with Kueue.
Starting = Callable[[Sequence[Pod]], Answer | None]


def _just_made(job: Job, clock: Clock) -> Answer:
    if job.created is None or not clock.has_come(job.created + PROMPT):
        return Answer(
            code="just_created",
            outlook=Outlook.WAIT,
            what="It was created just now, and Volcano is about to look at it.",
            do="Wait: it takes seconds.",
        )
    return Answer(
        code="not_queued",
        outlook=Outlook.ESCALATE,
        what="Volcano has not put it into its line.",
        do="A platform lead looks whether Volcano's controllers run.",
    )


def _pods_refused(event: Event) -> Answer:
    return Answer(
        code="pods_refused",
        outlook=Outlook.ESCALATE,
        what="Its turn has come, and the cluster refuses its pods.",
        do="Change what the message names and run it again, or have a platform lead look at it.",
        since=event.at,
        detail=event.message,
    )


def _let_in(facts: Facts, condition: Condition, starting: Starting) -> Answer:
    """Its turn has come, and its pods look for nodes that take all of them."""
    stuck = starting([one for one in facts.pods if not one.node])
    if stuck is not None:
        return replace(stuck, in_line=True)
    return Answer(
        code="let_in",
        outlook=Outlook.WAIT,
        what="Its turn has come, and nodes are sought that take all of its pods.",
        do=WAIT,
        in_line=True,
        detail=condition.message,
    )


def _in_line(facts: Facts, workload: Workload, condition: Condition) -> Answer:
    said = _last(facts.events, QUEUE_FULL, OVERUSED)
    if said is None:
        return Answer(
            code="not_evaluated",
            outlook=Outlook.WAIT,
            what="It is in its line, and Volcano has said nothing about it yet.",
            do=WAIT,
            in_line=True,
            step=use_elsewhere(facts),
            detail=condition.message,
        )
    short = NAMED.findall(said.message)
    if said.message.startswith(QUEUE_FULL):
        return _too_large(facts, workload, said, short) or _queue_full(
            facts, workload, said, short
        )
    return Answer(
        code="cluster_full",
        outlook=Outlook.WAIT,
        what=f"The cluster's free {_things(short)} are promised to jobs that came before it.",
        do="Wait: it is let in when some of those end.",
        in_line=True,
        step=use_elsewhere(facts),
        detail=said.message,
    )


def _too_large(
    facts: Facts, workload: Workload, said: Event, short: Sequence[str]
) -> Answer | None:
    """It asks for more than its queue ever gives."""
    wanted = by_profile(workload.gpus, workload.slices)
    for quota in facts.queue.quotas if facts.queue else ():
        most, asks = _most(quota), wanted.get(profile_of(quota.resource), 0)
        if quota.resource in short and asks > most:
            profile = profile_of(quota.resource)
            slices = ((profile, asks),) if profile else ()
            what = f"It asks for {gpu_words(asks, slices)}; your team has {most} here."
            if (asked := facts.requests.get(quota.flavor)) is not None:
                lacking = asks - most - asked.in_all
                return request_waits(asked, what, lacking=lacking, detail=said.message)
            return Answer(
                code="larger_than_quota",
                outlook=Outlook.CHANGE,
                what=what,
                do=f"Ask for {asks - most} more for your team, or run it with {most or 'none'}.",
                step=request_more(asks - most, quota.flavor, facts),
                detail=said.message,
            )
    return None


def _queue_full(
    facts: Facts, workload: Workload, said: Event, short: Sequence[str]
) -> Answer:
    quota = next(
        (
            one
            for one in (facts.queue.quotas if facts.queue else ())
            if one.resource in short
        ),
        None,
    )
    use = (
        f" Your team uses {quota.reserved} of its {_most(quota)} here."
        if quota is not None
        else ""
    )
    gpus = any(fits(RESOURCE, one) for one in short) or not short
    return Answer(
        code="quota_full",
        outlook=Outlook.WAIT,
        what=f"It waits until enough of its queue's {_things(short)} are free.{use}",
        do="Wait: it starts when jobs ahead of it or running ones of your team end."
        if gpus
        else "Wait until jobs of your team end, or run it with less of these for each GPU.",
        in_line=True,
        step=use_elsewhere(facts),
        detail=said.message,
    )


def _things(short: Sequence[str]) -> str:
    """What is short, in words: GPUs where Volcano names nothing, or names them among others."""
    gpus = [one for one in short if fits(RESOURCE, one)]
    return (
        " and ".join(dict.fromkeys(resource_words(one) for one in gpus or short))
        or "GPUs"
    )


def _most(quota: Quota) -> int:
    return quota.nominal + (quota.borrowing or 0)


def _last(events: Sequence[Event], *beginnings: str) -> Event | None:
    found = [one for one in events if one.message.startswith(beginnings)]
    return max(
        found, key=lambda one: one.at.timestamp() if one.at else 0.0, default=None
    )

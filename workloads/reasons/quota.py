"""What the queue cannot give now, or at all: it is full, or the job is larger than its quota. Pure."""

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Allocation, Facts, Quota
from workloads.reading.values import is_gpu
from workloads.reasons.clock import Clock
from workloads.reasons.fit import CHANGE_RUN, no_fit
from workloads.reasons.messages import Cause, Kind, decisive, preempted
from workloads.reasons.stops import preemptor
from workloads.reasons.words import (
    amount,
    asked_already,
    display_name,
    larger_than,
    never_more,
    open_request,
    request_more,
    request_waits,
    use_elsewhere,
    waits_for,
    whole,
)


def no_quota(facts: Facts, message: str, clock: Clock) -> Answer | None:
    """The answer to a message that names a cause; None when it names none that is known."""
    groups = facts.queue.groups if facts.queue else ()
    cause = decisive(message, groups)
    if cause is None:
        return None
    stopping = preempted(message)
    if stopping and cause.kind == Kind.FULL:
        return _making_room(cause, facts, stopping)
    return _of_cause(cause, facts, clock)


def _of_cause(cause: Cause, facts: Facts, clock: Clock) -> Answer:
    if cause.kind == Kind.FULL:
        return _full(cause, facts)
    return (
        _too_large(cause, facts, clock)
        if cause.kind == Kind.TOO_LARGE
        else no_fit(cause, facts)
    )


def _making_room(cause: Cause, facts: Facts, stopping: int) -> Answer:
    them = "1 other job" if stopping == 1 else f"{stopping} other jobs"
    needed = amount(cause.missing, cause.resource, cause.flavor, facts)
    return Answer(
        code="making_room",
        outlook=Outlook.WAIT,
        what=f"It needs {needed} more, and the queue is stopping {them} to make room.",
        do="Wait: it starts when they have stopped, most often within a minute.",
        in_line=True,
        detail=cause.message,
    )


def _full(cause: Cause, facts: Facts) -> Answer:
    needed = amount(cause.missing, cause.resource, cause.flavor, facts)
    step = use_elsewhere(facts)
    do = "Wait: it starts when jobs ahead of it or running ones end." + _or_stop(
        cause, facts
    )
    if step is not None:
        do += " Or run it where GPUs are free now."
    elif (asked := facts.requests.get(cause.flavor)) is not None:
        do += f" {asked_already(asked)}"
        step = open_request(asked)
    elif (
        (more := whole(cause.missing))
        and is_gpu(cause.resource)
        and _can_have(more, cause.flavor, facts)
    ):
        do += f" Or ask for {more} more for your team."
        step = request_more(more, cause.flavor, facts)
    return Answer(
        code="quota_full",
        outlook=Outlook.WAIT,
        what=f"{waits_for(needed)}{_use(cause, facts)}",
        do=do,
        in_line=True,
        step=step,
        detail=cause.message,
    )


def _or_stop(cause: Cause, facts: Facts) -> str:
    """The smallest job of the reader's own namespaces whose end makes enough room; never one that it made room for."""
    workload = facts.workload
    if workload is None:
        return ""
    first = preemptor(workload)
    mine = [
        one
        for one in facts.running
        if one.flavor == cause.flavor
        and one.gpus >= whole(cause.missing)
        and one.key.namespace == workload.key.namespace
        and facts.viewer.may_see(one.key)
        and (not first or one.key.uid != first)
    ]
    found = min(mine, key=lambda one: one.gpus, default=None)
    if found is None:
        return ""
    return f" Or stop {display_name(found.key, facts)}, which holds {found.gpus}."


def _use(cause: Cause, facts: Facts) -> str:
    quota = _quota(cause, facts)
    if quota is None:
        return ""
    use = f" Your queue uses {quota.reserved} and is guaranteed {quota.nominal}"
    if quota.borrowed:
        return f"{use}; {quota.borrowed} of them {'is' if quota.borrowed == 1 else 'are'} borrowed."
    if quota.borrowing == 0:
        return f"{use}."
    at_most = "" if quota.borrowing is None else f"at most {quota.borrowing} of "
    # It waits although its own limits let it have enough: then others lend too little, or there is nobody to lend.
    lent = f"{use}; it may borrow {at_most}what other teams leave unused"
    if not _is_within_limits(quota, facts):
        return f"{lent}."
    ask = "" if cause.flavor in facts.requests else ": ask for them"
    return (
        f"{lent}, which is too little now. GPUs that no team holds are not lent{ask}."
    )


def _is_within_limits(quota: Quota, facts: Facts) -> bool:
    wanted = facts.workload.gpus if facts.workload is not None else 0
    return (
        quota.borrowing is None
        or quota.reserved + wanted <= quota.nominal + quota.borrowing
    )


def _quota(cause: Cause, facts: Facts) -> Quota | None:
    found = facts.queue.quotas if facts.queue else ()
    return next(
        (
            one
            for one in found
            if (one.flavor, one.resource) == (cause.flavor, cause.resource)
        ),
        None,
    )


def _can_have(more: int, flavor: str, facts: Facts) -> bool:
    """Whether the cluster could have so many beyond what the queue is guaranteed; what is not known is possible."""
    whole_cluster = facts.obtainable(flavor)
    guaranteed = sum(
        one.nominal
        for one in (facts.queue.quotas if facts.queue else ())
        if one.flavor == flavor
    )
    return whole_cluster is None or guaranteed + more <= whole_cluster


def _too_large(cause: Cause, facts: Facts, clock: Clock) -> Answer:
    if not is_gpu(cause.resource):
        return _too_much(cause, facts)
    requested, maximum = _requested(cause), whole(cause.maximum)
    granted = _granted(cause, facts, clock)
    if granted is not None:
        return granted
    title, on_cluster = facts.title(cause.flavor), facts.obtainable(cause.flavor)
    what = never_more(f"{requested} × {title}", str(maximum))
    if on_cluster is not None and requested > on_cluster:
        return Answer(
            code="larger_than_cluster",
            outlook=Outlook.NEVER,
            what=larger_than(facts.cluster.title, f"{requested} × {title}", on_cluster),
            do="Stop it and run it with fewer GPUs, or on another cluster.",
            step=use_elsewhere(facts) or _edit(maximum),
            detail=cause.message,
        )
    if (asked := facts.requests.get(cause.flavor)) is not None:
        lacking = requested - maximum - asked.in_all
        return request_waits(asked, what, lacking=lacking, detail=cause.message)
    return Answer(
        code="larger_than_quota",
        outlook=Outlook.CHANGE,
        what=what,
        do=f"Ask for {requested - maximum} more for your team"
        + (f", or run it with at most {maximum}." if maximum else "."),
        step=use_elsewhere(facts)
        or request_more(requested - maximum, cause.flavor, facts),
        detail=cause.message,
    )


def _requested(cause: Cause) -> int:
    """The GPUs of all pod sets up to the one that does not fit."""
    return whole(cause.previous) + whole(cause.requested)


def _granted(cause: Cause, facts: Facts, clock: Clock) -> Answer | None:
    """Where the team's own GPUs of this flavor are to come, or have ended."""
    requested = _requested(cause)
    of_flavor = [
        one
        for one in facts.allocations
        if one.flavor == cause.flavor and one.gpus >= requested
    ]
    coming = [
        one
        for one in of_flavor
        if one.begins is not None and not clock.has_come(one.begins)
    ]
    if coming:
        return _not_yet(
            min(coming, key=lambda one: one.begins or clock.now), cause, facts, clock
        )
    ended = [
        one for one in of_flavor if one.ends is not None and clock.has_come(one.ends)
    ]
    return (
        _ended(max(ended, key=lambda one: one.ends or clock.now), cause, facts, clock)
        if ended
        else None
    )


def _not_yet(found: Allocation, cause: Cause, facts: Facts, clock: Clock) -> Answer:
    begins = found.begins or clock.now
    return Answer(
        code="allocation_begins",
        outlook=Outlook.WAIT,
        what=f"Your team's {found.gpus} × {facts.title(found.flavor)} begin on {clock.written(begins)}.",
        do="Wait: it may start from then on.",
        at=begins,
        in_line=True,
        detail=cause.message,
    )


def _ended(found: Allocation, cause: Cause, facts: Facts, clock: Clock) -> Answer:
    ends, title = found.ends or clock.now, facts.title(found.flavor)
    what = f"Your team's {found.gpus} × {title} ended on {clock.day(ends)}, so the queue cannot give them."
    if (asked := facts.requests.get(found.flavor)) is not None:
        lacking = _requested(cause) - whole(cause.maximum) - asked.in_all
        return request_waits(asked, what, lacking=lacking, detail=cause.message)
    return Answer(
        code="allocation_ended",
        outlook=Outlook.CHANGE,
        what=what,
        do="Renew them, or run it with fewer GPUs.",
        since=ends,
        step=Step(
            Action.RENEW,
            f"Ask for {found.gpus} × {title} again",
            {"flavor": found.flavor, "gpus": found.gpus},
        ),
        detail=cause.message,
    )


def _too_much(cause: Cause, facts: Facts) -> Answer:
    both = [cause.previous, cause.requested]
    total = (
        str(sum(map(int, both)))
        if all(one.isdecimal() for one in both)
        else cause.requested
    )
    requested, maximum = (
        amount(each, cause.resource, cause.flavor, facts)
        for each in (total, cause.maximum)
    )
    return Answer(
        code="larger_than_quota",
        outlook=Outlook.CHANGE,
        what=never_more(requested, maximum),
        do="Run it with less, or have a platform lead raise that limit of the queue.",
        step=Step(Action.CHANGE_RUN, CHANGE_RUN, {"resource": cause.resource}),
        detail=cause.message,
    )


def _edit(maximum: int) -> Step | None:
    return (
        Step(Action.CHANGE_RUN, f"Run it with {maximum}", {"gpus": maximum})
        if maximum
        else None
    )

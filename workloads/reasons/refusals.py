"""Kueue let it in and the cluster refuses its pods: a quota, a limit, a policy, a webhook that is away. Pure.

The job's own status stays empty then; only its events of reason FailedCreate tell.
"""

from collections.abc import Sequence

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Event, Facts
from workloads.reasons.clock import Clock
from workloads.reasons.fit import CHANGE_RUN

REASON = "FailedCreate"
HAND_OVER = "A platform lead looks at it: your GPUs are set aside meanwhile."
# By words of the API server: code, outlook, what it means, what to do. The first that matches counts.
REFUSALS: Sequence[tuple[str, tuple[str, Outlook, str, str]]] = (
    (
        "exceeded quota",
        (
            "namespace_quota",
            Outlook.ESCALATE,
            "The namespace's own quota leaves no room for its pods, though your queue let it in.",
            "Stop something else in the namespace, or have a platform lead raise that quota.",
        ),
    ),
    (
        "must specify",
        (
            "amounts_missing",
            Outlook.CHANGE,
            "The namespace's quota wants to know how much CPU and memory each container takes, and one does not say.",
            "Write requests and limits for each container, and submit it again.",
        ),
    ),
    (
        "violates PodSecurity",
        (
            "pod_security",
            Outlook.CHANGE,
            "Its pods ask for rights that this namespace does not allow.",
            "Take out what the message names, and submit it again.",
        ),
    ),
    (
        " usage per ",
        (
            "limit_range",
            Outlook.CHANGE,
            "One of its containers asks for more or less than this namespace allows for one.",
            "Change what that container asks for, and submit it again.",
        ),
    ),
    (
        "failed calling webhook",
        (
            "webhook_down",
            Outlook.ESCALATE,
            "A helper of the cluster, most often Kueue or Volcano, does not answer, and no pod can be made without it.",
            "It is tried again by itself; a platform lead looks at that helper if it lasts.",
        ),
    ),
    (
        "serviceaccount",
        (
            "service_account",
            Outlook.CHANGE,
            "It names a service account that this namespace does not have.",
            "Name one that is there, or none, and submit it again.",
        ),
    ),
    (
        "no PriorityClass",
        (
            "unknown_priority",
            Outlook.CHANGE,
            "Its pods name a priority that the cluster does not have.",
            "Name one of the cluster's priorities, or none, and submit it again.",
        ),
    ),
    (
        "denied",
        (
            "policy",
            Outlook.CHANGE,
            "A policy of the cluster refuses its pods.",
            "The message names the rule; change the run, or ask a platform lead.",
        ),
    ),
)
OTHER = ("pods_refused", Outlook.ESCALATE, "The cluster refuses its pods.", HAND_OVER)


def refused(facts: Facts, clock: Clock) -> Answer | None:
    """Its pods cannot be made: the last refusal, unless every pod is there by now."""
    last = _last_refusal(facts)
    if last is None or _are_all_there(facts):
        return None
    code, outlook, what, do = next(
        (answer for words, answer in REFUSALS if words in last.message), OTHER
    )
    step = (
        Step(Action.CHANGE_RUN, CHANGE_RUN, {"reason": code})
        if outlook == Outlook.CHANGE
        else None
    )
    return Answer(
        code=code,
        outlook=outlook,
        what=what,
        do=do,
        since=last.at,
        step=step,
        detail=last.message,
    )


def _last_refusal(facts: Facts) -> Event | None:
    found = [one for one in facts.events if one.reason == REASON]
    later = [
        one
        for one in facts.events
        if one.reason in ("SuccessfulCreate", "Suspended", "Stopped")
    ]
    if not found:
        return None
    last = max(found, key=_at)
    return None if any(_at(one) > _at(last) for one in later) else last


def _at(event: Event) -> float:
    return event.at.timestamp() if event.at else 0.0


def _are_all_there(facts: Facts) -> bool:
    wanted = sum(one.count for one in facts.workload.pod_sets) if facts.workload else 0
    return (
        bool(wanted)
        and len([one for one in facts.pods if not one.is_stopping]) >= wanted
    )

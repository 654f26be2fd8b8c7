"""Quota is given and no node takes the pod: what the scheduler says, and how free GPUs are scattered. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime

from fleet.names import profile_of
from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Event, Facts, Pod, by_profile
from workloads.reading.values import is_gpu
from workloads.reasons.clock import Clock
from workloads.reasons.fit import CHANGE_RUN
from workloads.reasons.words import resource_words, use_elsewhere

CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" (not found|is being deleted)')
SHORT = re.compile(r"Insufficient (\S+?)[,.]?(?:\s|$)")
NO_NODE = ("no nodes available", "0/0 nodes")
GROWS, CANNOT_GROW = ("TriggeredScaleUp",), ("NotTriggerScaleUp",)
# When no node fails for want of room, by words of the scheduler: code, outlook, what, do.
MISFITS: Sequence[tuple[str, tuple[str, Outlook, str, str]]] = (
    (
        "unbound immediate PersistentVolumeClaims",
        (
            "claim_unbound",
            Outlook.ESCALATE,
            "A claim that its pods name has no disk yet.",
            "Wait a minute for the disk; a platform lead looks at the storage if it lasts.",
        ),
    ),
    (
        "volume node affinity conflict",
        (
            "claim_elsewhere",
            Outlook.CHANGE,
            "A disk that its pods name lies where no node with room is.",
            "Use a claim that every node can reach, or copy the data.",
        ),
    ),
    (
        "were unschedulable",
        (
            "nodes_away",
            Outlook.ESCALATE,
            "The nodes that it fits on take no pods now: they are being serviced.",
            "A platform lead brings those nodes back; it starts then by itself.",
        ),
    ),
    (
        "not-ready",
        (
            "nodes_away",
            Outlook.ESCALATE,
            "The nodes that it fits on are not ready.",
            "A platform lead looks at those nodes; it starts by itself when they are back.",
        ),
    ),
    (
        "node affinity/selector",
        (
            "node_labels_differ",
            Outlook.CHANGE,
            "Its pods ask for node labels that no node has.",
            "Take the node selector or the affinity out of the pods, or correct it.",
        ),
    ),
    (
        "untolerated taint",
        (
            "taint_not_tolerated",
            Outlook.CHANGE,
            "Every node has a taint that its pods do not tolerate.",
            "Add the toleration to the pods, or run it on another kind of GPU.",
        ),
    ),
    (
        "anti-affinity",
        (
            "anti_affinity",
            Outlook.CHANGE,
            "Its pods must not share a node with others that run now, and no other node is left.",
            "Take that rule out of the pods, or wait until those others end.",
        ),
    ),
)
GRANTED = "Its GPUs are granted"


def unscheduled(pod: Pod, facts: Facts, clock: Clock) -> Answer | None:
    """Why the scheduler finds no node for a pod; None once it has one."""
    message = _message(pod)
    if pod.node or not message:
        return None
    growing = _pool(pod)
    if growing is not None:
        return growing
    claim = CLAIM.search(message)
    if claim is not None:
        return _claim(pod, claim, message)
    short = SHORT.search(message)
    if short is not None:
        return _no_room(pod, short[1], message, facts)
    return _misfit(pod, message, facts)


def _message(pod: Pod) -> str:
    if pod.unscheduled is not None and pod.unscheduled.reason == "Unschedulable":
        return pod.unscheduled.message
    last = _last(pod, ("FailedScheduling",))
    return last.message if last is not None and not pod.node else ""


def _pool(pod: Pod) -> Answer | None:
    """What a cluster autoscaler has said about the pod last."""
    last = _last(pod, (*GROWS, *CANNOT_GROW))
    if last is None or last.reason in CANNOT_GROW:
        return None
    return Answer(
        code="nodes_coming",
        outlook=Outlook.WAIT,
        what=f"{GRANTED}, and the cluster is adding nodes for it.",
        do="Wait: a node with GPUs takes some minutes to start.",
        since=last.at,
        detail=last.message,
    )


def _claim(pod: Pod, claim: re.Match[str], message: str) -> Answer:
    state = "does not exist" if claim[2] == "not found" else "is being deleted"
    return Answer(
        code="claim_missing",
        outlook=Outlook.CHANGE,
        what=f"Its pods name the volume {claim[1]}, which {state} in this namespace.",
        do="Name a volume that is there, and submit it again.",
        since=_since(pod),
        step=Step(Action.CHANGE_RUN, "Choose another volume", {"field": "claim"}),
        detail=message,
    )


def _no_room(pod: Pod, resource: str, message: str, facts: Facts) -> Answer:
    profile, thing = profile_of(resource), resource_words(resource)
    free = max((one.free for one in facts.nodes if one.profile == profile), default=-1)
    takes = by_profile(pod.gpus, pod.slices).get(profile, 0) if is_gpu(resource) else 0
    pieces = ""
    if 0 <= free < takes:
        pieces = f" One pod takes {takes} {thing}, and the largest room on one node is {free}."
    return Answer(
        code="no_room_on_nodes",
        outlook=Outlook.WAIT,
        what=f"{GRANTED}, but no node has enough free {thing} now.{pieces}",
        do="Wait until running work frees a node, or run it with fewer GPUs in each pod.",
        when="Nobody can say: not before running work frees a node.",
        since=_since(pod),
        step=use_elsewhere(facts),
        detail=message,
    )


def _misfit(pod: Pod, message: str, facts: Facts) -> Answer:
    found = next((answer for words, answer in MISFITS if words in message), None)
    if found is None:
        none = any(words in message for words in NO_NODE)
        return Answer(
            code="no_nodes" if none else "no_node_fits",
            outlook=Outlook.ESCALATE,
            what=f"{GRANTED}, but the cluster has no nodes."
            if none
            else f"{GRANTED}, but no node takes its pods.",
            do="A platform lead looks at the nodes; it starts by itself when one takes it.",
            since=_since(pod),
            detail=message,
        )
    code, outlook, what, do = found
    step = (
        Step(Action.CHANGE_RUN, CHANGE_RUN, {"reason": code})
        if outlook == Outlook.CHANGE
        else None
    )
    return Answer(
        code=code,
        outlook=outlook,
        what=f"{GRANTED}, but no node takes it. {what}",
        do=do,
        since=_since(pod),
        step=(use_elsewhere(facts) if step is None else step),
        detail=message,
    )


def _since(pod: Pod) -> datetime | None:
    return (
        pod.unscheduled.since
        if pod.unscheduled and pod.unscheduled.since
        else pod.created
    )


def _last(pod: Pod, reasons: Sequence[str]) -> Event | None:
    found = [one for one in pod.events if one.reason in reasons]
    return max(
        found, key=lambda one: one.at.timestamp() if one.at else 0.0, default=None
    )

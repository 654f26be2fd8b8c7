"""Why work has failed, by how the containers of its pods ended. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.failures.causes import Cause, Code
from workloads.failures.signs import cause_in
from workloads.observed import Exit, Pod
from workloads.reading.values import LATEST

LOGS = Step(Action.SHOW_LOGS, "Show its logs")
OUT_OF_MEMORY = "OOMKilled"
# By what shells end with, and by 128 and the number of a signal (POSIX).
EXITS: Mapping[int, Cause] = {
    126: Cause(Code.COMMAND, "Its command is there and cannot be run."),
    127: Cause(Code.COMMAND, "Its image has no such command."),
    134: Cause(Code.PROGRAM, "Its program gave up itself (SIGABRT)."),
    135: Cause(
        Code.SHARED_MEMORY,
        "Its program had a bus error, mostly for want of shared memory.",
    ),
    137: Cause(Code.PROGRAM, "Its program was killed (SIGKILL).", follows=True),
    139: Cause(Code.PROGRAM, "Its program crashed (a segmentation fault)."),
    143: Cause(Code.PROGRAM, "Its program was told to end (SIGTERM).", follows=True),
}
# Why the kubelet ended a pod itself.
BY_NODE: Mapping[str, Cause] = {
    "Evicted": Cause(Code.NODE, "Its node ended it, as it ran short itself."),
    "Terminated": Cause(Code.NODE, "Its node was shut down."),
    "NodeShutdown": Cause(Code.NODE, "Its node was shut down."),
    "NodeLost": Cause(Code.NODE, "Its node was lost."),
}
# What a node says of a pod that took more than it may itself.
TOO_MUCH = "exceed"
SHARED = 'EmptyDir volume "shared"'
# Pods that start together are created within this time; what was created before was replaced since.
TOGETHER = timedelta(minutes=2)
COMMAND = re.compile(r"(?:^|: )([\w./-]{1,80}): (?:command )?not found$", re.ASCII)
NOT_FOUND = 127


def why_failed(pods: Sequence[Pod], *, since: datetime | None) -> Answer | None:
    """Why work that is over has failed, by that of its pods which failed first; None where no pod tells it.

    Pods in whose place others came failed nothing.
    """
    found = [(cause, one) for one in _last_of(pods) if (cause := cause_of(one))]
    if not found:
        return None
    cause, first = min(found, key=lambda each: _order(*each))
    return Answer(
        code=cause.code,
        outlook=Outlook.NEVER,
        what=cause.began_in(first.name if len(pods) > 1 else ""),
        do=cause.code.advice,
        when="It is over.",
        since=since or first.created,
        step=LOGS,
    )


def cause_of(pod: Pod) -> Cause | None:
    """Why a pod failed; None for one that did not, and for one of which nothing tells it."""
    if pod.phase != "Failed":
        return None
    if pod.reason in BY_NODE:
        return _by_node(pod)
    return cause_of_exit(pod.exit) if pod.exit is not None else None


def cause_of_exit(ended: Exit) -> Cause:
    """Why a container ended with an error, by its exit code and by what it wrote last."""
    if ended.reason == OUT_OF_MEMORY:
        return Cause(Code.MEMORY, "It took more memory than it may, and was killed.")
    told = cause_in(ended.words.splitlines())
    if told is not None:
        return told[1]
    named = COMMAND.search(ended.words.strip()) if ended.code == NOT_FOUND else None
    if named is not None:
        return Cause(Code.COMMAND, f"Its image has no command {named[1]}.")
    known = EXITS.get(ended.code)
    return known or Cause(
        Code.PROGRAM, f"Its program ended with exit code {ended.code}."
    )


def _by_node(pod: Pod) -> Cause:
    if TOO_MUCH not in pod.message:
        return BY_NODE[pod.reason]
    if SHARED in pod.message:
        return Cause(Code.SHARED_MEMORY, "It took more shared memory than it may.")
    return Cause(Code.DISK, "It wrote more to its node than it may.")


def _last_of(pods: Sequence[Pod]) -> Sequence[Pod]:
    """Those that were created together last; of pods of which that is not known, all."""
    latest = max((one.created for one in pods if one.created), default=None)
    if latest is None:
        return pods
    return [
        one for one in pods if one.created is None or one.created > latest - TOGETHER
    ]


def _order(cause: Cause, pod: Pod) -> tuple[bool, datetime, bool]:
    return not cause.is_clear, _ended_at(pod), cause.follows


def _ended_at(pod: Pod) -> datetime:
    return (pod.exit.at if pod.exit is not None else None) or LATEST

"""Why work has failed, by how the containers of its pods ended. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.failures.causes import Cause, Code
from workloads.failures.signs import cause_in
from workloads.observed import Exit, Pod

LATEST = datetime.max.replace(tzinfo=UTC)
LOGS = Step(Action.SHOW_LOGS, "Show its logs")
OUT_OF_MEMORY = "OOMKilled"
# By what shells end with, and by 128 and the number of a signal (POSIX).
EXITS: Mapping[int, Cause] = {
    126: Cause(Code.COMMAND, "Its command is there and cannot be run."),
    127: Cause(Code.COMMAND, "Its image has no such command."),
    134: Cause(Code.PROGRAM, "Its program gave up itself (SIGABRT)."),
    137: Cause(Code.PROGRAM, "Its program was killed (SIGKILL)."),
    139: Cause(Code.PROGRAM, "Its program crashed (a segmentation fault)."),
    143: Cause(Code.PROGRAM, "Its program was told to end (SIGTERM)."),
}
# Why the kubelet ended a pod itself.
BY_NODE: Mapping[str, Cause] = {
    "Evicted": Cause(Code.NODE, "Its node ended it, as it ran short itself."),
    "Terminated": Cause(Code.NODE, "Its node was shut down."),
    "NodeShutdown": Cause(Code.NODE, "Its node was shut down."),
    "NodeLost": Cause(Code.NODE, "Its node was lost."),
}
OWN_DISK = "ephemeral"


def why_failed(pods: Sequence[Pod], *, since: datetime | None) -> Answer | None:
    """Why work that is over has failed, by that of its pods which failed first; None where no pod tells it."""
    found = [(cause, one) for one in pods if (cause := cause_of(one)) is not None]
    if not found:
        return None
    cause, first = min(found, key=lambda each: (each[0].vagueness, _ended_at(each[1])))
    where = f" It began in {first.name}." if len(pods) > 1 else ""
    return Answer(
        code=cause.code,
        outlook=Outlook.NEVER,
        what=f"{cause.what}{where}",
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
        is_full = OWN_DISK in pod.message
        return (
            Cause(Code.DISK, "It wrote more than its node has room for.")
            if is_full
            else BY_NODE[pod.reason]
        )
    return cause_of_exit(pod.exit) if pod.exit is not None else None


def cause_of_exit(ended: Exit) -> Cause:
    """Why a container ended with an error, by its exit code and by what it wrote last."""
    if ended.reason == OUT_OF_MEMORY:
        return Cause(Code.MEMORY, "It took more memory than it may, and was killed.")
    told = cause_in(ended.words.splitlines())
    if told is not None:
        return told[1]
    known = EXITS.get(ended.code)
    return known or Cause(
        Code.PROGRAM, f"Its program ended with exit code {ended.code}."
    )


def _ended_at(pod: Pod) -> datetime:
    return (pod.exit.at if pod.exit is not None else None) or LATEST

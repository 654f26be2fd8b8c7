"""What a run fetches before it begins did not come: what git said about it, and what to change. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Pod

# The last line of what fetches a run's source (workloads.templates.pods.FETCH).
NOT_FETCHED = re.compile(r"^Not fetched: (\S+) of (\S+)$", re.MULTILINE)
CHANGE_SOURCE = Step(Action.CHANGE_RUN, "Correct its source", {"field": "git_url"})
# The code of work that failed for it, whose program never began.
NEVER_FETCHED = "never_fetched"
# Why nothing was fetched, by words of git; the first that matches counts.
CAUSES: Sequence[tuple[tuple[str, ...], Outlook, str, str]] = (
    (
        ("couldn't find remote ref", "not our ref", "unadvertised object"),
        Outlook.CHANGE,
        "The Git ref {ref} does not exist at {url}.",
        "Correct the branch, tag or commit, and run it again.",
    ),
    (
        (
            "Could not resolve host",
            "onnect to",
            "timed out",
            "onnection refused",
            "returned error: 5",
        ),
        Outlook.ESCALATE,
        "The Git host of {url} does not answer its pods.",
        "Look whether the address is right; a platform lead opens the way out to a host that pods may not reach.",
    ),
    (
        ("returned error: 3",),
        Outlook.CHANGE,
        "The Git host of {url} sends it on to another address, to which no password is handed on.",
        "Name the address that it leads to, and run it again.",
    ),
    (
        ("Authentication failed",),
        Outlook.CHANGE,
        "The Git host of {url} refuses its name or password.",
        "Correct the Secret that it is read with, or name another one, and run it again.",
    ),
    (
        (
            "not found",
            "not exist",
            "not appear to be a git",
            "Username",
            "returned error: 4",
        ),
        Outlook.CHANGE,
        "There is no Git repository at {url} that it can read.",
        "Correct the address, or name the Secret with the password of a private one, and run it again.",
    ),
)
UNKNOWN = (
    Outlook.CHANGE,
    "The Git ref {ref} could not be fetched from {url}.",
    "The message below says why; correct its source, and run it again.",
)


def unfetched(pod: Pod) -> Answer | None:
    """Why a pod has no source; None where it has one, or fetches none."""
    found = NOT_FETCHED.search(pod.failed_before)
    if found is None:
        return None
    said = pod.failed_before[: found.start()].strip()
    known = (each[1:] for each in CAUSES if any(words in said for words in each[0]))
    outlook, what, do = next(known, UNKNOWN)
    return Answer(
        code="source_not_fetched",
        outlook=outlook,
        what=what.format(ref=found[1], url=found[2]),
        do=do,
        since=pod.created,
        step=CHANGE_SOURCE if outlook == Outlook.CHANGE else None,
        detail=said,
    )


def never_fetched(
    pods: Sequence[Pod], *, since: datetime | None = None
) -> Answer | None:
    """The same of work that has failed: only where none of its pods failed by itself."""
    found = [unfetched(one) for one in pods if one.phase == "Failed"]
    if not found or None in found or found[0] is None:
        return None
    return replace(
        found[0],
        code=NEVER_FETCHED,
        when="It is over.",
        since=since or found[0].since,
    )

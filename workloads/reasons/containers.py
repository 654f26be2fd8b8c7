"""A pod has its node and does not run: image, configuration, volumes, or a program that ends at once. Pure."""

from collections.abc import Sequence
from datetime import datetime

from provisioning.desired.variables import lacking_secret
from workloads.explanations import Action, Answer, Outlook, Step
from workloads.failures.causes import Code
from workloads.failures.of_pods import cause_of_exit
from workloads.observed import Event, Pod, Waiting
from workloads.reasons.clock import Clock
from workloads.reasons.fit import CHANGE_RUN

PULL = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
)
CONFIGURATION = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
VALUE_NOT_THERE = "secret_not_there"
VOLUMES = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
COMING = ("ContainerCreating", "PodInitializing", "")
LOGS = Step(Action.SHOW_LOGS, "Show its logs")
IMAGE = Step(Action.CHANGE_RUN, "Choose another image", {"field": "image"})
# Why an image cannot be pulled, by words of the container runtime; the first that matches counts.
PULLS: Sequence[tuple[tuple[str, ...], Outlook, str, str]] = (
    (
        ("toomanyrequests", "429 Too Many"),
        Outlook.WAIT,
        "its registry asks for patience",
        "Wait: it is tried again.",
    ),
    (
        (
            "no such host",
            "i/o timeout",
            "connection refused",
            "503 ",
            "502 ",
            "TLS handshake",
        ),
        Outlook.ESCALATE,
        "its registry does not answer",
        "It is tried again by itself; a platform lead looks at the registry if it lasts.",
    ),
    (
        ("not found", "manifest unknown"),
        Outlook.CHANGE,
        "the registry has no image of this name and tag",
        "Correct the image's name or tag, and run it again.",
    ),
    (
        ("denied", "unauthorized", "authorization failed", "401 ", "403 "),
        Outlook.CHANGE,
        "the registry does not have it, or does not let this cluster read it",
        "Correct the image, or ask a platform lead for access to its registry.",
    ),
)
PULL_FAILED = ("it cannot be pulled", "Correct the image's name, and run it again.")


def not_running(pod: Pod, clock: Clock) -> Answer | None:
    """Why a pod with a node does not run; None while all its containers run."""
    stuck = next((one for one in pod.waiting if one.reason not in COMING), None)
    if stuck is None:
        return _coming(pod) if pod.phase == "Pending" and pod.node else None
    if stuck.reason in PULL:
        return _pull(pod, stuck)
    if stuck.reason in CONFIGURATION:
        return _configuration(pod, stuck)
    if stuck.reason == "CrashLoopBackOff":
        return _crash(pod, stuck)
    return Answer(
        code="container_waits",
        outlook=Outlook.CHANGE,
        what=f"Its container {stuck.container} does not start: {stuck.reason}.",
        do="Look at the events of its pod, mend the cause, and run it again.",
        since=_since(pod),
        step=LOGS,
        detail=stuck.message,
    )


def _coming(pod: Pod) -> Answer:
    trouble = _last(pod, VOLUMES)
    if trouble is not None:
        missing = "not found" in trouble.message
        return Answer(
            code="volume_not_there",
            outlook=Outlook.CHANGE if missing else Outlook.ESCALATE,
            what="A volume, secret or file map that it names does not exist."
            if missing
            else "A volume that it names cannot be attached to its node.",
            do="Name one that is there, and run it again."
            if missing
            else "It is tried again by itself; a platform lead looks at the storage if it lasts.",
            since=trouble.at,
            step=Step(Action.CHANGE_RUN, CHANGE_RUN, {"field": "volumes"})
            if missing
            else None,
            detail=trouble.message,
        )
    pulling = _last(pod, ("Pulling", "Pulled"))
    is_pulling = pulling is not None and pulling.reason == "Pulling"
    return Answer(
        code="pulling_image" if is_pulling else "starting",
        outlook=Outlook.WAIT,
        what="Its node is pulling the image."
        if is_pulling
        else "It has its nodes, and its containers are starting.",
        do="Wait: a large image takes some minutes where a node does not have it yet."
        if is_pulling
        else "Wait: it takes seconds to minutes.",
        since=pulling.at if pulling is not None else _since(pod),
        detail=pulling.message if pulling is not None else "",
    )


def _pull(pod: Pod, stuck: Waiting) -> Answer:
    failed = _last(pod, ("Failed",), having="pull")
    text = " ".join((stuck.message, failed.message if failed else ""))
    # A refusal for want of rights says "does not exist or may require authorization", so it is looked for first.
    denied = PULLS[-1] if any(words in text for words in PULLS[-1][0]) else None
    found = denied or next(
        (one for one in PULLS if any(words in text for words in one[0])), None
    )
    outlook = found[1] if found else Outlook.CHANGE
    why, do = (found[2], found[3]) if found else PULL_FAILED
    return Answer(
        code="image_pull",
        outlook=outlook,
        what=f"Its image {stuck.image} does not come: {why}.",
        do=do,
        since=failed.at if failed is not None and failed.at else _since(pod),
        step=IMAGE if outlook == Outlook.CHANGE else None,
        detail=text.strip(),
    )


def _without_secret(pod: Pod, stuck: Waiting) -> Answer | None:
    """That a Secret which a container takes a value from is not there, or lacks its key; None for anything else."""
    what = lacking_secret(stuck.message)
    if not what:
        return None
    return Answer(
        code=VALUE_NOT_THERE,
        outlook=Outlook.CHANGE,
        what=what,
        do="Make it with kubectl, and it starts by itself; or name another one, and run it again. Until then it holds "
        "its GPUs, and its time limit counts.",
        since=_since(pod),
        step=Step(Action.CHANGE_RUN, CHANGE_RUN, {"field": "secrets"}),
        detail=stuck.message,
    )


def _configuration(pod: Pod, stuck: Waiting) -> Answer:
    if (found := _without_secret(pod, stuck)) is not None:
        return found
    return Answer(
        code="container_configuration",
        outlook=Outlook.CHANGE,
        what=f"Its container {stuck.container} cannot be set up: a secret, a file map or its command is wrong.",
        do="The message below names it; correct it and run it again.",
        since=_since(pod),
        step=Step(Action.CHANGE_RUN, CHANGE_RUN, {"field": "container"}),
        detail=stuck.message,
    )


def _crash(pod: Pod, stuck: Waiting) -> Answer:
    what, code = f"Its container {stuck.container} ends again and again.", Code.PROGRAM
    if pod.exit is not None:
        cause = cause_of_exit(pod.exit)
        what, code = f"{what} {cause.what}", cause.code
    return Answer(
        code="crashes",
        outlook=Outlook.CHANGE,
        what=what,
        do=code.advice,
        since=_since(pod),
        step=LOGS,
        detail=stuck.message,
    )


def _since(pod: Pod) -> datetime | None:
    started = _last(pod, ("Scheduled",))
    return started.at if started is not None and started.at else pod.created


def _last(pod: Pod, reasons: Sequence[str], *, having: str = "") -> Event | None:
    found = [
        one for one in pod.events if one.reason in reasons and having in one.message
    ]
    return max(
        found, key=lambda one: one.at.timestamp() if one.at else 0.0, default=None
    )

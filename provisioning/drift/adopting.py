"""Which foreign changes may become what is wanted, and what then becomes of the manifests. Pure.

Only amounts of cpu, memory, storage, pods and counts in a namespace's ResourceQuota and LimitRange: never GPUs, who may
work there, Pod Security, traffic or queues. What jobs of the queue need is only ever raised: below it, an admitted job
would never get a pod.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from provisioning.desired.quantities import amount
from provisioning.drift.paths import leaves, put, text_of

Adopted = tuple[tuple[str, str, str], ...]

HARD = "spec.hard."
# The quota of priorities that are closed to a tenancy (provisioning.desired.limits).
PRIORITY_QUOTA = "team-priorities"
NEEDED = frozenset(
    {"requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "pods"}
)
OTHER_AMOUNTS = re.compile(
    r"(persistentvolumeclaims|requests\.storage|count/[a-z0-9.-]+"
    r"|[a-z0-9.-]+\.storageclass\.storage\.k8s\.io/(requests\.storage|persistentvolumeclaims))"
)
DEFAULTS = re.compile(
    r"spec\.limits\[\d+\]\.(default|defaultRequest|max|min)\.(cpu|memory|storage|ephemeral-storage)"
)


def refusal(kind: str, fields: Sequence[Mapping[str, Any]], *, name: str = "") -> str:
    """Why these differences cannot be taken over, in a sentence; empty when they can."""
    if name == PRIORITY_QUOTA:
        return "Which priorities are open to a team is set on its page, and never taken over."
    if not fields:
        return "What is gone or too much cannot be taken over."
    return next(
        (said for said in (_refusal(kind, field) for field in fields) if said), ""
    )


def _refusal(kind: str, field: Mapping[str, Any]) -> str:
    path, wanted, live = (
        str(field["path"]),
        amount(field["wanted"]),
        amount(field["live"]),
    )
    if not _is_adoptable(kind, path):
        return f"{path} is never taken over: only amounts of CPU, memory, storage, pods and counts are."
    if wanted is None or live is None:
        return f"{path} is {field['live']!r}, which is not an amount that can be taken over."
    if path.removeprefix(HARD) in NEEDED and live < wanted:
        return f"{path} would be less than the team’s queue promises: its jobs would never start."
    return ""


def _is_adoptable(kind: str, path: str) -> bool:
    if kind == "ResourceQuota" and path.startswith(HARD):
        key = path.removeprefix(HARD)
        return key in NEEDED or bool(OTHER_AMOUNTS.fullmatch(key))
    return kind == "LimitRange" and bool(DEFAULTS.fullmatch(path))


def laid_on(
    objects: Iterable[dict[str, Any]], adopted: Adopted
) -> list[dict[str, Any]]:
    """The manifests with what was taken over; what has no place in them any more, or may not be, is left out."""
    return [_laid_on(one, adopted) for one in objects]


def _laid_on(manifest: dict[str, Any], adopted: Adopted) -> dict[str, Any]:
    mine = {
        path: value
        for thing, path, value in adopted
        if thing == thing_of(manifest["kind"], manifest["metadata"]["name"])
        and _is_adoptable(manifest["kind"], path)
    }
    if not mine:
        return manifest
    made = deepcopy(manifest)
    for at, wanted in leaves(manifest):
        path = text_of(at)
        if path in mine and _holds(path, wanted, mine[path]):
            put(made, at, mine[path])
    return made


def _holds(path: str, wanted: Any, value: str) -> bool:
    """Whether the value taken over still goes: what the queue needs by now is never cut."""
    ours, theirs = amount(wanted), amount(value)
    if ours is None or theirs is None:
        return False
    return path.removeprefix(HARD) not in NEEDED or theirs > ours


def thing_of(kind: str, name: str) -> str:
    """How an object of a tenancy is named where values are kept."""
    return f"{kind}/{name}"


def from_json(stored: Mapping[str, Mapping[str, str]]) -> Adopted:
    """What a tenancy keeps as `{"ResourceQuota/team-quota": {path: value}}`, in one order."""
    return tuple(
        (thing, path, value)
        for thing in sorted(stored)
        for path, value in sorted(stored[thing].items())
    )

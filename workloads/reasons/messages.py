"""What Kueue writes about quota that it could not reserve, taken apart, and which part of it decides. Pure.

A message has a sentence for every pod set, and in it a cause for every flavor that was tried. The flavors of one group
stand in for each other, so the most hopeful of them counts; groups and pod sets are all needed, so the least hopeful
of those counts. A flavor that the pods themselves exclude is the cause only where they exclude all of a group: whoever
chooses a kind of GPU by a node selector excludes every other kind, and waits for the chosen one.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from workloads.reasons.words import whole

POD_SET = re.compile(r"couldn't assign flavors to pod set \S+?: ")
PREEMPTION = re.compile(r"Pending the preemption of (\d+) workload")
# After a flavor's name, which may hold dots.
END = r"(?=[,;.]?(?:\s|$))"


class Kind(IntEnum):
    """What keeps one flavor from being taken, the most hopeful first."""

    FULL = 0
    CROWDED = 1
    SCATTERED = 2
    TAINTED = 3
    LABELLED = 4
    LEVELLESS = 5
    UNKNOWN_FLAVOR = 6
    TOO_LARGE = 7
    UNCOVERED = 8


# What no end of other work changes. Pods that are too far apart are not among them: nodes may come back.
HOPELESS = frozenset(
    {
        Kind.TAINTED,
        Kind.LABELLED,
        Kind.LEVELLESS,
        Kind.TOO_LARGE,
        Kind.UNCOVERED,
    }
)
# The pods' own selectors and tolerations keep them away, whatever the quota.
EXCLUDED = frozenset({Kind.TAINTED, Kind.LABELLED})


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause: `missing` are needed now, or `requested` is above `maximum`; `fit` of `pods` fit close together.

    `message` is all that Kueue wrote.
    """

    kind: Kind
    flavor: str = ""
    resource: str = ""
    missing: str = ""
    requested: str = ""
    previous: str = ""
    maximum: str = ""
    fit: int = 0
    pods: int = 0
    message: str = ""


Found = re.Match[str]
PATTERNS: Sequence[tuple[re.Pattern[str], Callable[[Found], Cause]]] = (
    (
        re.compile(
            r"insufficient unused quota for (\S+) in flavor (\S+?), (\S+) more needed"
        ),
        lambda m: Cause(Kind.FULL, m[2], m[1], missing=m[3]),
    ),
    (
        re.compile(
            r"insufficient quota for (\S+) in flavor (\S+?), previously considered podsets requests "
            r"\((\S+?)\) \+ current podset request \((\S+?)\) > maximum capacity \((\S+?)\)"
        ),
        lambda m: Cause(
            Kind.TOO_LARGE, m[2], m[1], previous=m[3], requested=m[4], maximum=m[5]
        ),
    ),
    (
        re.compile(
            rf"untolerated taint \{{(\S+) (\S*) ?\S* [^}}]*\}} in flavor (\S+?){END}"
        ),
        lambda m: Cause(Kind.TAINTED, m[3], f"{m[1]}={m[2]}" if m[2] else m[1]),
    ),
    (
        re.compile(r"flavor (\S+) doesn't match node affinity"),
        lambda m: Cause(Kind.LABELLED, m[1]),
    ),
    (
        re.compile(r"resource (\S+) unavailable in ClusterQueue"),
        lambda m: Cause(Kind.UNCOVERED, resource=m[1]),
    ),
    (
        re.compile(
            r'topology "([^"]+)" (?:allows to fit only (\d+) out|doesn\'t allow to fit any) of (\d+) pod\(s\)'
            r"(\. Total nodes: \d+; excluded: )?"
        ),
        lambda m: Cause(
            Kind.CROWDED if m[4] else Kind.SCATTERED,
            f"topology {m[1]}",
            fit=int(m[2] or 0),
            pods=int(m[3]),
        ),
    ),
    (
        re.compile(r'Flavor "([^"]+)" does not contain the requested level'),
        lambda m: Cause(Kind.LEVELLESS, m[1]),
    ),
    (
        re.compile(rf"flavor (\S+?) not found{END}"),
        lambda m: Cause(Kind.UNKNOWN_FLAVOR, m[1]),
    ),
)


@lru_cache(maxsize=4096)
def decisive(message: str, groups: tuple[frozenset[str], ...] = ()) -> Cause | None:
    """The cause that decides; None when the message names none. `groups` are flavors that stand in for each other.

    Kept, because a queue that is full says the same of thousands of jobs.
    """
    pod_sets = [_causes(sentence) for sentence in POD_SET.split(message)]
    needed = [_of_pod_set(causes, groups) for causes in pod_sets if causes]
    found = max(needed, key=_rank, default=None)
    return replace(found, message=message) if found is not None else None


@lru_cache(maxsize=4096)
def waits_for(message: str) -> frozenset[str]:
    """The flavors that would take the job if they were not full; none where the message does not tell."""
    worst: dict[tuple[int, str], Kind] = {}
    for number, sentence in enumerate(POD_SET.split(message)):
        for one in _causes(sentence):
            place = number, one.flavor
            worst[place] = max(worst.get(place, one.kind), one.kind)
    return frozenset(flavor for (_, flavor), kind in worst.items() if kind == Kind.FULL)


@lru_cache(maxsize=4096)
def preempted(message: str) -> int:
    """How many workloads are being stopped for this one."""
    found = PREEMPTION.search(message)
    return int(found[1]) if found else 0


def _causes(sentence: str) -> list[Cause]:
    return [
        make(found)
        for pattern, make in PATTERNS
        for found in pattern.finditer(sentence)
    ]


def _of_pod_set(causes: Iterable[Cause], groups: Sequence[frozenset[str]]) -> Cause:
    flavors: dict[tuple[int, str], Cause] = {}
    for one in causes:
        key = (_group(one, groups), one.flavor)
        flavors[key] = max(flavors.get(key, one), one, key=_rank)
    of_group: dict[int, list[Cause]] = defaultdict(list)
    for (group, _), one in flavors.items():
        of_group[group].append(one)
    return max((_of_group(each) for each in of_group.values()), key=_rank)


def _of_group(causes: Sequence[Cause]) -> Cause:
    """The flavor that is most likely to take the pods, of those that they do not exclude where there is one."""
    considered = [one for one in causes if one.kind not in EXCLUDED]
    return min(considered or causes, key=_rank)


def _group(cause: Cause, groups: Sequence[frozenset[str]]) -> int:
    """Which flavors it could be replaced by; what no flavor covers is a group of its own."""
    if cause.kind == Kind.UNCOVERED:
        return -1
    return next(
        (index for index, flavors in enumerate(groups) if cause.flavor in flavors), 0
    )


def _rank(cause: Cause) -> tuple[int, int, int]:
    """The larger the less hopeful; GPUs count before other resources, and what lacks more before what lacks less."""
    return cause.kind, "/" in cause.resource, _lacking(cause)


def _lacking(cause: Cause) -> int:
    """How many there are too few, in whole numbers."""
    if cause.missing:
        return whole(cause.missing)
    return whole(cause.previous) + whole(cause.requested) - whole(cause.maximum)

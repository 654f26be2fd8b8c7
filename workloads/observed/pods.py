"""Pods, their events, and the nodes that they run on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from provisioning.pods import OVER
from workloads.observed.work import Condition, Slices


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """An event of Kubernetes about one object, of either API."""

    kind: str
    name: str
    reason: str
    message: str = ""
    is_warning: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container does not run yet, in the kubelet's words."""

    container: str
    image: str
    reason: str
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """How a container ended with an error; `words` are the last that it wrote, where Kubernetes kept them."""

    code: int
    reason: str = ""
    words: str = ""
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pod:
    """One pod; `unscheduled` is its PodScheduled condition while it is false.

    `failed_before` is what a container that prepares it said at its end, where that failed, and `exit` how the first of
    its own ended that failed. `reason` is why the pod itself is over, such as DeadlineExceeded, and `message` more of
    that; both are empty where its containers ended by themselves.
    """

    name: str
    phase: str = "Pending"
    created: datetime | None = None
    node: str = ""
    gpus: int = 0
    slices: Slices = ()
    is_ready: bool = False
    is_stopping: bool = False
    gates: tuple[str, ...] = ()
    unscheduled: Condition | None = None
    waiting: tuple[Waiting, ...] = ()
    ended_as: str = ""
    failed_before: str = ""
    exit: Exit | None = None
    reason: str = ""
    message: str = ""
    events: tuple[Event, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.phase in OVER


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node with GPUs: what it has for pods and what pods on it asked for.

    Its GPUs are whole ones, or slices of the MIG profile `profile`: a node with both is there once for each.
    """

    name: str
    flavor: str = ""
    profile: str = ""
    gpus: int = 0
    used: int = 0
    is_ready: bool = True
    is_cordoned: bool = False

    @property
    def free(self) -> int:
        """GPUs that a pod could take on it now."""
        return (
            max(0, self.gpus - self.used)
            if self.is_ready and not self.is_cordoned
            else 0
        )


class Nodes(tuple[Node, ...]):
    """Nodes with what every job that waits for them is compared with, found once."""

    @cached_property
    def largest(self) -> Mapping[str, int]:
        """The most that one of them has of whole GPUs, under "", and of slices of each profile."""
        found: dict[str, int] = {}
        for one in self:
            found[one.profile] = max(found.get(one.profile, 0), one.gpus)
        return found

    @cached_property
    def flavors(self) -> frozenset[str]:
        """Of which flavors there is a node."""
        return frozenset(one.flavor for one in self)

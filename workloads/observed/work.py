"""The job that somebody created, and the Workload that Kueue made for it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

# Reasons of an eviction after which Kueue has a Workload wait behind those that came meanwhile.
TO_THE_END = frozenset({"PodsReadyTimeout", "AdmissionCheck"})


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as Kubernetes writes it; `since` is its last transition."""

    kind: str
    is_true: bool
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """An AdmissionCheck of a Workload: `state` is Pending, Ready, Retry or Rejected."""

    name: str
    state: str
    message: str = ""
    since: datetime | None = None


# MIG slices: how many there are of each profile, such as ("1g.10gb", 2).
Slices = tuple[tuple[str, int], ...]


def slices_of(pods: Iterable[tuple[int, Slices]]) -> Slices:
    """The slices that pods ask for together: of each shape how many pods there are, and the slices of one."""
    found: dict[str, int] = {}
    for count, slices in pods:
        for profile, each in slices:
            found[profile] = found.get(profile, 0) + count * each
    return tuple(sorted(found.items()))


def by_profile(gpus: int, slices: Slices) -> dict[str, int]:
    """GPUs by what they are: slices under their profile, and the whole ones under ""."""
    found = dict(slices)
    if rest := gpus - sum(found.values()):
        found[""] = rest
    return found


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one shape: how many, the GPUs that each asks for, and which of these are slices."""

    name: str
    count: int
    gpus: int = 0
    slices: Slices = ()


@dataclass(frozen=True, slots=True)
class JobKey:
    """Whose job a Workload stands for: the kind and name that its people know."""

    namespace: str
    name: str
    kind: str = "Job"
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The object that somebody created: a Job, JobSet, TrainJob, MPIJob, … ; `outcome` is empty while it goes on.

    Volcano says in `phase` where its own job is. `limit` is how long it may be active.
    """

    key: JobKey
    created: datetime | None = None
    is_suspended: bool | None = None
    queue: str = ""
    priority: str = ""
    phase: str = ""
    outcome: Condition | None = None
    limit: timedelta | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """Kueue's own object for the job; `cluster_queue` and `flavors` are set from the moment its quota is reserved.

    Of Volcano's PodGroup, in the same form, the queue is known from the start.
    """

    key: JobKey
    name: str
    created: datetime | None = None
    is_active: bool = True
    queue: str = ""
    cluster_queue: str = ""
    priority: int = 0
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    pod_sets: tuple[PodSet, ...] = ()
    flavors: tuple[str, ...] = ()
    requeue_at: datetime | None = None
    requeues: int = 0

    @property
    def gpus(self) -> int:
        """The GPUs that all its pods together ask for."""
        return sum([one.count * one.gpus for one in self.pod_sets])

    @property
    def slices(self) -> Slices:
        """Those of them that are MIG slices."""
        return slices_of((one.count, one.slices) for one in self.pod_sets)

    @property
    def largest_pod(self) -> int:
        """The GPUs that the greediest of its pods asks for."""
        return max([one.gpus for one in self.pod_sets], default=0)

    @property
    def queued_at(self) -> datetime | None:
        """Since when it waits: since its last eviction where it was evicted."""
        evicted = self.holds("Evicted")
        return max(
            filter(None, (self.created, evicted.since if evicted else None)),
            default=None,
        )

    @property
    def ordered_at(self) -> datetime | None:
        """What its place among those of its priority goes by (Kueue's `GetQueueOrderTimestamp`).

        Its creation: who made room for others or whose queue was stopped keeps the old place. Whose pods were not ready
        in time, and whom a check sent back, goes to the end.
        """
        evicted = self.holds("Evicted")
        goes_back = evicted is not None and evicted.reason in TO_THE_END
        return evicted.since if evicted is not None and goes_back else self.created

    def holds(self, kind: str) -> Condition | None:
        """The condition of this kind while it is true."""
        found = self.conditions.get(kind)
        return found if found is not None and found.is_true else None

    def lacks(self, kind: str) -> Condition | None:
        """The condition of this kind while it is there and false."""
        found = self.conditions.get(kind)
        return found if found is not None and not found.is_true else None

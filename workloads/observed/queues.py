"""ClusterQueues, LocalQueues and places in their line. Pure."""

from dataclasses import dataclass
from datetime import datetime

from fleet.names import profile_of
from workloads.observed.work import Condition, JobKey, Workload, by_profile


@dataclass(frozen=True, slots=True)
class Quota:
    """What a ClusterQueue has of one resource of a flavor; None in `borrowing` or `lending` is no limit."""

    flavor: str
    resource: str
    nominal: int
    borrowing: int | None = 0
    reserved: int = 0
    borrowed: int = 0
    lending: int | None = None

    @property
    def lends(self) -> int:
        """What others of its cohort may have of it while it is idle."""
        return self.nominal if self.lending is None else min(self.nominal, self.lending)


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """A ClusterQueue: `groups` are the flavors that stand in for each other."""

    name: str
    active: Condition | None = None
    stop_policy: str = "None"
    strategy: str = "BestEffortFIFO"
    cohort: str = ""
    pending: int | None = None
    quotas: tuple[Quota, ...] = ()
    groups: tuple[frozenset[str], ...] = ()

    @property
    def is_strict(self) -> bool:
        """Whether nobody passes the one at the head."""
        return self.strategy == "StrictFIFO"

    def own(self, flavor: str) -> int:
        """The GPUs of a flavor that nobody can take back from it."""
        return sum(one.nominal for one in self.quotas if one.flavor == flavor)

    def can_give(self, workload: Workload) -> bool:
        """Whether its GPUs would do for a Workload if nothing else ran: always where borrowing has no limit."""
        for profile, wanted in by_profile(workload.gpus, workload.slices).items():
            own = [one for one in self.quotas if profile_of(one.resource) == profile]
            most = sum(one.nominal + (one.borrowing or 0) for one in own)
            if wanted > most and not any(one.borrowing is None for one in own):
                return False
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class TeamQueue:
    """A LocalQueue of the team's namespace."""

    name: str
    cluster_queue: str
    active: Condition | None = None
    stop_policy: str = "None"


@dataclass(frozen=True, slots=True)
class QuotaHolder:
    """GPUs of a flavor that a job in the same queue holds now, until `ends_at` where it has a time limit."""

    key: JobKey
    flavor: str
    gpus: int
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ahead:
    """Another job in the same line; `fits` False means that the queue can never give it what it asks for."""

    key: JobKey
    priority: int = 0
    fits: bool | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A place in the line of a ClusterQueue, 0 being the head; `length` is None when only a part was read.

    `ahead` are those before it that explain something, in their order: the head, and what never fits.
    """

    position: int
    length: int | None = None
    ahead: tuple[Ahead, ...] = ()

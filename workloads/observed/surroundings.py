"""What the portal itself knows around a job: allocations, approvals, the cluster, and who reads. Pure."""

from dataclasses import dataclass
from datetime import datetime

from fleet.maintenance import Maintenance
from workloads.observed.work import JobKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """What the team was granted of a flavor, from when and until when."""

    flavor: str
    gpus: int
    begins: datetime | None = None
    ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request of the team for more GPUs that waits: `who` has to answer it, as their names or their role.

    `in_all` are those of all that wait for the same kind in the same namespace.
    """

    number: int
    gpus: int
    who: str
    since: datetime
    in_all: int


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """GPUs that are free now and open to this team on a flavor and cluster, in its namespace there."""

    cluster: str
    cluster_title: str
    flavor: str
    title: str
    gpus: int
    largest: int
    namespace: str = ""
    # Of slices their MIG profile.
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """When the portal made a job inactive, as its team held no more so many GPUs of a flavor that it used."""

    at: datetime
    flavor: str
    gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """The cluster as a whole; `priorities` are the names of those that its queues know, None where nobody knows.

    Where it `labels_jobs`, each new job that names no queue is put into that of its namespace.
    """

    title: str = "The cluster"
    silent_since: datetime | None = None
    # The one that is planned, on, or over and the last that was.
    maintenance: Maintenance | None = None
    queues_down_since: datetime | None = None
    priorities: frozenset[str] | None = None
    labels_jobs: bool = False


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whose jobs the reader may see by name: those of these namespaces, or of all."""

    namespaces: frozenset[str] = frozenset()
    sees_all: bool = False

    def may_see(self, key: JobKey) -> bool:
        """Whether this job may be named to the reader."""
        return self.sees_all or key.namespace in self.namespaces

"""Everything that an explanation may look at, in one place. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workloads.estimating import History
from workloads.observed.pods import Event, Nodes, Pod
from workloads.observed.queues import (
    Line,
    Queue,
    QuotaHolder,
    TeamQueue,
)
from workloads.observed.surroundings import (
    Allocation,
    Cluster,
    Elsewhere,
    OpenRequest,
    Stop,
    Viewer,
)
from workloads.observed.work import Job, JobKey, Workload


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Everything that an explanation may look at.

    `parts` are the Jobs that the job made, such as those of a JobSet. `running` is what holds GPUs of the same queue.
    `jobs` finds a job by its uid (what a preemption names). `capacity` is what the cluster has or can add, by flavor.
    `titles` are what people call a flavor. `requests` are those for more GPUs in the same namespace that are not
    answered yet, by flavor. `stop` is set where the portal made the job inactive. At `leaves_at` the team's namespace
    leaves the cluster. `called` are the names that people gave to runs and notebooks, by the namespace and the name on
    the cluster. `latest_start` is by when it starts unless other work goes first. Where `is_queue_behind`, what the
    portal wants of the queue is not true on the cluster yet.
    """

    job: Job | None = None
    parts: tuple[Job, ...] = ()
    workload: Workload | None = None
    queue: Queue | None = None
    team_queue: TeamQueue | None = None
    line: Line | None = None
    running: tuple[QuotaHolder, ...] = ()
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()
    nodes: Nodes = field(default_factory=Nodes)
    capacity: Mapping[str, int] = field(default_factory=dict)
    allocations: tuple[Allocation, ...] = ()
    requests: Mapping[str, OpenRequest] = field(default_factory=dict)
    stop: Stop | None = None
    elsewhere: tuple[Elsewhere, ...] = ()
    jobs: Mapping[str, JobKey] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    cluster: Cluster = field(default_factory=Cluster)
    viewer: Viewer = field(default_factory=Viewer)
    history: History | None = None
    leaves_at: datetime | None = None
    latest_start: datetime | None = None
    is_queue_behind: bool = False
    called: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def title(self, flavor: str) -> str:
        """What people call a flavor."""
        return self.titles.get(flavor) or flavor or "GPU"

    def obtainable(self, flavor: str) -> int | None:
        """GPUs of a flavor that this cluster has or can add; None when that is not known."""
        if flavor in self.capacity:
            return self.capacity[flavor]
        found = [one.gpus for one in self.nodes if one.flavor == flavor]
        return sum(found) if found else None

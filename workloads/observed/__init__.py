"""What was observed about one job: facts, each with the moment from which it holds. Pure.

`None` and an empty collection mean "not known" unless a field says otherwise: an explanation never takes what was not
read for what is not there. Counts are whole GPUs, positions begin with 0 as Kueue's do, and times are aware.
"""

from workloads.observed.facts import Facts
from workloads.observed.pods import Event, Exit, Node, Nodes, Pod, Waiting
from workloads.observed.queues import (
    Ahead,
    Line,
    Queue,
    Quota,
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
from workloads.observed.work import (
    Check,
    Condition,
    Job,
    JobKey,
    PodSet,
    Slices,
    Workload,
    by_profile,
    slices_of,
)

__all__ = [
    "Ahead",
    "Allocation",
    "Check",
    "Cluster",
    "Condition",
    "Elsewhere",
    "Event",
    "Exit",
    "Facts",
    "Job",
    "JobKey",
    "Line",
    "Node",
    "Nodes",
    "OpenRequest",
    "Pod",
    "PodSet",
    "Queue",
    "Quota",
    "QuotaHolder",
    "Slices",
    "Stop",
    "TeamQueue",
    "Viewer",
    "Waiting",
    "Workload",
    "by_profile",
    "slices_of",
]

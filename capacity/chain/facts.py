"""What is known of each link of the chain, as it was read last. Pure.

A link that nobody could read is None: it stops nothing, and is said to be unknown.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The size of the pool's nodes: its name, and the vCPUs of one."""

    name: str
    vcpus: int


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota of the subscription in a region, in vCPUs: of a family of sizes, or of all of them.

    `promised` is what others will take that Azure does not count as used yet.
    """

    name: str
    region: str
    limit: int
    used: int
    seen_at: datetime
    promised: int = 0

    @property
    def taken(self) -> int:
        """What is used, and what others were promised."""
        return self.used + self.promised

    def machines_left(self, machine: Machine) -> int:
        """How many more of a size fit."""
        return max(0, self.limit - self.taken) // machine.vcpus


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A node pool: `maximum` is its autoscaler's, and None for a pool that keeps its nodes."""

    name: str
    nodes: int
    maximum: int | None
    seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """Machines of a capacity reservation that a pool may take: reserved and paid, and of them in use."""

    name: str
    machines: int
    used: int
    seen_at: datetime

    @property
    def unused(self) -> int:
        """Machines that are paid and stand idle: starting one takes no quota."""
        return max(0, self.machines - self.used)


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """GPUs on the nodes that stand: ready, and cordoned or not ready."""

    ready: int
    cordoned: int
    seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class Promised:
    """GPUs that were granted to all teams together, of those that can be had."""

    granted: int
    obtainable: int


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A team's ClusterQueue, in GPUs: guaranteed, what it may borrow beside that, what runs in it, and what the other
    queues of its cohort leave idle now. One that is stopped, or of which Kueue says that it is not active, admits
    nothing."""

    name: str
    nominal: int
    borrowable: int
    used: int
    idle_elsewhere: int
    seen_at: datetime
    admits: bool = True


@dataclass(frozen=True, kw_only=True)
class ResourceQuota:
    """The namespace's quota of GPUs, in `requests.nvidia.com/gpu` or the resource of a MIG slice."""

    hard: int
    used: int
    seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that is known about a kind of GPU on a cluster, and about one team there where one is looked at.

    GPUs are counted as the flavor does: of one that is a MIG profile they are slices. `busy` are those that run for
    anybody.
    """

    product: str
    gpus_per_node: int
    nodes: Nodes
    promised: Promised
    busy: int = 0
    machine: Machine | None = None
    family: Quota | None = None
    regional: Quota | None = None
    pool: Pool | None = None
    reserved: Reserved | None = None
    queue: Queue | None = None
    namespace: ResourceQuota | None = None

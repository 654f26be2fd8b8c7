"""What is asked of a namespace's queue already: GPUs in use, and what waits for more of them. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from provisioning.desired.priorities import PRIORITIES
from workloads.estimating import Estimate, History, history_of
from workloads.listing import line_in
from workloads.observed import Queue, QuotaHolder, Workload, by_profile
from workloads.reading.queues import (
    promised_by_volcano,
    quota_holders_of,
    sizes_held_in,
)
from workloads.reading.values import Object
from workloads.reading.waits import waits_of
from workloads.reading.work import workload_of
from workloads.reasons.messages import waits_for as flavors_waited_for
from workloads.reasons.waiting import is_in_line
from workloads.runs.planning.lending import Cell

POD = "Pod"


@dataclass(frozen=True, kw_only=True)
class QueueDemand:
    """GPUs of a flavor that Workloads hold in a namespace, or have been promised, how many wait for such GPUs,
    and an estimate.

    `below` are those of the GPUs held that Kueue takes from work of a lower priority, of which `lost` are pods that
    nothing makes anew, such as notebooks. `priorities` are those of what waits, where that can take GPUs away. `sizes`
    are the CPUs and GiB of memory that Workloads hold, by flavor and resource. `starts_by` is by when they start, in
    words; empty where nobody can say.
    """

    used: int
    waiting: int
    estimate: Estimate | None
    below: int = 0
    lost: int = 0
    priorities: tuple[int, ...] = ()
    sizes: Mapping[Cell, int] = field(default_factory=dict)
    starts_by: str = ""

    def going_first(self, priority: int) -> int:
        """How many of what waits could take the GPUs of work with this priority."""
        return sum(one > priority for one in self.priorities)


@dataclass(frozen=True, kw_only=True)
class NamespaceWork:
    """The copies of a namespace's Workloads and Jobs, and of its queue; all that stand in it are its own.

    `profiles` are the MIG profiles of its flavors, empty for whole GPUs.
    """

    namespace: str
    workloads: Sequence[Object]
    jobs: Sequence[Object]
    queue: Queue | None
    profiles: Mapping[str, str]
    has_volcano: bool

    @property
    def takes_away(self) -> bool:
        """Whether it takes GPUs from a lower priority: Volcano does not for pods that preempt nobody, as a team's."""
        return not self.has_volcano

    @cached_property
    def history(self) -> History:
        """How long its jobs waited."""
        return history_of(
            waits_of(self.workloads),
            source=f"the jobs of {self.namespace} that the cluster still shows",
        )

    @cached_property
    def line(self) -> Sequence[Workload]:
        """Who waits in its queue, in order."""
        found = line_in(map(workload_of, self.workloads))
        return [one for one in found if is_in_line(one, self.queue)]

    @cached_property
    def held(self) -> Mapping[str, int]:
        """The GPUs that Workloads hold, by flavor."""
        found = Counter[str]()
        for one in quota_holders_of(self.workloads):
            found[one.flavor] += one.gpus
        return found

    @cached_property
    def promised(self) -> Mapping[str, int]:
        """The GPUs that Volcano has promised, by profile."""
        return promised_by_volcano(self.workloads) if self.has_volcano else {}

    @cached_property
    def sizes(self) -> Mapping[Cell, int]:
        """The CPUs and GiB of memory that Workloads hold, by flavor and resource."""
        return sizes_held_in(self.workloads)

    def before(self, flavor: str) -> list[Workload]:
        """Those in the line that count for whoever wants GPUs of this flavor."""
        profile = self.profiles.get(flavor, "")
        return [
            one for one in self.line if _is_before(one, flavor, profile, self.queue)
        ]

    def below(self, flavor: str, priority: str) -> Iterator[QuotaHolder]:
        """What Kueue may stop for work of this priority, of what holds GPUs of a flavor; nothing for work of none."""
        if priority and self.takes_away:
            value = value_of(priority)
            lower = (one for one in self.workloads if workload_of(one).priority < value)
            yield from (one for one in quota_holders_of(lower) if one.flavor == flavor)


def value_of(priority: str) -> int:
    """The number by which Kueue orders a priority; 0 for none."""
    value, _ = PRIORITIES.get(priority, (0, ""))
    return value


def demand_for(
    work: NamespaceWork, flavor: str, gpus: int, *, priority: str = ""
) -> QueueDemand:
    """What so many GPUs of a flavor would find in a namespace."""
    before, below = work.before(flavor), [*work.below(flavor, priority)]
    profile = work.profiles.get(flavor, "")
    return QueueDemand(
        below=sum(one.gpus for one in below),
        lost=sum(one.key.kind == POD for one in below),
        used=work.held.get(flavor, 0) + work.promised.get(profile, 0),
        waiting=len(before),
        priorities=tuple(one.priority for one in before) if work.takes_away else (),
        estimate=work.history.estimate(gpus, waited=timedelta(0)),
        sizes=work.sizes,
    )


def _is_before(one: Workload, flavor: str, profile: str, queue: Queue | None) -> bool:
    """Whether one that waits counts for whoever wants GPUs of this flavor, which are whole or slices of a profile.

    One queue holds all of a team's flavors. The portal makes each of them BestEffortFIFO, by which Kueue passes whoever
    does not fit: what waits for H100 keeps no A100 from anybody. A StrictFIFO queue blocks across flavors, and in one
    that somebody has made so, everything counts. What has not been looked at yet may be of the same kind.
    """
    if queue is not None and queue.is_strict:
        return True
    if profile not in by_profile(one.gpus, one.slices):
        return False
    condition = one.lacks("QuotaReserved")
    waited_for = flavors_waited_for(condition.message) if condition else frozenset()
    return not waited_for or flavor in waited_for

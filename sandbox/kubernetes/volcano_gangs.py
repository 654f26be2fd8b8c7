"""A group of pods as Volcano's scheduler sees it: what its pods do, whether it is ready, and how that is said. Pure.

After pkg/scheduler/api/job_info.go (FitError, IsReady, CheckTaskReady, CheckTaskValid), unschedule_info.go,
plugins/gang/gang.go (OnSessionClose), framework/session.go (getPodGroupPhase) and cache/cache.go
(RecordJobStatusEvent) of volcano-sh/volcano 1.15.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.controllers_pods import phase_of
from sandbox.kubernetes.store import Obj
from sandbox.kubernetes.volcano_capacity import Amounts, amounts_of, request_of, total
from sandbox.kubernetes.volcano_children import TASK

PENDING, BOUND, RUNNING, SUCCEEDED, FAILED = (
    "Pending",
    "Bound",
    "Running",
    "Succeeded",
    "Failed",
)
READY = frozenset({BOUND, RUNNING, SUCCEEDED})
HOLDING = frozenset({BOUND, RUNNING})
ENDED = frozenset({SUCCEEDED, FAILED})
INQUEUE, UNKNOWN, COMPLETED = "Inqueue", "Unknown", "Completed"
SCHEDULABLE, UNSCHEDULABLE, SCHEDULED = "Schedulable", "Unschedulable", "Scheduled"
NOT_ENOUGH = "NotEnoughResources"
IS_READY = "tasks in gang are ready to be scheduled"
ALL_UNAVAILABLE = "all nodes are unavailable"
NOT_READY, GROUP_READY = "pod group is not ready", "pod group is ready"


@dataclass
class Gang:
    """One group with its pods while the scheduler looks at it."""

    group: Obj
    pods: list[Obj]
    priority: int = 0
    # The nodes that pods could go to if all went, and why there is none for a pod.
    possible: dict[str, str] = field(default_factory=dict)
    misfits: dict[str, str] = field(default_factory=dict)

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return str(self.group["spec"].get("queue") or "")

    @property
    def phase(self) -> str:
        """Its phase as it was stored; one that nobody looked at yet waits."""
        return str(part(dict(self.group), "status").get("phase") or PENDING)

    @property
    def least(self) -> int:
        """How many of its pods have to run at the least."""
        return int(self.group["spec"].get("minMember", 0))

    @property
    def order(self) -> tuple[int, bool, str, str]:
        """Its place among the groups of its queue: by priority, then those that lack pods, then by age."""
        metadata = self.group["metadata"]
        return (
            -self.priority,
            self.is_ready(),
            str(metadata["creationTimestamp"]),
            str(metadata["uid"]),
        )

    def of(self, statuses: Iterable[str]) -> list[Obj]:
        """Its pods in some statuses."""
        wanted = set(statuses)
        return [pod for pod in self.pods if status_of(pod) in wanted]

    def is_ready(self, more: Iterable[Obj] = ()) -> bool:
        """Whether as many of its pods have a node as it needs, of each task as well, if some more had one."""
        there = [*self.of(READY), *more]
        return len(there) >= self.least and self._has_each(there)

    def is_whole(self) -> bool:
        """Whether it has as many pods as it needs, with or without a node."""
        there = self.of({PENDING, *READY})
        return len(there) >= self.least and self._has_each(there)

    def _has_each(self, pods: Iterable[Obj]) -> bool:
        tasks = part(dict(self.group["spec"]), "minTaskMember")
        if self.least < sum(int(one) for one in tasks.values()):
            return True
        counted = Counter(_task(pod) for pod in pods)
        return all(counted[name] >= int(least) for name, least in tasks.items())

    def least_resources(self) -> Amounts:
        """What its pods ask for at the least, as the group says it; empty where it does not."""
        return amounts_of(part(dict(self.group["spec"]), "minResources"))

    def held(self) -> Amounts:
        """What its pods take of nodes."""
        return total(request_of(dict(pod)) for pod in self.of(HOLDING))

    def next_phase(self) -> str:
        """The phase after a look at it."""
        bound, ended = len(self.of(HOLDING)), len(self.of(ENDED))
        if self.of({RUNNING}) and not self._is_counted_ready():
            return UNKNOWN
        if bound + ended >= self.least:
            return COMPLETED if bound == 0 else RUNNING
        return self.phase if self.phase == INQUEUE else PENDING

    def _is_counted_ready(self) -> bool:
        return len(self.of(READY)) >= self.least

    def condition(self) -> tuple[str, str, str]:
        """Type, reason and message of the condition that a look at it leaves; empty ones for a group without pods."""
        if not self.pods:
            return "", "", ""
        if self._is_counted_ready():
            return SCHEDULED, IS_READY, ""
        short = self.least - len(self.of(READY)) - len(self.possible)
        return UNSCHEDULABLE, NOT_ENOUGH, self._said(short)

    def event(self) -> tuple[str, str]:
        """Reason and message of the event that tells of it."""
        if self.next_phase() in {UNKNOWN, PENDING, INQUEUE}:
            return UNSCHEDULABLE, self._said(len(self.of({PENDING})))
        return SCHEDULED, GROUP_READY

    def _said(self, number: int) -> str:
        counted = Counter(status_of(pod) for pod in self.pods)
        all_ = _histogram({**counted, "minAvailable": self.least})
        word = GROUP_READY if self._is_counted_ready() else NOT_READY
        said = f"{number}/{len(self.pods)} tasks in gang unschedulable: {word}, {all_}"
        waiting = self.of({PENDING})
        if waiting:
            found = Counter(
                SCHEDULABLE if _name(pod) in self.possible else UNSCHEDULABLE
                for pod in waiting
            )
            said += f"; {PENDING}: {_histogram(found)}"
        if self.misfits:
            name, why = next(iter(self.misfits.items()))
            said += f". Origin reason is {name}: {why}"
        return said

    def pod_reason(self, pod: Obj) -> tuple[str, str]:
        """Reason and message of why a pod has no node, also where nobody tried to find one."""
        name, metadata = _name(pod), pod["metadata"]
        if node := self.possible.get(name):
            where = f"{metadata['namespace']}/{name}"
            said = f"Pod {where} can possibly be assigned to {node}, once minAvailable is satisfied"
            return SCHEDULABLE, said
        return UNSCHEDULABLE, self.misfits.get(name, ALL_UNAVAILABLE)


def status_of(pod: Obj) -> str:
    """What a pod does, in the scheduler's words."""
    phase = phase_of(pod)
    if phase == PENDING and pod["spec"].get("nodeName"):
        return BOUND
    return phase


def without_node(why: str) -> str:
    """Why no node takes a pod, in Volcano's words for what Kubernetes' scheduler found."""
    found, _, rest = why.partition(" nodes are available: ")
    if not rest:
        return "0/0 nodes are unavailable"
    return f"{found} nodes are unavailable: {rest.partition('. ')[0]}."


def _histogram(counted: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {word}" for word, count in counted.items()))


def _name(pod: Obj) -> str:
    return str(pod["metadata"]["name"])


def _task(pod: Obj) -> str:
    return str(part(dict(pod["metadata"]), "annotations").get(TASK, ""))


def conditions_of(group: Obj) -> list[dict[str, Any]]:
    """The conditions of a group."""
    return items(part(dict(group), "status"), "conditions")

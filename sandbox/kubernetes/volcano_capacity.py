"""What a Volcano queue may hold, holds and is owed, as its capacity plugin counts it. Pure.

After pkg/scheduler/plugins/capacity/capacity.go of volcano-sh/volcano 1.15 (buildQueueAttrs, jobEnqueueable,
queueAllocatable, PreemptiveFn, ReclaimableFn), for queues side by side: enableHierarchy is false unless a configuration
says otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes.causes import part
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import parse

# Amounts in billionths, by the name of a resource.
Amounts = dict[str, int]
PODS, BINARY = "pods", "1Ki"
# What a queue counts besides: these are no resources of nodes.
COUNTED_ONLY = ("requests.", "limits.", "count/")
QUOTA = "queue resource quota insufficient"


def amounts_of(quantities: Mapping[str, Any]) -> Amounts:
    """Amounts of a list of resources."""
    return {name: parse(amount).nanos for name, amount in quantities.items()}


def request_of(pod: Mapping[str, Any]) -> Amounts:
    """What a pod takes of a node and of its queue; it is one pod."""
    return {
        **amounts_of(pod_amounts(part(pod, "spec"), "requests")),
        PODS: parse(1).nanos,
    }


def total(many: Iterable[Amounts]) -> Amounts:
    """The sum."""
    found: Amounts = {}
    for one in many:
        for name, amount in one.items():
            found[name] = found.get(name, 0) + amount
    return found


@dataclass
class Share:
    """One queue while the scheduler looks at it."""

    name: str
    is_open: bool
    reclaimable: bool
    # Nothing above these, nothing at all of what is not there.
    limit: Amounts
    deserved: Amounts
    priority: int = 0
    allocated: Amounts = field(default_factory=dict)
    # What its groups that may have pods are to have at the least, and do not have yet.
    inqueue: Amounts = field(default_factory=dict)
    # What its groups have beyond their least.
    elastic: Amounts = field(default_factory=dict)

    def lacking(self, least: Amounts) -> list[str]:
        """The resources that keep a group from this queue, which asks for so much at the least."""
        counted = {
            name: amount
            for name, amount in least.items()
            if not name.startswith(COUNTED_ONLY)
        }
        return [
            name
            for name, amount in sorted(counted.items(), key=_order)
            if amount and self._would_hold(name, amount) > self.limit.get(name, 0)
        ]

    def _would_hold(self, name: str, amount: int) -> int:
        return (
            amount
            + self.allocated.get(name, 0)
            + self.inqueue.get(name, 0)
            - self.elastic.get(name, 0)
        )

    def has_room(self, request: Amounts) -> bool:
        """Whether the queue may hold a pod as well."""
        return all(
            self.allocated.get(name, 0) + amount <= self.limit.get(name, 0)
            for name, amount in request.items()
            if amount
        )

    def is_owed(self, request: Amounts) -> bool:
        """Whether the queue may take back room for a pod: it stays within what it deserves in a resource of it."""
        return any(
            self.allocated.get(name, 0) + amount <= self.deserved[name]
            for name, amount in request.items()
            if amount and name in self.deserved
        )

    def is_over(self, request: Amounts) -> bool:
        """Whether the queue holds more than it deserves of what a pod asks for; its deserts say of what."""
        return any(
            self.allocated.get(name, 0) > self.deserved[name]
            for name, amount in request.items()
            if amount and name in self.deserved
        )

    @property
    def fraction(self) -> float:
        """How much of what it deserves the queue holds, by the resource of which it holds the most."""
        held = (
            (self.allocated.get(name, 0), amount)
            for name, amount in self.deserved.items()
        )
        return max(
            (mine / amount if amount else float(mine > 0) for mine, amount in held),
            default=0.0,
        )

    def take(self, request: Amounts, times: int = 1) -> None:
        """Count a pod in, or with -1 out."""
        for name, amount in request.items():
            self.allocated[name] = self.allocated.get(name, 0) + times * amount


def share_of(queue: Mapping[str, Any], there: Amounts, guaranteed: Amounts) -> Share:
    """A queue of a cluster that has so much in all, of which so much is guaranteed to queues."""
    spec = part(queue, "spec")
    own = amounts_of(part(part(spec, "guarantee"), "resource"))
    limit = {
        name: amount - guaranteed.get(name, 0) + own.get(name, 0)
        for name, amount in there.items()
    }
    for name, amount in amounts_of(part(spec, "capability")).items():
        limit[name] = min(amount, limit.get(name, 0))
    return Share(
        name=str(part(queue, "metadata")["name"]),
        is_open=part(queue, "status").get("state") == "Open",
        reclaimable=spec.get("reclaimable") is not False,
        limit=limit,
        # A processor and memory that nobody names are deserved by nobody.
        deserved={"cpu": 0, "memory": 0, **amounts_of(part(spec, "deserved"))},
        priority=int(spec.get("priority") or 0),
    )


def insufficient(names: Iterable[str]) -> str:
    """How the scheduler says that a queue's quota does not do (FormatResourceNames in plugins/util/util.go)."""
    said = ", ".join(f"insufficient {name}" for name in names)
    return f"{QUOTA}: {said}" if said else QUOTA


def _order(entry: tuple[str, int]) -> tuple[int, str]:
    """The processor and memory first, as Volcano compares them."""
    return (
        ("cpu", "memory").index(entry[0]) if entry[0] in {"cpu", "memory"} else 2
    ), entry[0]

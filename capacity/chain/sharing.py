"""Nodes that take from the same quotas of Azure, and what those of them that are still to come take. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from capacity.metering.keys import QuotaKey


@dataclass(frozen=True)
class OnNodes:
    """How a kind of GPU is on nodes: how many one node has, and how many are cordoned now."""

    gpus_per_node: int
    cordoned: int


@dataclass(frozen=True, kw_only=True)
class GrowingNodes:
    """The nodes of a pool, with every kind of GPU that is on them; several are where nodes have MIG profiles.

    `standing` are the nodes that take no more quota: those that stand, and those that are reserved and idle.
    """

    pool: int
    quotas: frozenset[QuotaKey]
    vcpus: int
    standing: int
    maximum: int
    kinds: Mapping[int, OnNodes]

    def vcpus_to_come(self, allocated: Mapping[int, int], *, standing: int | None = None) -> int:
        """vCPUs of the nodes that have to be added to carry so many GPUs, by the id of their kind.

        With `standing`, as if so many nodes took no more quota.
        """
        carrying = (
            -(-(allocated.get(kind, 0) + on.cordoned) // on.gpus_per_node) for kind, on in self.kinds.items()
        )
        nodes = min(max(carrying, default=0), self.maximum)
        return max(0, nodes - (self.standing if standing is None else standing)) * self.vcpus

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

    `standing` are the nodes that take no more quota: those that stand, and those that are reserved and idle. `to_come`
    are machines that are reserved for them and that Azure has not made yet: they take quota as a reservation.
    `carrying` are the kinds whose reserved machines carry all that is on these nodes.
    """

    pool: int
    quotas: frozenset[QuotaKey]
    vcpus: int
    standing: int
    maximum: int
    kinds: Mapping[int, OnNodes]
    carrying: frozenset[int] = frozenset()
    to_come: int = 0

    def vcpus_to_come(
        self, allocated: Mapping[int, int], *, standing: int | None = None
    ) -> int:
        """vCPUs of the nodes that have to be added to carry so many GPUs, by the id of their kind.

        With `standing`, as if so many nodes took no more quota, with those that are reserved for them.
        """
        carrying = (
            -(-(allocated.get(kind, 0) + on.cordoned) // on.gpus_per_node)
            for kind, on in self.kinds.items()
        )
        nodes = min(max(carrying, default=0), self.maximum)
        without = self.standing + self.to_come if standing is None else standing
        return max(0, nodes - without) * self.vcpus


def machines_left(vcpus: int, *, each: int, carried: int = 0, per_node: int = 0) -> int:
    """How many machines fit vCPUs of a quota, where nodes are made of them; below zero where too few are left.

    `carried` are vCPUs among these that GPUs of the same nodes will take, `per_node` for each: a machine that is
    reserved for the nodes carries GPUs in the place of one of them.
    """
    left = vcpus // each
    if not carried or each <= per_node:
        return left
    # A machine that is larger than the node whose place it takes needs the rest of its vCPUs beside it.
    return min(left, (vcpus - carried) // (each - per_node))

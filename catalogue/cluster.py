"""A cluster of its own, for what the present ones cannot take. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from allocations.schedule import Provisioner
from capacity.prices.shipped import VM_PRICES
from catalogue.offering import DOWN, PERSON, Gate, Offering, Region, Size, Spec, VmSize
from catalogue.reservation import machines


class ClusterSpec(Spec):
    """A new cluster for work that the present ones cannot take."""

    counted: ClassVar[str] = "nodes"
    region: Region
    vm_size: VmSize
    nodes: int = Field(title="GPU nodes", ge=1, le=1_000)
    purpose: Literal["training", "inference", "development"] = Field(
        default="training", title="For"
    )

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """By node and hour."""
        return machines(self.count, self.vm_size, prices)

    def title(self, number: str, *, product: str) -> str:
        """ "Cluster of 4 × Standard_NC24ads_A100_v4"."""
        return f"Cluster of {number} × {self.vm_size}"

    def thing(self) -> str:
        """There is one for a request."""
        return "the new cluster"

    def set_up(self, count: int, *, at: str) -> str:
        """And have the portal know it."""
        return f"Build {count} × {self.vm_size}{at} for {self.purpose}, then add it under Clusters."


CLUSTER = Offering(
    key="cluster",
    name="New cluster",
    line="A cluster of its own, for what the present ones cannot take.",
    good_reason="Scans of patients may share no nodes with other teams (rule DP-7). "
    "Own nodes on the present cluster were refused by audit.",
    spec=ClusterSpec,
    unit="node",
    gate=Gate.APPROVAL,
    reversible_minutes=None,
    provisioner=Provisioner.MANUAL,
    after=(PERSON, "Then it appears under Clusters.", DOWN),
    priced="node and hour",
    prices=VM_PRICES,
)

"""Azure capacity that is kept, and paid. Pure.

What is offered are on-demand reservations, which end on any day. Azure's block and future reservations cannot be given
up before their end, and are not offered.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from allocations.schedule import Provisioner
from capacity.prices.shipped import VM_GPUS, VM_PRICES
from catalogue.offering import DOWN, PERSON, Gate, Offering, Region, Size, Spec, VmSize
from ui.amounts import rate

# On-demand capacity reservations take neither the ND series nor NCads H100 v5 (Azure's documentation, February 2026):
# that counts where no sizes were read, and otherwise what Azure says of each. What else a subscription may reserve,
# platform leads offer by giving it a price on the catalogue page.
PRICES = {
    name: price
    for name, price in VM_PRICES.items()
    if not name.startswith("Standard_ND") and not name.endswith("_H100_v5")
}
SAME = "It costs the same whether it is used or not, until you let go of it."
RELEASED = "On its end date the portal releases it."


class ReservationSpec(Spec):
    """Azure capacity that is kept, and paid, whether it is used or not."""

    counted: ClassVar[str] = "instances"
    region: Region
    vm_size: VmSize
    instances: int = Field(title="Instances", ge=1, le=1_000)
    zone: Literal["", "1", "2", "3"] = Field(default="", title="Zone")
    nodes_for: str = Field(
        default="",
        title="Nodes for",
        pattern=r"^([a-z0-9-]{1,40}/[a-z0-9-]{1,40})?$",
        json_schema_extra={"list": "azure_flavors"},
    )

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """By instance and hour."""
        return machines(self.count, self.vm_size, prices)

    def place(self) -> dict[str, str]:
        """Where it is reserved, of which size, and for whose nodes."""
        return self.model_dump(
            mode="json", include={"region", "vm_size", "zone", "nodes_for"}
        )

    def gone_with_it(self) -> str:
        """What runs on it may find no machine the next time."""
        return (
            "; nodes that were made of it go, with what runs on them"
            if self.nodes_for
            else ""
        )

    def title(self, number: str, *, product: str) -> str:
        """ "2 × Standard_NC24ads_A100_v4 reserved"."""
        return f"{number} × {self.vm_size} reserved"

    def thing(self) -> str:
        """There is one for a request."""
        return "the capacity reservation"

    def set_up(self, count: int, *, at: str) -> str:
        """In the region that was asked for."""
        return f"Reserve {count} × {self.vm_size}{at} in Azure until the end date."


def machines(count: int, vm_size: str, prices: Mapping[str, Decimal]) -> Size:
    """So many machines of a size, by the hour, used or not; raises KeyError for one without a price."""
    each = prices[vm_size]
    return Size(
        count=count,
        gpus_each=VM_GPUS.get(vm_size, 0),
        usd_per_hour_each=each,
        formula=f"{count} × {vm_size} × {rate(each)} an hour, used or not",
    )


RESERVATION = Offering(
    key="reservation",
    name="Capacity reservation",
    line="Azure capacity that is kept for you, and paid.",
    good_reason="The final training begins on 4 January and cannot wait. "
    "In November Azure had none of these machines on four days.",
    spec=ReservationSpec,
    unit="instance",
    gate=Gate.APPROVAL,
    reversible_minutes=60,
    provisioner=Provisioner.AZURE,
    after=(
        "The portal reserves it in Azure within minutes, all of it or nothing.",
        SAME,
        RELEASED,
    ),
    after_by_person=(PERSON, SAME, DOWN),
    priced="instance and hour",
    may_begin_later=True,
    prices=PRICES,
    service=("Compute", "Virtual Machines"),
)

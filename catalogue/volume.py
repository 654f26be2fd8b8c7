"""Storage for datasets, beside the team's namespace. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from catalogue.offering import DOWN, NAME, ClusterName, Gate, Offering, Size, Spec
from ui.amounts import rate

HOURS_A_MONTH = 730
TINY = Decimal("0.00000001")
# USD per GiB and month of premium storage.
PRICES = {"ReadWriteOnce": Decimal("0.12"), "ReadWriteMany": Decimal("0.16")}


class VolumeSpec(Spec):
    """A volume for datasets beside the team's namespace."""

    counted: ClassVar[str] = "gib"
    cluster: ClusterName
    name: str = Field(title="Name", pattern=NAME)
    gib: int = Field(title="Size in GiB", ge=1, le=65_536)
    access: Literal["ReadWriteOnce", "ReadWriteMany"] = Field(
        default="ReadWriteMany", title="Access"
    )

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """By GiB and month of 730 hours."""
        monthly = prices[self.access]
        return Size(
            count=self.count,
            usd_per_hour_each=(monthly / HOURS_A_MONTH).quantize(TINY),
            formula=f"{self.count:,} GiB × {rate(monthly)} per GiB and month of {HOURS_A_MONTH} hours",
        )

    def title(self, number: str, *, product: str) -> str:
        """ "500 GiB volume corpus"."""
        return f"{number} GiB volume {self.name}"

    def thing(self) -> str:
        """By its name."""
        return f"the volume {self.name}"

    def gone_with_it(self) -> str:
        """Data."""
        return ", with everything on it"


VOLUME = Offering(
    key="volume",
    name="Dataset volume",
    line="Storage for datasets, beside the team’s namespace.",
    good_reason="The scans that all runs of the team read: 3 TiB now, half a TiB more each month. "
    "Copies for each run fill the old one.",
    spec=VolumeSpec,
    unit="GiB",
    gate=Gate.SELF_SERVICE,
    reversible_minutes=10,
    after=("The volume is made in the team’s namespace within seconds.", DOWN),
    priced="GiB and month",
    prices=PRICES,
    service=("Storage", "File Storage"),
)

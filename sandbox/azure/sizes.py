"""Sizes of virtual machines: what they have, where they are, and whether their capacity can be reserved.

From Azure's documentation and its `skus` API as of November 2026: on-demand reservations know the NC A100 v4, NCasT4_v3
and NVadsA10 v5 series, and neither ND nor NCads H100 v5.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

EASTUS, WESTEUROPE, WESTUS = "eastus", "westeurope", "westus"
TARGETED = ("Open", "Targeted")


@dataclass(frozen=True)
class Size:
    """One size; `usd` is its price an hour on Linux in eastus, `zones` by region, `closed` where it is restricted."""

    name: str
    family: str
    vcpus: int
    memory_gib: int
    gpus: int
    usd: str
    zones: Mapping[str, tuple[str, ...]]
    reservable_as: tuple[str, ...] = ()
    # By region: the zones that this subscription does not get, or none where it does not get the region.
    closed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


A100 = "StandardNCADSA100v4Family"
T4 = "Standard NCASv3_T4 Family"
A10 = "StandardNVADSA10v5Family"
H100_NVL = "StandardNCadsH100v5Family"
A100_ND = "standard NDAMSv4_A100Family"
A100_ND_40 = "Standard NDASv4_A100 Family"
H100_ND = "standardNDSH100v5Family"
DSV5 = "standardDSv5Family"

_A100_ZONES = {EASTUS: ("1", "2", "3"), WESTEUROPE: ("2",)}
_A100_CLOSED = {EASTUS: ("3",), WESTEUROPE: ()}
_T4_ZONES = {EASTUS: ("1", "2", "3"), WESTEUROPE: ("1", "2"), WESTUS: ()}
_A10_ZONES: dict[str, tuple[str, ...]] = {EASTUS: ("1", "2"), WESTUS: ()}
_ND_ZONES: dict[str, tuple[str, ...]] = {EASTUS: ("2",)}
_D_ZONES = {EASTUS: ("1", "2", "3"), WESTEUROPE: ("1", "2", "3"), WESTUS: ()}

SIZES = (
    Size(
        "Standard_NC24ads_A100_v4",
        A100,
        24,
        220,
        1,
        "3.673",
        _A100_ZONES,
        TARGETED,
        {EASTUS: ("3",)},
    ),
    Size(
        "Standard_NC48ads_A100_v4",
        A100,
        48,
        440,
        2,
        "7.346",
        _A100_ZONES,
        TARGETED,
        {EASTUS: ("3",)},
    ),
    Size(
        "Standard_NC96ads_A100_v4",
        A100,
        96,
        880,
        4,
        "14.692",
        _A100_ZONES,
        TARGETED,
        _A100_CLOSED,
    ),
    Size("Standard_NC4as_T4_v3", T4, 4, 28, 1, "0.526", _T4_ZONES, TARGETED),
    Size("Standard_NC8as_T4_v3", T4, 8, 56, 1, "0.752", _T4_ZONES, TARGETED),
    Size("Standard_NC16as_T4_v3", T4, 16, 110, 1, "1.204", _T4_ZONES, TARGETED),
    Size("Standard_NC64as_T4_v3", T4, 64, 440, 4, "4.352", _T4_ZONES, TARGETED),
    Size("Standard_NV36ads_A10_v5", A10, 36, 440, 1, "3.2", _A10_ZONES, ("Targeted",)),
    Size("Standard_NV72ads_A10_v5", A10, 72, 880, 2, "6.52", _A10_ZONES, ("Targeted",)),
    Size(
        "Standard_NC40ads_H100_v5", H100_NVL, 40, 320, 1, "6.98", {EASTUS: ("2", "3")}
    ),
    Size(
        "Standard_NC80adis_H100_v5", H100_NVL, 80, 640, 2, "13.96", {EASTUS: ("2", "3")}
    ),
    Size("Standard_ND96asr_v4", A100_ND_40, 96, 900, 8, "27.197", _ND_ZONES),
    Size("Standard_ND96amsr_A100_v4", A100_ND, 96, 1900, 8, "32.77", _ND_ZONES),
    Size(
        "Standard_ND96isr_H100_v5", H100_ND, 96, 1900, 8, "98.32", _ND_ZONES, ("Block",)
    ),
    Size("Standard_D2s_v5", DSV5, 2, 8, 0, "0.096", _D_ZONES, TARGETED),
    Size("Standard_D4s_v5", DSV5, 4, 16, 0, "0.192", _D_ZONES, TARGETED),
    Size("Standard_D16s_v5", DSV5, 16, 64, 0, "0.768", _D_ZONES, TARGETED),
)
BY_NAME = {size.name.lower(): size for size in SIZES}
TITLES = {
    "cores": "Total Regional vCPUs",
    "lowPriorityCores": "Total Regional Low-priority vCPUs",
    A100: "Standard NCADS_A100_v4 Family vCPUs",
    T4: "Standard NCASv3_T4 Family vCPUs",
    A10: "Standard NVADSA10v5 Family vCPUs",
    H100_NVL: "Standard NCadsH100v5 Family vCPUs",
    A100_ND: "Standard NDAMSv4_A100Family vCPUs",
    A100_ND_40: "Standard NDASv4_A100 Family vCPUs",
    H100_ND: "Standard NDSH100v5 Family vCPUs",
    DSV5: "Standard DSv5 Family vCPUs",
}


def find(name: str) -> Size | None:
    """Return the size of a name, whatever its capitals."""
    return BY_NAME.get(name.lower())

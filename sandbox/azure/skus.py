"""Which sizes there are where, and what they can."""

import re
from dataclasses import dataclass
from typing import Any

from sandbox.azure.errors import invalid
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.sizes import SIZES, Size

PATTERN = "/subscriptions/{subscription}/providers/Microsoft.Compute/skus"
VERSION = "2021-07-01"
LOCATION = re.compile(r"\s*location\s+eq\s+'([A-Za-z0-9]+)'\s*")


@dataclass(frozen=True)
class Skus:
    """The catalogue of sizes; like Azure, it says the same size once for each region."""

    def routes(self) -> list[Route]:
        """The operation of this module."""
        return [Route("GET", PATTERN, VERSION, self.many)]

    def many(self, call: Call) -> Answer:
        """Answer with all sizes, or with those of a region: the only filter there is."""
        asked = call.query.get("$filter", "")
        found = LOCATION.fullmatch(asked)
        if asked and not found:
            raise invalid(
                f"The filter '{asked}' is invalid.", "InvalidFilterInQueryString"
            )
        region = found[1].lower() if found else ""
        rows = [
            _shown(size, place)
            for size in SIZES
            for place in size.zones
            if not region or region == place
        ]
        disks = {
            "resourceType": "disks",
            "name": "Premium_LRS",
            "locations": [region or "eastus"],
        }
        return Answer(200, {"value": [disks, *rows]})


def _shown(size: Size, region: str) -> dict[str, Any]:
    zones = list(size.zones[region])
    return {
        "resourceType": "virtualMachines",
        "name": size.name,
        "tier": "Standard",
        "size": size.name.removeprefix("Standard_"),
        "family": size.family,
        "locations": [region],
        "locationInfo": [{"location": region, "zones": zones, "zoneDetails": []}],
        "capabilities": [
            {"name": name, "value": value}
            for name, value in _capabilities(size).items()
        ],
        "restrictions": _restrictions(size, region),
    }


def _capabilities(size: Size) -> dict[str, str]:
    said = {
        "vCPUs": str(size.vcpus),
        "MemoryGB": str(size.memory_gib),
        "LowPriorityCapable": "True",
        "AcceleratedNetworkingEnabled": "True",
        "PremiumIO": "True",
        "CapacityReservationSupported": str(bool(size.reservable_as)),
    }
    if size.gpus:
        said["GPUs"] = str(size.gpus)
    if size.reservable_as:
        said["SupportedCapacityReservationTypes"] = ",".join(size.reservable_as)
    return said


def _restrictions(size: Size, region: str) -> list[dict[str, Any]]:
    closed = size.closed.get(region)
    if closed is None:
        return []
    info: dict[str, Any] = {"locations": [region]} | (
        {"zones": list(closed)} if closed else {}
    )
    return [
        {
            "type": "Zone" if closed else "Location",
            "values": [region],
            "restrictionInfo": info,
            "reasonCode": "NotAvailableForSubscription",
        }
    ]

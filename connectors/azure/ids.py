"""Ids of Azure's resources: made, taken apart and compared. Capitals do not count in them.

https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
"""

import re
from dataclasses import dataclass

from connectors.errors import PermanentError

NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.()-]{0,88}[A-Za-z0-9_()-])?", re.ASCII)
WHOLE = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/(?P<provider>[^/]+)"
    r"/(?P<rest>[^/]+(?:/[^/]+)+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ResourceId:
    """An id in its parts: `kind` as in `Microsoft.Compute/capacityReservationGroups`, `names` one for each type."""

    subscription: str
    group: str
    kind: str
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the resource itself."""
        return self.names[-1]


def parsed(text: str) -> ResourceId | None:
    """Take an id apart; None for what is none of a resource in a resource group."""
    found = WHOLE.fullmatch(text)
    parts = found["rest"].split("/") if found else []
    if found is None or len(parts) % 2:
        return None
    kind = "/".join([found["provider"], *parts[::2]])
    return ResourceId(found["subscription"], found["group"], kind, tuple(parts[1::2]))


def same(one: str, other: str) -> bool:
    """Whether two ids name the same resource: Azure writes some of them in capitals."""
    return one.rstrip("/").lower() == other.rstrip("/").lower()


def check(**names: str) -> None:
    """Raise PermanentError(code="bad_name") for a name that Azure cannot bear; keywords say what each one names."""
    for what, name in names.items():
        if not NAME.fullmatch(name):
            raise PermanentError(
                f"The {what.replace('_', ' ')} has a name that Azure does not take: letters, digits, dots, hyphens and "
                "underscores alone.",
                code="bad_name",
            )

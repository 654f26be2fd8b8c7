"""Reading what resources have in common: names, locations, tags."""

import re
from typing import Any

from sandbox.azure.errors import ArmError, invalid

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
REGIONS = ("eastus", "westeurope", "westus")
MOST_TAGS = 50


def name_of(name: str, longest: int) -> str:
    """Return a name as it may be; raise ArmError 400 for one with quotes, slashes and such."""
    if not NAME.fullmatch(name) or len(name) > longest or name.endswith("."):
        raise invalid(f"The resource name '{name}' is invalid.", "InvalidResourceName")
    return name


def location_of(body: dict[str, Any]) -> str:
    """Return where a resource shall be, in one word; raise ArmError 400."""
    location = body.get("location")
    if not isinstance(location, str) or not location:
        raise invalid(
            "The location property is required for this definition.", "LocationRequired"
        )
    known = location.replace(" ", "").lower()
    if known not in REGIONS:
        message = (
            f"The provided location '{location}' is not available for resource type. List of available regions for "
            f"the resource type is '{','.join(REGIONS)}'."
        )
        raise invalid(message, "LocationNotAvailableForResourceType")
    return known


def tags_of(body: dict[str, Any]) -> dict[str, str]:
    """Return a resource's tags; raise ArmError 400."""
    tags = body.get("tags") or {}
    good = isinstance(tags, dict) and all(
        isinstance(value, str) for value in tags.values()
    )
    if not good or len(tags) > MOST_TAGS:
        raise invalid("The tags of the resource are invalid.", "InvalidTagName")
    return dict(tags)


def number_of(value: Any, name: str, *, least: int, most: int) -> int:
    """Return a whole number within bounds; raise ArmError 400."""
    if type(value) is not int or not least <= value <= most:
        raise ArmError(
            400, "InvalidParameter", f"The value of parameter {name} is invalid."
        )
    return value

"""Moments, counts, conditions and lists as they stand in any answer of Kubernetes. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from fleet.names import profile_of
from provisioning.desired.quantities import counted
from workloads.observed import Condition, Slices

Object = Mapping[str, Any]
EMPTY: Object = {}
# Where the first of several is looked for, what has no date comes behind all others.
LATEST = datetime.max.replace(tzinfo=UTC)
# What is read from JSON is a dict, which is seen at once: asking the abstract class takes ten times as long.
MAPPING = (dict, Mapping)


def part(found: object, *path: str) -> Object:
    """The mapping at this path; an empty one where anything on the way is absent or something else."""
    for name in path:
        if not isinstance(found, MAPPING):
            return EMPTY
        found = found.get(name)
    return found if found is not None and isinstance(found, MAPPING) else EMPTY


def items(found: object, *path: str) -> Sequence[Object]:
    """The mappings in the list at this path; what is no mapping is left out."""
    *way, last = path
    value = part(found, *way).get(last)
    # Most lists are absent, and asking what they are takes longer than to see that.
    if not value or not isinstance(value, (list, tuple)):
        return ()
    return [one for one in value if isinstance(one, MAPPING)]


def text(found: Object, name: str) -> str:
    """A field as text; empty where it is absent."""
    value = found.get(name)
    # Almost all that is read here, and as quick as it gets.
    if type(value) is str:
        return value
    return "" if value is None else str(value)


def namespaced_name(found: Object) -> tuple[str, str]:
    """The namespace and the name of an object."""
    meta = part(found, "metadata")
    return text(meta, "namespace"), text(meta, "name")


def uid_of(found: Object) -> str:
    """The uid of an object."""
    return text(part(found, "metadata"), "uid")


def moment(value: object) -> datetime | None:
    """A moment in UTC from RFC 3339; None for anything else."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is None or at.tzinfo is UTC:
            return at
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def whole(value: object) -> int:
    """A count as Kubernetes writes it, `2k` included; 0 for a fraction or nothing."""
    # As `text` does.
    if type(value) is int and value >= 0:
        return value
    return counted(value)


@lru_cache(maxsize=1_000)
def is_gpu(resource: str) -> bool:
    """Whether a resource counts GPUs or slices of one (MIG)."""
    domain, _, name = resource.rpartition("/")
    return bool(profile_of(resource)) or bool(domain and name.startswith("gpu"))


def gpus_in(amounts: Object) -> dict[str, int]:
    """The GPUs in a list of resources, by what they are: whole ones under "", slices under their MIG profile."""
    found: dict[str, int] = {}
    for name, amount in amounts.items():
        if is_gpu(str(name)) and (count := whole(amount)):
            profile = profile_of(str(name))
            found[profile] = found.get(profile, 0) + count
    return found


def gpus_by_profile(spec: Object) -> dict[str, int]:
    """The GPUs that a pod asks for: of its containers together, or of its greediest init container if that is more."""
    found: dict[str, int] = {}
    for one in items(spec, "containers"):
        for profile, count in _asked(one).items():
            found[profile] = found.get(profile, 0) + count
    for one in items(spec, "initContainers"):
        for profile, count in _asked(one).items():
            found[profile] = max(found.get(profile, 0), count)
    return found


def gpus_of_pod(spec: Object) -> int:
    """The GPUs that a pod asks for, whole ones and slices."""
    return sum(gpus_by_profile(spec).values())


def gpus_of_pods_in(found: Object) -> int:
    """The GPUs that each pod of a template asks for, which the portal's own copies have counted already."""
    known = found.get("gpus")
    return (
        known
        if isinstance(known, int)
        else gpus_of_pod(part(found, "template", "spec"))
    )


def slices_of_pods_in(found: Object) -> Slices:
    """Those of them that are MIG slices."""
    if "gpus" in found:
        return slices_in(part(found, "slices"))
    return slices_in(gpus_by_profile(part(found, "template", "spec")))


def slices_in(gpus: Mapping[str, int]) -> Slices:
    """The slices among GPUs that were counted by profile."""
    return tuple(sorted((profile, count) for profile, count in gpus.items() if profile))


def _asked(container: Object) -> dict[str, int]:
    wanted = gpus_in(part(container, "resources", "requests"))
    # What is limited and not requested is requested as it is limited.
    return {**gpus_in(part(container, "resources", "limits")), **wanted}


def condition(found: Object) -> Condition:
    """One condition."""
    return Condition(
        text(found, "type"),
        found.get("status") == "True",
        text(found, "reason"),
        text(found, "message"),
        moment(found.get("lastTransitionTime")),
    )


def conditions(found: Object) -> dict[str, Condition]:
    """The conditions in an object's status, by type; the last of a type counts."""
    return {
        one.kind: one for one in map(condition, items(found, "status", "conditions"))
    }

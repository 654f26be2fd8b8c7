"""What a pod needs in all: sums over its containers as the scheduler, quotas and limits count them."""

from typing import Any, Literal

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.quantities import add, largest

Side = Literal["requests", "limits"]


def pod_amounts(spec: dict[str, Any], side: Side) -> dict[str, str]:
    """Requests or limits of a pod spec by resource: all containers, or the largest init container if that is more."""
    together: dict[str, str] = {}
    for container in items(spec, "containers"):
        for resource, amount in part(part(container, "resources"), side).items():
            together[resource] = add(together.get(resource), amount)
    first: dict[str, str] = {}
    for container in items(spec, "initContainers"):
        target = together if container.get("restartPolicy") == "Always" else first
        for resource, amount in part(part(container, "resources"), side).items():
            before = target.get(resource)
            target[resource] = (
                add(before, amount) if target is together else largest(before, amount)
            )
    total = {
        name: largest(together.get(name), first.get(name))
        for name in {**together, **first}
    }
    for resource, amount in part(spec, "overhead").items():
        if side == "requests" or resource in total:
            total[resource] = add(total.get(resource), amount)
    return total

"""What is wrong with Volcano's jobs, queues and groups by their definitions."""

from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    invalid_value,
    items,
    part,
    required,
    unsupported,
)

EVENTS = (
    *(
        "*",
        "PodPending",
        "PodRunning",
        "PodFailed",
        "PodEvicted",
        "Unknown",
        "TaskCompleted",
        "OutOfSync",
    ),
    *("CommandIssued", "JobUpdated", "TaskFailed"),
)
MODES, STRATEGIES = ("hard", "soft"), ("fifo", "traverse")
TOPOLOGIES = ("none", "best-effort", "restricted", "single-numa-node")
STATES = ("Open", "Closed", "Closing", "Unknown")
PHASES = ("Pending", "Running", "Unknown", "Inqueue", "Completed")
MOST_WEIGHT = 65535
Object = dict[str, Any]


def validate_job(obj: Object) -> list[Cause]:
    """Causes for the spec of a job."""
    spec = part(obj, "spec")
    whole = ("maxRetry", "minAvailable", "ttlSecondsAfterFinished")
    found = [*_least(spec, "spec", whole), *_least(spec, "spec", ("minSuccess",), 1)]
    found += [*_policies(spec, "spec"), *_network(spec, "spec")]
    for index, task in enumerate(items(spec, "tasks")):
        path = f"spec.tasks[{index}]"
        found += _least(task, path, ("maxRetry", "minAvailable", "replicas"))
        found += [
            *_enum(task, path, "topologyPolicy", TOPOLOGIES),
            *_policies(task, path),
        ]
        pod = part(part(task, "template"), "spec")
        found += (
            [required(f"{path}.template.spec.containers")]
            if pod and "containers" not in pod
            else []
        )
    found += [
        required(f"spec.volumes[{index}].mountPath")
        for index, volume in enumerate(items(spec, "volumes"))
        if "mountPath" not in volume
    ]
    return found


def validate_queue(obj: Object) -> list[Cause]:
    """Causes for a queue."""
    spec = part(obj, "spec")
    found = [
        *_least(spec, "spec", ("weight",), 1),
        *_least(spec, "spec", ("priority",)),
    ]
    weight = spec.get("weight")
    if isinstance(weight, int) and weight > MOST_WEIGHT:
        why = f"spec.weight in body should be less than or equal to {MOST_WEIGHT}"
        found.append(invalid_value("spec.weight", weight, why))
    found += _enum(spec, "spec", "dequeueStrategy", STRATEGIES)
    return [*found, *_enum(part(obj, "status"), "status", "state", STATES)]


def validate_group(obj: Object) -> list[Cause]:
    """Causes for a group of pods."""
    spec = part(obj, "spec")
    found = [*_least(spec, "spec", ("minMember",)), *_network(spec, "spec")]
    return [*found, *_enum(part(obj, "status"), "status", "phase", PHASES)]


def _least(
    owner: Object, path: str, names: tuple[str, ...], least: int = 0
) -> Iterator[Cause]:
    for name in names:
        value = owner.get(name)
        if isinstance(value, int) and value < least:
            why = f"{path}.{name} in body should be greater than or equal to {least}"
            yield invalid_value(f"{path}.{name}", value, why)


def _enum(
    owner: Object, path: str, name: str, allowed: tuple[str, ...]
) -> Iterator[Cause]:
    if name in owner and owner[name] not in allowed:
        yield unsupported(f"{path}.{name}", owner[name], allowed)


def _network(owner: Object, path: str) -> Iterator[Cause]:
    topology = part(owner, "networkTopology")
    yield from _enum(topology, f"{path}.networkTopology", "mode", MODES)
    yield from _least(topology, f"{path}.networkTopology", ("highestTierAllowed",))


def _policies(owner: Object, path: str) -> Iterator[Cause]:
    for index, policy in enumerate(items(owner, "policies")):
        where = f"{path}.policies[{index}]"
        yield from _enum(policy, where, "event", EVENTS)
        for place, event in enumerate(policy.get("events") or ()):
            if event not in EVENTS:
                yield unsupported(f"{where}.events[{place}]", event, EVENTS)

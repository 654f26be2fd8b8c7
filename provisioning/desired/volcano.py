"""Volcano's Queue of a tenancy: what its jobs may have together, by resource. Pure.

Volcano 1.15, scheduling.volcano.sh/v1beta1, with the `capacity` plugin of its scheduler: `capability` is what a queue
may have at most, `deserved` what is its own. A resource that `capability` does not name has no limit, and so have CPU
and memory of 0 (pkg/scheduler/plugins/capacity): a queue of nothing has the least of both.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from provisioning.desired.objects import Manifest, named_after
from provisioning.desired.quantities import CPU, MEMORY, count, gibibytes
from provisioning.desired.spec import FlavorQuota, TenancySpec

SCHEDULING = "scheduling.volcano.sh/v1beta1"
BATCH = "batch.volcano.sh/v1alpha1"
QUEUE, POD_GROUP, JOB = (SCHEDULING, "Queue"), (SCHEDULING, "PodGroup"), (BATCH, "Job")
# The least that is no 0.
LEAST = {CPU: "1m", MEMORY: "1"}


def queue(spec: TenancySpec) -> Manifest:
    """The tenancy's GPUs with the CPUs and memory that go with them, and what every namespace has of both.

    Its name is the namespace's, which jobs there have to name (deploy/kubernetes/volcano-guards.yaml).
    """
    return named_after(
        spec,
        *QUEUE,
        spec={
            "weight": spec.weight,
            "reclaimable": True,
            "deserved": _amounts(spec, [(each, each.gpus) for each in spec.flavors]),
            "capability": _amounts(
                spec, [(each, each.gpus + each.borrow) for each in spec.flavors]
            ),
        },
    )


def stopped(found: Mapping[str, Any], *, runs_on: bool) -> Manifest:
    """A Queue of nothing, in which nothing starts; where its work `runs_on`, nobody takes it back.

    It stays open: Volcano closes a queue on a command alone, and would refuse jobs in it with another message.
    """
    nothing = {name: LEAST.get(name, "0") for name in found["spec"]["capability"]}
    spec = {
        **found["spec"],
        "reclaimable": not runs_on,
        "deserved": nothing,
        "capability": dict(nothing),
    }
    return {**found, "spec": spec}


def _amounts(
    spec: TenancySpec, gpus: Iterable[tuple[FlavorQuota, int]]
) -> dict[str, str]:
    cpu, memory = spec.base_cpu, spec.base_memory_gib
    found = dict.fromkeys(spec.resources, 0)
    for flavor, number in gpus:
        found[flavor.resource] += number
        cpu += number * flavor.cpu_per_gpu
        memory += number * flavor.memory_gib_per_gpu
    return {
        CPU: count(cpu) if cpu else LEAST[CPU],
        MEMORY: gibibytes(memory) if memory else LEAST[MEMORY],
        **{resource: count(number) for resource, number in found.items()},
    }

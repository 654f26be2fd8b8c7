"""From a tenancy's spec to its Kubernetes objects: dicts, never templates. Pure.

Kubernetes 1.36, and Kueue v1beta2 or Volcano v1beta1. What each object is stands in the module of its subject.
"""

from collections.abc import Iterable

from provisioning.desired import (
    dashboard,
    limits,
    network,
    queues,
    rights,
    volcano,
    volumes,
)
from provisioning.desired.objects import (
    DOMAIN,
    MANAGED_BY,
    TENANCY_LABEL,
    Manifest,
    labels,
)
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.quantities import count, gibibytes
from provisioning.desired.queues import KUEUE
from provisioning.desired.rights import TEAM_ROLE
from provisioning.desired.spec import CPU_FLAVOR, GPU, VOLCANO, TenancySpec
from provisioning.desired.spec import KUEUE as KUEUE_QUEUES
from provisioning.drift.adopting import laid_on
from provisioning.stages import as_left

__all__ = [
    "CPU_FLAVOR",
    "DOMAIN",
    "GPU",
    "KUEUE",
    "MANAGED_BY",
    "NAMED",
    "PRIORITIES",
    "SOMETIMES",
    "TEAM_ROLE",
    "TENANCY_LABEL",
    "Manifest",
    "changed_objects",
    "count",
    "fleet_objects",
    "gibibytes",
    "labels",
    "sometimes",
    "tenancy_objects",
]


# Kinds of which a tenancy may want none. They are listed all the same: nothing else finds what is no longer wanted.
SOMETIMES = (("v1", "ConfigMap"),)
# Kinds of which the portal may read those of one name alone.
NAMED = {("v1", "ConfigMap"): dashboard.NAME}


def sometimes(spec: TenancySpec) -> tuple[tuple[str, str], ...]:
    """The kinds of which this tenancy may want none, and that its cluster serves."""
    return (*SOMETIMES, network.BY_NAME) if spec.by_name else SOMETIMES


def tenancy_objects(spec: TenancySpec) -> list[Manifest]:
    """Every object of a tenancy, in the order in which they can be created; how many there are depends on the spec."""
    objects = [
        rights.namespace(spec),
        limits.quota(spec),
        limits.priority_quota(spec),
        limits.limit_range(spec),
        rights.job_account(spec),
        rights.default_account(spec),
        rights.team_binding(spec),
        rights.run_binding(spec),
        *network.policies(spec),
        *volumes.claims(spec),
        *_queue(spec),
        *([dashboard.dashboard(spec)] if spec.dashboards else []),
    ]
    # Kueue stops by itself what runs in a queue that is drained; with Volcano the portal does, which this lets it.
    keeps = rights.RUNS if spec.has_volcano else ""
    return as_left(
        laid_on(objects, spec.adopted),
        stop=spec.stop_policy,
        access=spec.access,
        keeps_binding=keeps,
    )


def _queue(spec: TenancySpec) -> list[Manifest]:
    """The tenancy's line, as what keeps the cluster's queues has it."""
    return (
        [volcano.queue(spec)]
        if spec.has_volcano
        else [queues.cluster_queue(spec), queues.local_queue(spec)]
    )


def changed_objects(before: TenancySpec, after: TenancySpec) -> list[str]:
    """The objects that another spec gives other content, as "RoleBinding team-users", in the order of creation."""
    old = {(m["kind"], m["metadata"]["name"]): m for m in tenancy_objects(before)}
    new = {(m["kind"], m["metadata"]["name"]): m for m in tenancy_objects(after)}
    return [
        f"{kind} {name}"
        for (kind, name), manifest in new.items()
        if old.get((kind, name)) != manifest
    ]


def fleet_objects(
    *,
    cohort: str,
    flavors: Iterable[tuple[str, dict[str, str], list[dict[str, str]]]],
    queueing: str = KUEUE_QUEUES,
) -> list[Manifest]:
    """What every tenancy of a cluster shares: the cohort, ResourceFlavors (name, node labels, taints), priorities.

    With Volcano these are the priorities of pods alone.
    """
    if queueing == VOLCANO:
        return queues.pod_priorities()
    return [
        queues.cohort(cohort),
        queues.resource_flavor(CPU_FLAVOR),
        *(
            queues.resource_flavor(name, node_labels=marks, taints=taints)
            for name, marks, taints in flavors
        ),
        *queues.workload_priorities(),
        *queues.pod_priorities(),
    ]

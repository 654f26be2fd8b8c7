"""Kueue's objects: a tenancy's queue with its guarantees, and what all queues of a cluster share. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from provisioning.desired.objects import Manifest, named_after, placed, shared
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.quantities import CPU, MEMORY, count, gibibytes
from provisioning.desired.spec import CPU_FLAVOR, FlavorQuota, TenancySpec

KUEUE = "kueue.x-k8s.io/v1beta2"
SCHEDULING = "scheduling.k8s.io/v1"


def cluster_queue(spec: TenancySpec) -> Manifest:
    """The tenancy's GPUs and their line: nominal is what it holds, borrowing what others leave idle.

    One resource group, because a job's CPUs and GPUs must come from the same nodes: in a group Kueue takes all of a
    pod's resources from one flavor. So every flavor names every resource, with none of those it does not have.

    What it lent it takes back from whoever borrowed (`reclaimWithinCohort: Any`), the lowest priority first: the
    guarantee holds against every priority. `borrowWithinCohort` is left out on purpose: by it a team could preempt
    others while it borrows itself, so that nobody's guarantee would hold, and with fair sharing Kueue refuses to
    use it; the share that a team may borrow follows from its weight instead.
    """
    covered = [CPU, MEMORY, *spec.resources]
    flavors = [
        _quotas(
            CPU_FLAVOR,
            covered,
            cpu=(spec.base_cpu, 0),
            memory=(spec.base_memory_gib, 0),
        )
    ]
    flavors += [_flavor_quota(flavor, covered) for flavor in spec.flavors]
    return named_after(
        spec,
        KUEUE,
        "ClusterQueue",
        spec={
            "cohortName": spec.cohort,
            # null would select no namespace and {} every one; this selects the tenancy's own.
            "namespaceSelector": {
                "matchLabels": {"kubernetes.io/metadata.name": spec.namespace}
            },
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
            "preemption": {
                "withinClusterQueue": "LowerPriority",
                "reclaimWithinCohort": "Any",
            },
            "fairSharing": {"weight": count(spec.weight)},
            "stopPolicy": "None",
        },
    )


def local_queue(spec: TenancySpec) -> Manifest:
    """Where jobs are handed in; only a LocalQueue of this name takes jobs that name no queue."""
    return placed(
        spec, KUEUE, "LocalQueue", "default", spec={"clusterQueue": spec.namespace}
    )


def _flavor_quota(flavor: FlavorQuota, covered: Iterable[str]) -> dict[str, Any]:
    own, borrow = flavor.gpus, flavor.borrow
    return _quotas(
        flavor.name,
        covered,
        cpu=(own * flavor.cpu_per_gpu, borrow * flavor.cpu_per_gpu),
        memory=(own * flavor.memory_gib_per_gpu, borrow * flavor.memory_gib_per_gpu),
        gpus={flavor.resource: (own, borrow)},
    )


def _quotas(
    name: str,
    covered: Iterable[str],
    *,
    cpu: tuple[int, int],
    memory: tuple[int, int],
    gpus: Mapping[str, tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Each resource with what is guaranteed and what may be borrowed: without a limit, all of the cohort's would be."""
    amounts = {
        CPU: [count(number) for number in cpu],
        MEMORY: [gibibytes(number) for number in memory],
    }
    amounts |= {
        resource: [count(number) for number in pair]
        for resource, pair in (gpus or {}).items()
    }
    none = ["0", "0"]
    resources = [
        {"name": resource, "nominalQuota": own, "borrowingLimit": borrow}
        for resource, (own, borrow) in (
            (each, amounts.get(each, none)) for each in covered
        )
    ]
    return {"name": name, "resources": resources}


def cohort(name: str) -> Manifest:
    """The circle whose queues lend each other what they leave idle."""
    return shared(KUEUE, "Cohort", name)


def resource_flavor(
    name: str,
    *,
    node_labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
) -> Manifest:
    """A kind of node; jobs that are given it get the toleration of its taints from Kueue."""
    if node_labels is None:
        return shared(KUEUE, "ResourceFlavor", name)
    spec: dict[str, Any] = {"nodeLabels": dict(node_labels)}
    found = [dict(taint) for taint in taints]
    if found:
        spec |= {
            "nodeTaints": found,
            "tolerations": [_toleration(taint) for taint in found],
        }
    return shared(KUEUE, "ResourceFlavor", name, spec=spec)


def _toleration(taint: Mapping[str, str]) -> dict[str, str]:
    if not taint.get("value"):
        return {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
    return {
        "key": taint["key"],
        "operator": "Equal",
        "value": taint["value"],
        "effect": taint["effect"],
    }


def workload_priorities() -> list[Manifest]:
    """The four priorities for Kueue's line."""
    return [
        shared(KUEUE, "WorkloadPriorityClass", name, value=value, description=words)
        for name, (value, words) in PRIORITIES.items()
    ]


def pod_priorities() -> list[Manifest]:
    """The same four for pods, which the scheduler puts in order, and Volcano its line.

    None is anybody's default: a default would apply to every pod of the cluster, add-ons included. None preempts: the
    scheduler would evict what Kueue guaranteed to another team. Value and preemption policy of a PriorityClass
    cannot be changed once it stands; one that differs is replaced (`provisioning.drift.replacing`).
    """
    return [
        shared(
            SCHEDULING,
            "PriorityClass",
            name,
            value=value,
            description=words,
            preemptionPolicy="Never",
        )
        for name, (value, words) in PRIORITIES.items()
    ]

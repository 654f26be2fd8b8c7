"""What workloads use of a tenancy's queue, as Kueue or Volcano reports it. Pure."""

from collections.abc import Mapping
from typing import Any

from fleet.names import RESOURCE
from provisioning.desired.kueue_form import cluster_queue_of
from provisioning.desired.quantities import counted
from provisioning.desired.spec import CPU_FLAVOR, TenancySpec

# The kinds of a tenancy's own queue, one of which it has.
QUEUES = ("ClusterQueue", "Queue")


def used_of(queue: Mapping[str, Any], spec: TenancySpec) -> dict[str, int] | None:
    """GPUs of each flavor that are in use in a tenancy's queue, whoever keeps it; None when the queue says nothing."""
    return gpus_used(in_form(queue, spec))


def in_form(queue: Mapping[str, Any], spec: TenancySpec) -> Mapping[str, Any]:
    """A tenancy's queue as Kueue would say it, whoever keeps it."""
    return cluster_queue_of(queue, spec.flavor_of) if spec.has_volcano else queue


def gpus_used(cluster_queue: Mapping[str, Any]) -> dict[str, int] | None:
    """GPUs of each flavor that admitted workloads reserve, borrowed ones included; None when the queue says nothing.

    Kueue v1beta2 writes `status.flavorsUsage[].resources[].total`.
    """
    flavors = (cluster_queue.get("status") or {}).get("flavorsUsage")
    if flavors is None:
        return None
    return {
        flavor["name"]: sum(
            counted(one.get("total"))
            for one in flavor.get("resources") or ()
            if RESOURCE.fullmatch(str(one.get("name")))
        )
        for flavor in flavors
        if flavor.get("name") not in (None, CPU_FLAVOR)
    }

"""ClusterQueues, LocalQueues and what holds GPUs of them, as Kueue shows them. Pure."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from allocations.use.running import running
from provisioning.desired.quantities import CPU, MEMORY, sized
from workloads.observed import (
    Queue,
    Quota,
    QuotaHolder,
    TeamQueue,
    by_profile,
)
from workloads.reading.limits import NO_LIMITS, TimeLimits
from workloads.reading.values import (
    Object,
    conditions,
    is_gpu,
    items,
    part,
    text,
    whole,
)
from workloads.reading.work import key_of, workload_of


def queue_of(found: Object) -> Queue:
    """A ClusterQueue, of either version."""
    spec, status = part(found, "spec"), part(found, "status")
    pending = status.get("pendingWorkloads")
    return Queue(
        name=text(part(found, "metadata"), "name"),
        active=conditions(found).get("Active"),
        stop_policy=text(spec, "stopPolicy") or "None",
        strategy=text(spec, "queueingStrategy") or "BestEffortFIFO",
        cohort=text(spec, "cohortName") or text(spec, "cohort"),
        pending=pending if isinstance(pending, int) else None,
        quotas=tuple(_quotas(spec, status)),
        groups=tuple(_group(one) for one in items(spec, "resourceGroups")),
    )


def team_queue_of(found: Object) -> TeamQueue:
    """A LocalQueue."""
    spec = part(found, "spec")
    return TeamQueue(
        name=text(part(found, "metadata"), "name"),
        cluster_queue=text(spec, "clusterQueue"),
        active=conditions(found).get("Active"),
        stop_policy=text(spec, "stopPolicy") or "None",
    )


def quota_holders_of(
    workloads: Iterable[Object], limits: TimeLimits = NO_LIMITS
) -> tuple[QuotaHolder, ...]:
    """What holds GPUs now, of the Workloads of a queue."""
    return tuple(
        QuotaHolder(
            key_of(part(found, "metadata")), flavor, gpus, limits.ends_at(found)
        )
        for found in workloads
        for one in running([found])
        for flavor, gpus in sorted(one.gpus.items())
    )


def sizes_held_in(workloads: Iterable[Object]) -> Counter[tuple[str, str]]:
    """CPUs and GiB of memory by flavor and resource that Workloads hold now; a part of one counts as a whole one."""
    found = dict[tuple[str, str], Fraction]()
    for one in workloads:
        read = workload_of(one)
        if not (read.is_active and read.holds("QuotaReserved")) or read.holds(
            "Finished"
        ):
            continue
        for each in items(one, "status", "admission", "podSetAssignments"):
            flavors, usage = part(each, "flavors"), part(each, "resourceUsage")
            for resource in {CPU, MEMORY} & flavors.keys():
                cell = text(flavors, resource), resource
                found[cell] = found.get(cell, Fraction(0)) + sized(
                    resource, usage.get(resource)
                )
    return Counter({cell: math.ceil(amount) for cell, amount in found.items()})


def sizes_lent_by(queue: Object) -> dict[tuple[str, str], int]:
    """CPUs and GiB of memory by flavor and resource that a ClusterQueue lends while it leaves them idle."""
    return {
        (text(flavor, "name"), resource): math.floor(
            min(
                sized(resource, one.get(name))
                for name in ("nominalQuota", "lendingLimit")
                if one.get(name) is not None
            )
        )
        for group in items(queue, "spec", "resourceGroups")
        for flavor in items(group, "flavors")
        for one in items(flavor, "resources")
        if (resource := text(one, "name")) in (CPU, MEMORY)
        and one.get("nominalQuota") is not None
    }


def promised_by_volcano(workloads: Iterable[Object]) -> Counter[str]:
    """GPUs of what is not over and has none yet, by MIG profile, "" for whole ones.

    Volcano promises a group its GPUs before its pods have nodes, and says so nowhere: what waits may have them all.
    """
    found = Counter[str]()
    for one in map(workload_of, workloads):
        if not one.flavors and not one.holds("Finished"):
            found.update(by_profile(one.gpus, one.slices))
    return found


def _group(found: Object) -> frozenset[str]:
    return frozenset(text(one, "name") for one in items(found, "flavors"))


def _quotas(spec: Object, status: Object) -> list[Quota]:
    reserved = {
        (text(flavor, "name"), text(one, "name")): (
            whole(one.get("total")),
            whole(one.get("borrowed")),
        )
        for flavor in items(status, "flavorsReservation")
        for one in items(flavor, "resources")
        if is_gpu(text(one, "name"))
    }
    is_alone = not (text(spec, "cohortName") or text(spec, "cohort"))
    found: list[Quota] = []
    for group in items(spec, "resourceGroups"):
        for flavor in items(group, "flavors"):
            for one in items(flavor, "resources"):
                name, resource = text(flavor, "name"), text(one, "name")
                if is_gpu(resource):
                    total, borrowed = reserved.get((name, resource), (0, 0))
                    limit = one.get("borrowingLimit")
                    most = whole(limit) if limit is not None or is_alone else None
                    lent = one.get("lendingLimit")
                    found.append(
                        Quota(
                            name,
                            resource,
                            whole(one.get("nominalQuota")),
                            most,
                            total,
                            borrowed,
                            None if lent is None else whole(lent),
                        )
                    )
    return found

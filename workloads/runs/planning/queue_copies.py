"""What is asked of a namespace's queue already, from the portal's copies; no cluster is asked."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q

from fleet.names import profile_of
from provisioning.models import Tenancy
from workloads.models import ClusterObject
from workloads.reading.queues import queue_of
from workloads.runs.planning.latest_starts import latest_starts_of
from workloads.runs.planning.queue_demand import (
    NamespaceWork,
    QueueDemand,
    demand_for,
    value_of,
)


def queue_demand(
    tenancy: Tenancy, flavor: str, gpus: int, *, priority: str = ""
) -> QueueDemand:
    """What so many GPUs of a flavor would find in a namespace; one query.

    Work without a `priority` takes nothing away.
    """
    return demand_for(work_in(tenancy), flavor, gpus, priority=priority)


def dated_demands(
    tenancy: Tenancy,
    wanted: Collection[tuple[str, int]],
    *,
    priority: str = "",
    now: datetime,
) -> Mapping[tuple[str, int], QueueDemand]:
    """The same of several, by flavor and GPUs, with by when each starts; two more queries where one has to wait."""
    work = work_in(tenancy)
    starts_by = _starts_by(work, tenancy, wanted, value_of(priority), now)
    return {
        (flavor, gpus): replace(
            demand_for(work, flavor, gpus, priority=priority),
            starts_by=starts_by.get((flavor, gpus), ""),
        )
        for flavor, gpus in wanted
    }


def _starts_by(
    work: NamespaceWork,
    tenancy: Tenancy,
    wanted: Collection[tuple[str, int]],
    priority: int,
    now: datetime,
) -> dict[tuple[str, int], str]:
    queue = work.queue
    # Volcano's queues go by shares: nobody has a place in them.
    if queue is None or work.has_volcano:
        return {}
    return latest_starts_of(
        [
            (flavor, gpus)
            for flavor, gpus in wanted
            if gpus
            and (
                work.before(flavor)
                or gpus > queue.own(flavor) - work.held.get(flavor, 0)
            )
        ],
        tenancy=tenancy,
        queue=queue,
        workloads=work.workloads,
        jobs=work.jobs,
        ahead=[one for one in work.line if one.priority >= priority],
        now=now,
    )


def work_in(tenancy: Tenancy) -> NamespaceWork:
    """The copies of a namespace's Workloads and Jobs, and of its queue; in one query."""
    rows = ClusterObject.objects.filter(
        Q(kind__in=("Workload", "Job"), namespace=tenancy.namespace)
        # A team's own queue has the name of its namespace.
        | Q(kind="ClusterQueue", name=tenancy.namespace),
        cluster=tenancy.cluster_id,
    )
    found: dict[str, list[Any]] = {"Workload": [], "Job": [], "ClusterQueue": []}
    for kind, body in rows.values_list("kind", "body"):
        found[kind].append(body)
    return NamespaceWork(
        namespace=tenancy.namespace,
        workloads=found["Workload"],
        jobs=found["Job"],
        queue=next(map(queue_of, found["ClusterQueue"]), None),
        profiles={
            one.name: profile_of(one.resource) for one in tenancy.desired.flavors
        },
        has_volcano=tenancy.cluster.has_volcano,
    )

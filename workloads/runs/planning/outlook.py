"""What a run would find if it were submitted now: how many of the team's GPUs are free, and how long others waited."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from provisioning.desired.priorities import PRIORITIES
from provisioning.models import Tenancy
from workloads.estimating import Estimate, history_of
from workloads.listing import line_in
from workloads.models import ClusterObject
from workloads.reading.facts import waits_of
from workloads.reading.queues import quota_holders_of
from workloads.reading.work import workload_of


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """GPUs of a flavor that Workloads hold in a namespace, how many wait there, and an estimate of the wait.

    `below` are those of the GPUs held that Kueue takes from work of a lower priority.
    """

    used: int
    waiting: int
    estimate: Estimate | None
    below: int = 0


def outlook_of(tenancy: Tenancy, flavor: str, gpus: int, *, priority: str = "") -> Outlook:
    """What so many GPUs of a flavor would find in a namespace, as `outlooks_of` finds it."""
    return outlooks_of(tenancy, [(flavor, gpus)], priority=priority)[flavor, gpus]


def outlooks_of(
    tenancy: Tenancy, wanted: Collection[tuple[str, int]], *, priority: str = ""
) -> Mapping[tuple[str, int], Outlook]:
    """Look at the portal's copy of the namespace's Workloads, in one query; no cluster is asked.

    A namespace's queue is its own, so these are all that stand in it. Work without a `priority` takes nothing away.
    """
    copies = ClusterObject.objects.filter(
        cluster=tenancy.cluster_id, namespace=tenancy.namespace, kind="Workload"
    )
    found = list(copies.values_list("body", flat=True))
    history = history_of(
        waits_of(found), source=f"the jobs of {tenancy.namespace} that the cluster still shows"
    )
    holders, waiting = [*quota_holders_of(found)], len(line_in(map(workload_of, found)))
    lower = quota_holders_of(_below(found, priority)) if priority and not tenancy.cluster.has_volcano else ()
    return {
        (flavor, gpus): Outlook(
            below=sum(one.gpus for one in lower if one.flavor == flavor),
            used=sum(one.gpus for one in holders if one.flavor == flavor),
            waiting=waiting,
            estimate=history.estimate(gpus, waited=timedelta(0)),
        )
        for flavor, gpus in wanted
    }


def _below(found: Iterable[Any], priority: str) -> list[Any]:
    """The Workloads of a lower priority than this one; none for one that nobody knows."""
    value = PRIORITIES.get(priority, (0, ""))[0]
    return [one for one in found if workload_of(one).priority < value]

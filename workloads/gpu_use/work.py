"""How busy the GPUs are that a piece of work holds, whoever started it, from what was measured of its pods."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from fleet.models import Cluster
from notebooks.profiles.idle import MEASURED_FOR
from provisioning.models import Tenancy
from workloads.gpu_use.busy import Busy, busy_of
from workloads.gpu_use.models import PodUse
from workloads.listing import State, Work

Measured = Mapping[tuple[str, str, str], PodUse]


def measured_in(tenancies: Iterable[Tenancy], clusters: Iterable[Cluster]) -> Measured:
    """What was measured in some namespaces, by cluster, namespace and pod; no query where no cluster is measured."""
    read = {one.pk: one.name for one in clusters if one.prometheus}
    places = [(one.cluster_id, one.namespace) for one in tenancies if one.cluster_id in read]
    if not places:
        return {}
    rows = PodUse.objects.filter(cluster__in=read, namespace__in=[namespace for _, namespace in places])
    return {
        (read[one.cluster_id], one.namespace, one.name): one
        for one in rows
        if (one.cluster_id, one.namespace) in places
    }


def busy_of_work(one: Work, measured: Measured, *, has_prometheus: bool, now: datetime) -> Busy | None:
    """What to say about its GPUs, those of all its pods together; None for work that holds none on a node."""
    used = [use for pod in one.pods if (use := measured.get((one.cluster, one.key.namespace, pod)))]
    fresh = [use for use in used if use.measured_at > now - MEASURED_FOR]
    counted = fresh or used
    idle = [use.idle_since for use in counted if use.idle_since is not None]
    return busy_of(
        is_running=one.state == State.RUNNING and bool(one.pods),
        has_prometheus=has_prometheus,
        share=sum(use.share for use in counted) / len(counted) if counted else None,
        # Of several pods, one that computes keeps all of them from being idle.
        idle_since=max(idle) if idle and len(idle) == len(counted) else None,
        is_fresh=bool(fresh),
    )

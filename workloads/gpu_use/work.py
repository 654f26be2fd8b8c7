"""How busy the GPUs are that a piece of work holds, whoever started it, from what was measured of its pods."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from fleet.models import Cluster
from notebooks.profiles.idle import MEASURED_FOR
from provisioning.models import Tenancy
from workloads.gpu_use.busy import Busy, busy_of
from workloads.gpu_use.models import PodUse
from workloads.listing import HoldingPod, State, Work

Measured = Mapping[tuple[str, str, str], PodUse]


def measured_in(tenancies: Iterable[Tenancy], clusters: Iterable[Cluster]) -> Measured:
    """What was measured in some namespaces, by cluster, namespace and pod; no query where no cluster is measured."""
    read = {one.pk: one.name for one in clusters if one.prometheus}
    places = [
        (one.cluster_id, one.namespace) for one in tenancies if one.cluster_id in read
    ]
    if not places:
        return {}
    rows = PodUse.objects.filter(
        cluster__in=read, namespace__in=[namespace for _, namespace in places]
    )
    return {
        (read[one.cluster_id], one.namespace, one.name): one
        for one in rows
        if (one.cluster_id, one.namespace) in places
    }


def busy_of_work(
    one: Work, measured: Measured, *, has_prometheus: bool, now: datetime
) -> Busy | None:
    """What to say about its GPUs, those of all its pods together; None for work that holds none on a node."""
    used = [
        (pod, use)
        for pod in one.pods
        if (use := measured.get((one.cluster, one.key.namespace, pod.name)))
        and _is_of(pod, use)
    ]
    fresh = [(pod, use) for pod, use in used if use.measured_at > now - MEASURED_FOR]
    counted = fresh or used
    idle = [
        since for pod, use in counted if (since := _idle_since(pod, use)) is not None
    ]
    return busy_of(
        is_running=one.state == State.RUNNING and bool(one.pods),
        has_prometheus=has_prometheus,
        share=sum(use.share for _, use in counted) / len(counted) if counted else None,
        # Of several pods, one that computes keeps all of them from being idle, and so does one that nobody measured.
        idle_since=max(idle) if idle and len(idle) == len(one.pods) else None,
        is_fresh=bool(fresh),
        measured=len(counted),
        pods=len(one.pods),
    )


def _is_of(pod: HoldingPod, use: PodUse) -> bool:
    """Whether this was measured of that pod, and not of an earlier one of its name."""
    return pod.created is None or use.measured_at >= pod.created


def _idle_since(pod: HoldingPod, use: PodUse) -> datetime | None:
    """Since when a pod is idle; what an earlier one of its name did not compute is not its own."""
    if use.idle_since is None or pod.created is None:
        return use.idle_since
    return max(use.idle_since, pod.created)

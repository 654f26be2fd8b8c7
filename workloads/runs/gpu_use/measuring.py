"""How busy the GPUs of runs are, and since when they are idle: asked of the cluster's Prometheus every minute."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any

import structlog

from connectors.errors import ConnectorError
from fleet.models import Cluster
from provisioning import throttle
from provisioning.delivery import client_for
from workloads.models import ClusterObject
from workloads.reading.values import part
from workloads.runs.gpu_use.busy import FRESH
from workloads.runs.models import GpuUse, Run
from workloads.templates.pods import RUN_LABEL

log = structlog.get_logger(__name__)
# A kernel that ran for a moment makes GPU_UTIL high, so that the engine's measure comes first. Slices have that alone.
QUERY = (
    "avg by (namespace, pod, exported_namespace, exported_pod) "
    "(DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL / 100)"
)
# Below this share nobody computes: a display or a driver alone takes some of it.
IDLE = 0.02
Pod = tuple[str, str]


def measure(*, now: datetime) -> None:
    """Ask the Prometheus of every cluster that has one about the runs that run there; a silent one delays no other."""
    live = Run.objects.live().filter(running_since__isnull=False, gpus__gt=0)
    for cluster in (
        Cluster.objects.exclude(prometheus="").filter(enabled=True, tenancies__runs__in=live).distinct()
    ):
        if not cluster.is_observed or throttle.seconds_to_wait(cluster, now=now):
            continue
        try:
            samples = client_for(cluster).measured(cluster.prometheus, QUERY)
        except ConnectorError as error:
            log.warning("GPUs are not measured", cluster=cluster.name, problem=error.message)
            continue
        write_down(cluster, shares_of(samples), now=now)


def write_down(cluster: Cluster, shares: Mapping[Pod, float], *, now: datetime) -> None:
    """Keep how busy the GPUs of each run are on average; a run of whose pods nothing was measured is left as it was."""
    runs = Run.objects.live().filter(tenancy__cluster=cluster, running_since__isnull=False, gpus__gt=0)
    found = list(runs.select_related("gpu_use", "tenancy").defer("submission", "manifests"))
    pods = _pods(cluster, {run.tenancy.namespace for run in found})
    for run in found:
        measured = [shares[pod] for pod in pods[run.tenancy.namespace, run.name] if pod in shares]
        if not measured:
            continue
        share = sum(measured) / len(measured)
        earlier: GpuUse | None = getattr(run, "gpu_use", None)
        since = earlier.idle_since if earlier is not None and earlier.measured_at > now - FRESH else None
        GpuUse.objects.update_or_create(
            run=run,
            defaults={
                "share": share,
                "idle_since": (since or now) if share < IDLE else None,
                "measured_at": now,
            },
        )


def shares_of(samples: Iterable[Mapping[str, Any]]) -> dict[Pod, float]:
    """How busy the GPUs of each pod are, from 0 to 1.

    Without `honorLabels` the exporter's own pod stands in `pod`, and the one that holds the GPU in `exported_pod`.
    """
    found: dict[Pod, float] = {}
    for one in samples:
        labels = one.get("metric") or {}
        value: Any = one.get("value") or ()
        pod = (
            str(labels.get("exported_namespace") or labels.get("namespace") or ""),
            str(labels.get("exported_pod") or labels.get("pod") or ""),
        )
        try:
            share = float(value[1])
        except (IndexError, TypeError, ValueError):
            continue
        if all(pod) and isfinite(share):
            found[pod] = min(max(share, 0.0), 1.0)
    return found


def _pods(cluster: Cluster, namespaces: Iterable[str]) -> Mapping[tuple[str, str], list[Pod]]:
    """The pods of each run, by namespace and name of the run; one query."""
    rows = ClusterObject.objects.filter(cluster=cluster, namespace__in=[*namespaces], kind="Pod")
    found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for one in rows.filter(body__metadata__labels__has_key=RUN_LABEL):
        run = part(one.body, "metadata", "labels")[RUN_LABEL]
        found[one.namespace, run].append((one.namespace, one.name))
    return found

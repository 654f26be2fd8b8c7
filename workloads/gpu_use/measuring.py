"""How busy the GPUs of teams are: asked of the cluster's Prometheus every minute, and kept by run, notebook and pod."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

import structlog

from connectors.errors import ConnectorError
from fleet.models import Cluster
from notebooks.models import NotebookServer
from notebooks.profiles.idle import MEASURED_FOR
from notebooks.servers.actions import note_gpu_use
from notebooks.servers.states import State
from provisioning import throttle
from provisioning.delivery import client_for
from provisioning.models import Tenancy
from workloads.gpu_use.models import PodUse
from workloads.gpu_use.shares import QUERY, Pod, Share, shares_of
from workloads.models import ClusterObject
from workloads.notebook_pages.shown import SERVER, is_pod_of
from workloads.reading.pods import is_on_a_node
from workloads.reading.values import gpus_of_pod, part
from workloads.runs.models import GpuUse, Run
from workloads.templates.pods import RUN_LABEL

log = structlog.get_logger(__name__)
FORGOTTEN = timedelta(hours=1)


def measure(*, now: datetime) -> None:
    """Ask the Prometheus of every cluster that has one about what runs there; a silent one delays no other."""
    used = Tenancy.objects.here().values("cluster")
    for cluster in Cluster.objects.exclude(prometheus="").filter(pk__in=used, enabled=True):
        if not cluster.is_observed or throttle.seconds_to_wait(cluster, now=now):
            continue
        try:
            samples = client_for(cluster).measured(cluster.prometheus, QUERY)
        except ConnectorError as error:
            log.warning("GPUs are not measured", cluster=cluster.name, problem=error.message)
            continue
        shares = shares_of(samples)
        write_down(cluster, shares, now=now)
        note_notebooks(cluster, shares, now=now)
        note_pods(cluster, shares, now=now)


def write_down(cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime) -> None:
    """Keep how busy the GPUs of each run are on average; a run of whose pods nothing was measured is left as it was."""
    runs = Run.objects.live().filter(tenancy__cluster=cluster, running_since__isnull=False, gpus__gt=0)
    found = list(runs.select_related("gpu_use", "tenancy").defer("submission", "manifests"))
    pods = _pods(cluster, {run.tenancy.namespace for run in found})
    for run in found:
        own = pods[run.tenancy.namespace, run.name]
        measured = [shares[pod] for pod in own if pod in shares]
        if not measured:
            continue
        share = sum(one.average for one in measured) / len(measured)
        since = _idle_since(measured, getattr(run, "gpu_use", None), now)
        if since is not None and len(measured) < len(own):
            # Nobody knows whether the others compute.
            since = None
        if since is not None and run.running_since is not None:
            # It may have run before, and been idle then.
            since = min(max(since, run.running_since), now)
        GpuUse.objects.update_or_create(
            run=run, defaults={"share": share, "idle_since": since, "measured_at": now}
        )


def note_notebooks(cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime) -> None:
    """Keep of which notebooks of a cluster the GPUs were measured now, and which compute.

    A notebook of whose pod nothing was measured is left as it was: nobody knows whether its GPUs compute.
    """
    ready = NotebookServer.objects.filter(tenancy__cluster=cluster, state=State.READY, gpus__gt=0)
    servers = list(ready.select_related("tenancy"))
    rows = ClusterObject.objects.filter(
        cluster=cluster,
        kind="Pod",
        namespace__in={one.tenancy.namespace for one in servers},
        body__metadata__labels__has_key=SERVER,
    )
    pods = [one for one in rows if (one.namespace, one.name) in shares]
    measured: dict[int, bool] = {}
    for server in servers:
        own = [
            one for one in pods if one.namespace == server.tenancy.namespace and is_pod_of(one.body, server)
        ]
        if own:
            measured[server.pk] = any(shares[one.namespace, one.name].is_busy for one in own)
    if measured:
        note_gpu_use([*measured], busy=[pk for pk, is_busy in measured.items() if is_busy], now=now)


def note_pods(cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime) -> None:
    """Keep how busy each pod of the teams' namespaces is; what is not measured any more is forgotten after an hour."""
    here = set(Tenancy.objects.here().filter(cluster=cluster).values_list("namespace", flat=True))
    earlier = {(one.namespace, one.name): one for one in PodUse.objects.filter(cluster=cluster)}
    rows = [
        PodUse(
            cluster=cluster,
            namespace=pod[0],
            name=pod[1],
            share=share.average,
            idle_since=_idle_since([share], earlier.get(pod), now),
            measured_at=now,
        )
        for pod, share in shares.items()
        if pod[0] in here
    ]
    PodUse.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["cluster", "namespace", "name"],
        update_fields=["share", "idle_since", "measured_at"],
    )
    PodUse.objects.filter(cluster=cluster, measured_at__lte=now - FORGOTTEN).delete()


def _idle_since(
    measured: Collection[Share], earlier: GpuUse | PodUse | None, now: datetime
) -> datetime | None:
    """Since when GPUs are idle of which this was measured now; what was measured too long ago does not count."""
    if any(one.is_busy for one in measured):
        return None
    known = earlier.idle_since if earlier is not None and earlier.measured_at > now - MEASURED_FOR else None
    return known or now


def _pods(cluster: Cluster, namespaces: Iterable[str]) -> Mapping[tuple[str, str], list[Pod]]:
    """The pods of each run that hold GPUs of a node, by namespace and name of the run; one query."""
    rows = ClusterObject.objects.filter(cluster=cluster, namespace__in=[*namespaces], kind="Pod")
    found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for one in rows.filter(body__metadata__labels__has_key=RUN_LABEL):
        if is_on_a_node(one.body) and gpus_of_pod(part(one.body, "spec")):
            run = part(one.body, "metadata", "labels")[RUN_LABEL]
            found[one.namespace, run].append((one.namespace, one.name))
    return found

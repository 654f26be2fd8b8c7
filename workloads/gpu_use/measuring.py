"""How busy the GPUs of teams are: asked of the cluster's Prometheus every minute, and kept by run, notebook and pod."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from connectors.errors import ConnectorError
from fleet.models import Cluster
from notebooks.models import NotebookServer
from notebooks.profiles.idle import MEASURED_FOR
from notebooks.servers.actions import note_gpu_use
from notebooks.servers.states import State
from provisioning import throttle
from provisioning.delivery import client_for
from provisioning.models import Tenancy
from reconciling.sweeping import for_each
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
Clock = Callable[[], datetime]


def measure(*, now: Clock) -> None:
    """Ask the Prometheus of every cluster that has one about what runs there; a silent one delays no other.

    A round may last until after the next one has ended: what was measured later stays.
    """
    used = Tenancy.objects.here().values("cluster")
    clusters = Cluster.objects.exclude(prometheus="").filter(pk__in=used)

    def measure_cluster(cluster: Cluster) -> None:
        # Of its own, as the clusters before it may have taken long.
        asked_at = now()
        if not cluster.is_observed or throttle.seconds_to_wait(cluster, now=asked_at):
            return
        try:
            samples = client_for(cluster).measured(cluster.prometheus, QUERY)
        except ConnectorError as error:
            log.warning(
                "GPUs are not measured", cluster=cluster.name, problem=error.message
            )
            return
        _keep(cluster, shares_of(samples), now=asked_at)

    for_each(clusters, measure_cluster)


def _keep(cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime) -> None:
    write_down(cluster, shares, now=now)
    note_notebooks(cluster, shares, now=now)
    note_pods(cluster, shares, now=now)


def write_down(cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime) -> None:
    """Keep how busy the GPUs of each run are on average; a run of whose pods nothing was measured is left as it was."""
    runs = Run.objects.live().filter(
        tenancy__cluster=cluster, running_since__isnull=False, gpus__gt=0
    )
    found = list(
        runs.select_related("gpu_use", "tenancy").defer("submission", "manifests")
    )
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
        fields = {
            "share": share,
            "idle_since": since,
            "measured_at": now,
            "pods": len(own),
            "pods_measured": len(measured),
        }
        if not GpuUse.objects.filter(run=run, measured_at__lt=now).update(**fields):
            # Its first one, or another round has kept a later one.
            GpuUse.objects.bulk_create(
                [GpuUse(run=run, **fields)], ignore_conflicts=True
            )


def note_notebooks(
    cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime
) -> None:
    """Keep of which notebooks of a cluster the GPUs were measured now, and which compute.

    A notebook of whose pod nothing was measured is left as it was: nobody knows whether its GPUs compute.
    """
    ready = NotebookServer.objects.filter(
        tenancy__cluster=cluster, state=State.READY, gpus__gt=0
    )
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
            one
            for one in pods
            if one.namespace == server.tenancy.namespace and is_pod_of(one.body, server)
        ]
        if own:
            measured[server.pk] = any(
                shares[one.namespace, one.name].is_busy for one in own
            )
    if measured:
        note_gpu_use(
            [*measured],
            busy=[pk for pk, is_busy in measured.items() if is_busy],
            now=now,
        )


def note_pods(cluster: Cluster, shares: Mapping[Pod, Share], *, now: datetime) -> None:
    """Keep how busy each pod of the teams' namespaces is; what is not measured any more is forgotten after an hour."""
    here = set(
        Tenancy.objects.here()
        .filter(cluster=cluster)
        .values_list("namespace", flat=True)
    )
    with transaction.atomic():
        # In one order, as another round may do the same.
        locked = (
            PodUse.objects.filter(cluster=cluster)
            .order_by("pk")
            .select_for_update(no_key=True)
        )
        earlier = {(one.namespace, one.name): one for one in locked}
        rows = {
            pod: PodUse(
                cluster=cluster,
                namespace=pod[0],
                name=pod[1],
                share=share.average,
                idle_since=_idle_since([share], earlier.get(pod), now),
                measured_at=now,
            )
            for pod, share in sorted(shares.items())
            if pod[0] in here and (pod not in earlier or earlier[pod].measured_at < now)
        }
        PodUse.objects.bulk_create(
            [row for pod, row in rows.items() if pod not in earlier],
            ignore_conflicts=True,
        )
        PodUse.objects.bulk_create(
            [row for pod, row in rows.items() if pod in earlier],
            update_conflicts=True,
            unique_fields=["cluster", "namespace", "name"],
            update_fields=["share", "idle_since", "measured_at"],
        )
        PodUse.objects.filter(
            cluster=cluster, measured_at__lte=now - FORGOTTEN
        ).delete()


def _idle_since(
    measured: Collection[Share], earlier: GpuUse | PodUse | None, now: datetime
) -> datetime | None:
    """Since when GPUs are idle of which this was measured now; what was measured too long ago does not count."""
    if any(one.is_busy for one in measured):
        return None
    known = (
        earlier.idle_since
        if earlier is not None and earlier.measured_at > now - MEASURED_FOR
        else None
    )
    return min(known, now) if known is not None else now


def _pods(
    cluster: Cluster, namespaces: Iterable[str]
) -> Mapping[tuple[str, str], list[Pod]]:
    """The pods of each run that hold GPUs of a node, by namespace and name of the run; one query."""
    rows = ClusterObject.objects.filter(
        cluster=cluster, namespace__in=[*namespaces], kind="Pod"
    )
    found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for one in rows.filter(body__metadata__labels__has_key=RUN_LABEL):
        if is_on_a_node(one.body) and gpus_of_pod(part(one.body, "spec")):
            run = part(one.body, "metadata", "labels")[RUN_LABEL]
            found[one.namespace, run].append((one.namespace, one.name))
    return found

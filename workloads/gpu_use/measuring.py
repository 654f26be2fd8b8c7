"""How busy the GPUs of teams are: asked of the cluster's Prometheus every minute, and kept by run, notebook and pod."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
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
from workloads.gpu_use.overall import Sums, seconds_of_look
from workloads.gpu_use.shares import QUERY, Pod, Share, shares_of
from workloads.models import ClusterObject
from workloads.notebook_pages.shown import SERVER, is_pod_of
from workloads.reading.pods import is_on_a_node
from workloads.reading.values import gpus_of_pod, part
from workloads.runs.models import GpuUse, Run
from workloads.templates.pods import RUN_LABEL

log = structlog.get_logger(__name__)
FORGOTTEN = timedelta(hours=1)
# What a look writes of a run.
MEASURED = (
    "share",
    "idle_since",
    "measured_at",
    "pods",
    "pods_measured",
    "busy_seconds",
    "measured_seconds",
    "peak_mib",
)
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
    """Keep how busy the GPUs of each run are, now and on the whole; a run without a measured pod is left as it was."""
    runs = Run.objects.live().filter(
        tenancy__cluster=cluster, running_since__isnull=False, gpus__gt=0
    )
    found = list(runs.select_related("tenancy").defer("submission", "manifests"))
    pods = _pods(cluster, {run.tenancy.namespace for run in found})
    with transaction.atomic():
        # In one order, as another round may do the same.
        locked = (
            GpuUse.objects.filter(run__in=found)
            .order_by("pk")
            .select_for_update(no_key=True)
        )
        earlier = {one.run_id: one for one in locked}
        rows = [
            _use_of(run, pods[_key(run)], shares, earlier.get(run.pk), now)
            for run in found
            if any(pod in shares for pod in pods[_key(run)])
            # Another round may have kept a later one.
            and (run.pk not in earlier or earlier[run.pk].measured_at < now)
        ]
        GpuUse.objects.bulk_create(
            [row for row in rows if row.run_id not in earlier], ignore_conflicts=True
        )
        GpuUse.objects.bulk_create(
            [row for row in rows if row.run_id in earlier],
            update_conflicts=True,
            unique_fields=["run"],
            update_fields=MEASURED,
        )


def _key(run: Run) -> tuple[str, str]:
    """By what the pods of a run are found."""
    return run.tenancy.namespace, run.name


def _use_of(
    run: Run,
    pods: Sequence[Pod],
    shares: Mapping[Pod, Share],
    earlier: GpuUse | None,
    now: datetime,
) -> GpuUse:
    """The row of a run of which some pods are measured now, with what was measured of it before."""
    measured = [shares[pod] for pod in pods if pod in shares]
    share = sum(one.average for one in measured) / len(measured)
    sums = earlier.sums if earlier is not None else Sums()
    if len(measured) == len(pods):
        # A part of a run says nothing of the whole.
        before = earlier.measured_at if earlier is not None else None
        seconds = seconds_of_look(before, running_since=run.running_since, now=now)
        sums = sums.with_look(share, _peak(measured), seconds=seconds)
    return GpuUse(
        run=run,
        share=share,
        idle_since=_run_idle_since(run, pods, measured, earlier, now),
        measured_at=now,
        pods=len(pods),
        pods_measured=len(measured),
        **asdict(sums),
    )


def _peak(measured: Collection[Share]) -> int | None:
    """The most MiB that a GPU of all these pods used; None where that is not known of one of them."""
    known = [one.memory for one in measured if one.memory is not None]
    return max(known) if len(known) == len(measured) else None


def _run_idle_since(
    run: Run,
    pods: Sequence[Pod],
    measured: Sequence[Share],
    earlier: GpuUse | None,
    now: datetime,
) -> datetime | None:
    """Since when nothing computes on a run's GPUs; None while something does, or may on pods that are not measured."""
    since = _idle_since(measured, earlier, now)
    if since is None or len(measured) < len(pods) or run.running_since is None:
        return None
    # It may have run before, and been idle then.
    return min(max(since, run.running_since), now)


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

"""Comparing everything that has converged on a cluster at once: each kind is listed once, and the rest is memory.

Only tenancies that differ get a pass of their own, under a lease. Nothing is written to a cluster here.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Q, QuerySet

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from connectors.kubernetes import Ref, forgotten_twice
from fleet.models import Cluster
from provisioning import throttle
from provisioning.clusters import identity, queueing
from provisioning.clusters.installation import mark
from provisioning.delivery import client_for
from provisioning.desired.manifests import NAMED
from provisioning.desired.objects import INSTALLATION_LABEL, TENANCY_LABEL, Manifest
from provisioning.drift import reconcile as drifting
from provisioning.drift.streaming import Compared, SyncedTenancy, compare
from provisioning.git import pull_requests as git_delivery
from provisioning.models import ClusterThrottle, Drift, Tenancy
from reconciling.claims import claim_target, release_target

logger = logging.getLogger(__name__)

AGAIN = timedelta(seconds=60)
AGAIN_AFTER_FAILURE = timedelta(seconds=15)
SWEEP_SECONDS = 60
MAX_ENQUEUED = 200

# Of this process alone, by cluster: a new release, which may want other objects, compares everything anew.
_known: dict[int, dict[int, SyncedTenancy]] = defaultdict(dict)


def sweep(cluster_id: int, *, now: Callable[[], datetime]) -> Sequence[int]:
    """Look at every converged tenancy of a cluster; returns those that need a pass of their own.

    Returns none while somebody else does it, and when the cluster did not answer: all are then looked at later.
    """
    began = now()
    target = ClusterThrottle(pk=cluster_id)
    if not claim_target(target, now=began, seconds=SWEEP_SECONDS):
        return []
    cluster = Cluster.objects.select_related("throttle").get(pk=cluster_id)
    if cluster.written_off_at is not None:
        release_target(target)
        return []
    started, swept = time.monotonic(), dict[str, datetime]()
    try:
        differing = _sweep(cluster, began=began, now=now)
        swept = {"swept_at": now()}
    except ConnectorError as error:
        differing = _failed(
            cluster, error, seconds=time.monotonic() - started, now=now()
        )
    finally:
        release_target(target, **swept)
    return differing


def forget(cluster_id: int) -> None:
    """Compare everything of a cluster in full at the next sweep."""
    _known.pop(cluster_id, None)


def _sweep(
    cluster: Cluster, *, began: datetime, now: Callable[[], datetime]
) -> Sequence[int]:
    pause = throttle.seconds_to_wait(cluster, now=began)
    if pause:
        raise TemporaryError(f"{cluster.name} does not answer.", retry_after=pause)
    settled = _settled(cluster, now=began).values_list(
        "pk", "generation", "spec", "adopted"
    )
    rows = [
        (pk, generation, spec | {"adopted": adopted, "installation": mark()})
        for pk, generation, spec, adopted in settled
    ]
    if cluster.delivery == Cluster.Delivery.GIT:
        return _committed(cluster, rows, began=began, now=now())
    queueing.check(cluster)
    client = client_for(cluster)
    identity.confirm(cluster, client)
    known = _known[cluster.pk]
    compared = compare(rows, known, partial(_listed, client), seconds=began.timestamp())
    # What waits for a lead, or was put back by hand meanwhile, gets a pass that says so.
    waiting = set(
        Drift.objects.standing(began)
        .filter(tenancy__cluster=cluster)
        .values_list("tenancy", flat=True)
    )
    compared.pass_on(waiting)
    drifting.brake_at(cluster, compared.differing, now=began)
    throttle.answered(cluster, now=now())
    _known[cluster.pk] = compared.known
    _record(cluster, compared, began=began, now=now())
    return compared.differing


def _committed(
    cluster: Cluster,
    rows: Sequence[tuple[int, int, Any]],
    *,
    began: datetime,
    now: datetime,
) -> Sequence[int]:
    """Compare with the newest commit of the cluster's repository; where there is a cluster to see, each looks at it."""
    differing = git_delivery.differing(cluster, rows)
    if cluster.kubeconfig:
        differing = [pk for pk, _, _ in rows]
    settled = _settled(cluster, now=now)
    same = [pk for pk, _, _ in rows if pk not in set(differing)]
    settled.filter(pk__in=same).update(last_looked_at=began, requeue_at=now + AGAIN)
    settled.filter(pk__in=differing).update(requeue_at=now)
    return differing


def _settled(cluster: Cluster, *, now: datetime) -> QuerySet[Tenancy]:
    """What is true in its newest generation and nobody works on."""
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    return (
        Tenancy.objects.present().converged().filter(free, cluster=cluster).order_by()
    )


def _listed(client: Client, ref: Ref) -> Iterable[Manifest]:
    """Every object of a kind that belongs to a tenancy, page by page; from the start again if the pages went stale."""
    ours = f"{TENANCY_LABEL},{INSTALLATION_LABEL}={mark()}"
    try:
        yield from client.pages(ref, label_selector=ours, name=NAMED.get(ref, ""))
    except PermanentError as error:
        if error.code != "expired":
            raise
        with forgotten_twice():
            yield from client.pages(ref, label_selector=ours, name=NAMED.get(ref, ""))


def _record(
    cluster: Cluster, compared: Compared, *, began: datetime, now: datetime
) -> None:
    """Note what was seen, for all at once. A tenancy that anybody worked on meanwhile is left as they left it."""
    settled = _settled(cluster, now=now)
    rows = settled.filter(Q(last_looked_at=None) | Q(last_looked_at__lt=began))
    stored = dict(rows.filter(pk__in=compared.used).values_list("pk", "used"))
    changed = [
        Tenancy(pk=pk, used=compared.used[pk])
        for pk, used in stored.items()
        if used != compared.used[pk]
    ]
    rows.bulk_update(changed, ["used"], batch_size=500)
    silent = [pk for pk in compared.same if pk not in compared.used]
    rows.filter(pk__in=silent).update(last_looked_at=began, requeue_at=now + AGAIN)
    rows.filter(pk__in=compared.used).update(
        last_looked_at=began, used_at=began, requeue_at=now + AGAIN
    )
    settled.filter(pk__in=compared.differing).update(requeue_at=now)


def _failed(
    cluster: Cluster, error: ConnectorError, *, seconds: float, now: datetime
) -> Sequence[int]:
    """Book the next look; a refusal is for each tenancy to find out and to show, a silence is the cluster's."""
    logger.warning(
        "cluster not looked through",
        extra={"cluster": cluster.name, "error": error.message},
    )
    due = _settled(cluster, now=now).filter(requeue_at__lte=now)
    if isinstance(error, PermanentError):
        return list(
            due.order_by("requeue_at").values_list("pk", flat=True)[:MAX_ENQUEUED]
        )
    wait = max(
        AGAIN_AFTER_FAILURE, timedelta(seconds=getattr(error, "retry_after", None) or 0)
    )
    throttle.failed(cluster, error, seconds=seconds, now=now)
    due.update(requeue_at=now + wait)
    return []

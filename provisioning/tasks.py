"""When tenancies and clusters are looked at. Every task may run twice, late or never."""

from celery import shared_task

from audit import clock
from fleet.models import Cluster
from provisioning import left_out, reconcile, scheduling
from provisioning.clusters import observe as look
from provisioning.drift import cluster_sweep
from provisioning.enqueue import enqueue
from reconciling.enqueue import waiting


@shared_task(name="provisioning.tasks.reconcile_tenancy")
def reconcile_tenancy(tenancy_id: int) -> None:
    """Make one tenancy true, and enqueue the next of its cluster; does nothing when another worker is at it.

    Whatever found no slot is worked on when one is free again, not when the next sweep happens to look.
    """
    if (
        reconcile.reconcile(tenancy_id, now=clock.now, only_due=True) is not None
        and left_out.is_noted()
    ):
        following = scheduling.next_due(tenancy_id, now=clock.now())
        if following is not None:
            left_out.note()
            enqueue(following)


@shared_task(name="provisioning.tasks.sweep")
def sweep() -> None:
    """Enqueue what is due, clusters taking turns: a lost message, a dead worker and drift all end here."""
    now = clock.now()
    due = scheduling.in_turns(now=now, waiting=waiting())
    if due and not scheduling.are_all(due, now=now):
        left_out.note()
    for tenancy_id in due:
        enqueue(tenancy_id)
    for cluster_id in scheduling.clusters_to_sweep(now=now):
        sweep_cluster.apply_async(args=[cluster_id], expires=60)


@shared_task(name="provisioning.tasks.sweep_cluster")
def sweep_cluster(cluster_id: int) -> None:
    """Compare everything that has converged on a cluster with what stands there; each that differs gets a pass."""
    for tenancy_id in cluster_sweep.sweep(cluster_id, now=clock.now):
        enqueue(tenancy_id)


@shared_task(name="provisioning.tasks.look_at_clusters")
def look_at_clusters() -> None:
    """Enqueue a look at every cluster, those that take no teams too; one that does not answer delays no other."""
    for cluster_id in Cluster.objects.not_written_off().values_list("pk", flat=True):
        look_at_cluster.apply_async(args=[cluster_id], expires=60)


@shared_task(name="provisioning.tasks.look_at_cluster")
def look_at_cluster(cluster_id: int) -> None:
    """See whether a cluster answers, count its GPUs and put its cohort, flavors and priorities there."""
    look.look_at(cluster_id, now=clock.now)

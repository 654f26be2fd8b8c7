"""When tenancies and clusters are looked at. Every task may run twice, late or never."""

from celery import shared_task
from django.utils import timezone

from fleet.models import Cluster
from provisioning import look, reconcile
from provisioning.doorbell import ring
from provisioning.models import Tenancy

MOST_AT_ONCE = 200


@shared_task(name="provisioning.tasks.reconcile_tenancy")
def reconcile_tenancy(tenancy_id: int) -> None:
    """Make one tenancy true; does nothing when another worker is at it."""
    reconcile.reconcile(tenancy_id, now=timezone.now)


@shared_task(name="provisioning.tasks.sweep")
def sweep() -> None:
    """Ring for every tenancy whose look is due: a lost message, a dead worker and drift all end here."""
    due = Tenancy.objects.due(timezone.now()).order_by("next_look_at").values_list("pk", flat=True)
    for tenancy_id in due[:MOST_AT_ONCE]:
        ring(tenancy_id)


@shared_task(name="provisioning.tasks.look_at_clusters")
def look_at_clusters() -> None:
    """Ring for a look at every cluster in use; one that does not answer delays no other."""
    for cluster_id in Cluster.objects.filter(enabled=True).values_list("pk", flat=True):
        look_at_cluster.apply_async(args=[cluster_id], expires=60)


@shared_task(name="provisioning.tasks.look_at_cluster")
def look_at_cluster(cluster_id: int) -> None:
    """See whether a cluster answers, count its GPUs and put its cohort, flavors and priorities there."""
    look.look_at(cluster_id, now=timezone.now)

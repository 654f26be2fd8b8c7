"""Removing clusters and kinds of GPU that nobody has used: what was used stays, because history names it."""

from django.db import models, transaction
from django.db.models import ProtectedError

from accounts.models import User
from audit.events import Kind
from audit.log import record
from fleet.clusters.actions import locked, manages_clusters
from fleet.models import Cluster, Flavor
from web.refusals import Conflict


@transaction.atomic
def remove_flavor(flavor_id: int, *, by: User) -> None:
    """Remove a kind of GPU that was never asked for; what stands for it on the cluster stays there, used by nobody.

    Raises NoRight, and Conflict where requests, grants or runs name it (what names it without a key refuses it by
    `pre_delete`). Removing it again changes nothing.
    """
    actor = manages_clusters(by)
    flavor = Flavor.objects.filter(pk=flavor_id).select_related("cluster").first()
    if flavor is None:
        return
    locked(flavor.cluster.pk)
    _lock_kinds(flavor.cluster)
    _delete(
        flavor,
        f"{flavor.kind} was asked for or held here, and stays for its history. Have it offered no more instead.",
    )
    record(
        Kind.FLAVOR_REMOVED,
        actor=actor,
        subject=("flavor", flavor_id),
        name=flavor.name,
        cluster=flavor.cluster.name,
    )


@transaction.atomic
def remove_cluster(cluster_id: int, *, by: User) -> None:
    """Remove a cluster on which nobody ever was, with its kinds of GPU; nothing is changed on the cluster itself.

    Raises NoRight, and Conflict where teams were there, kinds of it were asked for, or a JupyterHub is connected.
    Removing it again changes nothing.
    """
    actor = manages_clusters(by)
    if not Cluster.objects.filter(pk=cluster_id).exists():
        return
    cluster = locked(cluster_id)
    _lock_kinds(cluster)
    for flavor in cluster.flavors.all():
        _delete(
            flavor,
            f"{flavor.kind} was asked for or held here. Take the cluster out of use instead.",
        )
    _delete(
        cluster,
        f"Teams were on {cluster.title}, or a JupyterHub is connected to it. Take it out of use instead.",
    )
    record(
        Kind.CLUSTER_REMOVED,
        actor=actor,
        subject=("cluster", cluster_id),
        name=cluster.name,
    )


def _lock_kinds(cluster: Cluster) -> None:
    """Whoever asks for one at this moment has asked before it is removed, or finds none."""
    list(
        cluster.flavors.select_for_update(no_key=True).order_by("pk").values_list("pk")
    )


def _delete(row: models.Model, why_not: str) -> None:
    try:
        row.delete()
    except ProtectedError as error:
        raise Conflict(why_not, code="was_used") from error

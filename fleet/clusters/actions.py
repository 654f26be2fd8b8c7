"""What changes about clusters: platform leads add and change them, and it is audited."""

from collections.abc import Mapping, Set
from copy import copy
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.roles import Permission
from audit import clock
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from fleet import planned_maintenance, queueing, repositories
from fleet.announcing import tell_announced, tell_closed_or_open, tell_maintenance
from fleet.clusters.checks import (
    check_around,
    check_authority,
    check_empty_of_others,
    check_kubeconfig_file,
    check_names,
    check_stands,
    check_variables,
)
from fleet.models import Cluster
from fleet.values import fill, plain, refuse_same_aks, save_new, values_of, with_before
from web.refusals import Conflict, NoRight, Stale

CLUSTER_FIELDS = frozenset(
    {
        "title",
        "region",
        "purpose",
        "kubeconfig",
        "context",
        "cohort",
        "borrow_percent",
        "storage_class",
        "enabled",
        "jupyterhub_namespace",
        "shared_services",
        "egress",
        "run_variables",
        "outside_by_name",
        "dashboards",
        "dedicated_to",
        "on_drift",
        "writes_per_second",
        "most_at_once",
        "api_server",
        "kubelogin_server_id",
        "dashboards_url",
        "prometheus",
        "certificate_authority",
        "azure_id",
        "announcement",
        "announced_until",
        "queueing",
        *planned_maintenance.FIELDS,
        *repositories.FIELDS,
    }
)
# Of a new cluster: idle GPUs are lent, and one team borrows at most as much again as it holds.
DEFAULT_BORROW_PERCENT = 100


@transaction.atomic
def add_cluster(*, name: str, values: Mapping[str, Any], by: User | Actor) -> Cluster:
    """Add a cluster; a worker looks at it within a minute. Raises NoRight, BadInput or Conflict naming the field.

    `values` may hold what CLUSTER_FIELDS names; `kubeconfig` is the plain name of a file in the configured folder.
    Teams may borrow as much again as they hold, unless it says otherwise or its queues are Volcano's.
    """
    actor = manages_clusters(by)
    lends = values.get("queueing") != Cluster.Queueing.VOLCANO
    cluster = Cluster(name=name, borrow_percent=DEFAULT_BORROW_PERCENT if lends else 0)
    changed = fill(cluster, values, CLUSTER_FIELDS)
    queueing.check_new(cluster)
    check_kubeconfig_file(cluster)
    repositories.check_repository(cluster)
    check_authority(cluster)
    check_around(cluster)
    check_variables(cluster)
    check_names(cluster, changed)
    planned_maintenance.check_and_settle(
        cluster, changed, before=Cluster(), now=clock.now()
    )
    save_new(cluster, taken="There is a cluster of this name already.")
    record(
        Kind.CLUSTER_ADDED,
        actor=actor,
        subject=("cluster", cluster.pk),
        name=name,
        **plain(changed),
    )
    return cluster


@transaction.atomic
def change_cluster(
    cluster_id: int, *, values: Mapping[str, Any], by: User | Actor
) -> Cluster:
    """Change a cluster, never its name or whose queues it has: namespaces carry them.

    Raises NoRight, BadInput or Conflict naming the field.
    """
    actor = manages_clusters(by)
    cluster = locked(cluster_id)
    before, was = values_of(cluster, CLUSTER_FIELDS), copy(cluster)
    changed = fill(cluster, values, CLUSTER_FIELDS)
    planned_maintenance.check_and_settle(cluster, changed, before=was, now=clock.now())
    queueing.check_fixed(changed)
    if {"kubeconfig", "context"} & changed.keys():
        check_kubeconfig_file(cluster)
    if repositories.FIELDS & changed.keys():
        queueing.check_delivery(cluster)
        repositories.check_repository(cluster)
    if "certificate_authority" in changed:
        check_authority(cluster)
    check_around(cluster)
    queueing.check_borrowing(cluster)
    queueing.check_hub(cluster)
    if "run_variables" in changed:
        check_variables(cluster)
    check_names(cluster, changed)
    if "dedicated_to" in changed:
        check_empty_of_others(cluster)
    if changed:
        check_stands(cluster)
        try:
            with transaction.atomic():
                cluster.save(update_fields=[*changed])
        except IntegrityError as error:
            refuse_same_aks(cluster, error)
            raise
        record(
            Kind.CLUSTER_CHANGED,
            actor=actor,
            subject=("cluster", cluster.pk),
            name=cluster.name,
            **with_before(changed, before),
        )
        _tell_teams(cluster, changed.keys(), before=was, now=clock.now())
    return cluster


def _tell_teams(
    cluster: Cluster, changed: Set[str], *, before: Cluster, now: datetime
) -> None:
    """Tell the teams of a cluster what they have to know of a change of these fields."""
    if {"announcement", "announced_until"} & changed:
        tell_announced(cluster, now=now)
    if planned_maintenance.FIELDS & changed:
        tell_maintenance(cluster, before=before, now=now)
    if "enabled" in changed:
        tell_closed_or_open(cluster, now=now)


@transaction.atomic
def accept_identity(cluster_id: int, *, found: str, by: User) -> Cluster:
    """Have this cluster be the API server that its kubeconfig leads to now; the next look goes on there.

    `found` is what was seen, so that nobody accepts a third one. Raises NoRight, Conflict or Stale.
    """
    actor = manages_clusters(by)
    cluster = locked(cluster_id)
    if not cluster.identity_found:
        raise Conflict(
            "The kubeconfig leads where it always led.", code="nothing_to_accept"
        )
    if found != cluster.identity_found:
        raise Stale(
            "The kubeconfig leads somewhere else by now. Look again.", code="stale"
        )
    before, cluster.identity, cluster.identity_found = cluster.identity, found, ""
    try:
        with transaction.atomic():
            cluster.save(update_fields=["identity", "identity_found"])
    except IntegrityError as error:
        raise Conflict(
            "This API server is registered as another cluster.", code="registered_twice"
        ) from error
    # Its nodes are others: they are counted as those of a new cluster.
    _believe(cluster)
    record(
        Kind.CLUSTER_CHANGED,
        actor=actor,
        subject=("cluster", cluster.pk),
        name=cluster.name,
        identity=found,
        identity_before=before,
    )
    return cluster


@transaction.atomic
def accept_capacity(cluster_id: int, *, by: User) -> Cluster:
    """Believe at the next look how many nodes the cluster lists, however few. Raises NoRight or Conflict."""
    actor = manages_clusters(by)
    cluster = locked(cluster_id)
    if not cluster.capacity_doubt:
        raise Conflict("What the cluster lists is believed.", code="nothing_to_accept")
    reason = cluster.capacity_doubt
    _believe(cluster)
    record(
        Kind.CLUSTER_CHANGED,
        actor=actor,
        subject=("cluster", cluster.pk),
        name=cluster.name,
        accepted=reason,
    )
    return cluster


def _believe(cluster: Cluster) -> None:
    cluster.nodes_seen, cluster.capacity_doubt, cluster.doubted_looks = 0, "", 0
    cluster.save(update_fields=["nodes_seen", "capacity_doubt", "doubted_looks"])


def manages_clusters(by: User | Actor) -> Actor:
    """Who is written down: a platform lead, or the installation's settings, which need no role."""
    if isinstance(by, Actor):
        return by
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads add and change clusters.", code="not_a_platform_lead"
        )
    return by.as_actor()


def locked(cluster_id: int) -> Cluster:
    """The cluster, so that nobody else changes it or its kinds of GPU meanwhile; locked before any of these."""
    return Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)

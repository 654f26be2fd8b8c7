"""What changes about kinds of GPU: platform leads add and change them, and it is audited."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction

from accounts.models import User
from audit import clock
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from fleet import queueing
from fleet.clusters.actions import locked, manages_clusters
from fleet.clusters.checks import check_stands
from fleet.flavors.checks import (
    check_apart,
    check_free_to_change,
    check_nodes,
    check_pool,
    check_price_moved,
    check_told,
)
from fleet.models import Cluster, Flavor
from fleet.values import LIMITS, fill, plain, save_new, values_of, with_before
from web.refusals import BadInput

FLAVOR_FIELDS = frozenset(
    {
        "product",
        "memory_gb",
        "gpus_per_node",
        "capacity_type",
        "price_per_gpu_hour",
        "follows_list",
        "node_labels",
        "node_taints",
        "cpu_per_gpu",
        "memory_gib_per_gpu",
        "is_offered",
        "resource",
        "dedicated_to",
        "gpus_total",
        "min_nodes",
        "max_nodes",
        "growing_minutes",
        "interruption_hours",
        "node_pool",
    }
)
# Every cluster has the portal's own ResourceFlavor for work without GPUs, named like this.
RESERVED = "quartermaster"
APART = frozenset({"node_labels", "node_taints", "dedicated_to"})
# What decides how many GPUs a pool can grow to, and which of its nodes may leave.
POOL = frozenset({"min_nodes", "max_nodes", "gpus_per_node"})
PRICED = ("is_list_price", "priced_at")
COUNTED = (
    "gpus_total",
    "gpus_ready",
    "gpus_cordoned",
    "gpus_seen_at",
    "versions",
    "versions_at",
)
# Which nodes are of a kind.
NODES = frozenset({"node_labels", "resource"})


@transaction.atomic
def add_flavor(
    cluster: Cluster, *, name: str, values: Mapping[str, Any], by: User | Actor
) -> Flavor:
    """Add a kind of GPU to a cluster; its GPUs are counted when a worker next looks at the nodes.

    How many there are (`gpus_total`) is told for a cluster that nobody observes, and for no other; to how many nodes
    an autoscaler may take the pool (`max_nodes`) for one that is observed. Raises NoRight, BadInput or Conflict naming
    the field.
    """
    actor = manages_clusters(by)
    if name.startswith(RESERVED):
        raise BadInput(
            f"Names that start with “{RESERVED}” are the portal's own.",
            code="reserved",
            field="name",
        )
    flavor = Flavor(cluster=locked(cluster.pk), name=name)
    check_stands(flavor.cluster)
    changed = fill(flavor, values, FLAVOR_FIELDS)
    check_nodes(flavor)
    queueing.check_resource(flavor)
    check_apart(flavor)
    check_told(flavor, changed)
    check_pool(flavor, changed)
    _count_again(flavor)
    _set_price(flavor, changed, followed=False)
    save_new(flavor, taken="The cluster has a flavor of this name already.")
    record(
        Kind.FLAVOR_ADDED,
        actor=actor,
        subject=("flavor", flavor.pk),
        name=name,
        cluster=cluster.name,
        **plain(changed),
    )
    return flavor


@transaction.atomic
def change_flavor(
    flavor_id: int,
    *,
    values: Mapping[str, Any],
    by: User | Actor,
    price_is_meant: bool = False,
) -> Flavor:
    """Change a flavor, never its name or cluster; what is held keeps the price it was granted at.

    A price of more than ten times the one before, or less than a tenth, is taken only where `price_is_meant`: the
    decimal point may have been forgotten.

    How many GPUs there are (`gpus_total`) is told for a cluster that nobody observes; what an autoscaler may do
    (`min_nodes`, `max_nodes`, `growing_minutes`) for one that is observed. Raises NoRight or BadInput.
    """
    actor = manages_clusters(by)
    locked(Flavor.objects.values_list("cluster", flat=True).get(pk=flavor_id))
    flavor = (
        Flavor.objects.select_for_update(of=("self",), no_key=True)
        .select_related("cluster")
        .get(pk=flavor_id)
    )
    follows, before = flavor.follows_list, values_of(flavor, FLAVOR_FIELDS)
    changed = fill(flavor, values, FLAVOR_FIELDS)
    if changed:
        check_stands(flavor.cluster)
    check_nodes(flavor)
    _set_price(flavor, changed, followed=follows)
    if not price_is_meant:
        check_price_moved(before["price_per_gpu_hour"], flavor.price_per_gpu_hour)
    if APART & changed.keys():
        check_apart(flavor)
    check_told(flavor, changed)
    check_pool(flavor, changed)
    if {"resource", "dedicated_to"} & changed.keys():
        queueing.check_resource(flavor)
        check_free_to_change(flavor, changed)
    if changed:
        if "gpus_total" in changed:
            flavor.gpus_seen_at = None
        _count_again(flavor)
        if NODES & changed.keys():
            # Other nodes are of this kind now: what they run shows at the next look.
            flavor.versions, flavor.versions_at = {}, None
        flavor.save(update_fields=[*changed, *COUNTED, *PRICED])
        if POOL & changed.keys():
            _let_nodes_leave(flavor.cluster)
        record(
            Kind.FLAVOR_CHANGED,
            actor=actor,
            subject=("flavor", flavor.pk),
            name=flavor.name,
            **with_before(changed, before),
        )
    return flavor


@transaction.atomic
def take_list_price(flavor_id: int, *, usd: Decimal, of: datetime) -> bool:
    """Have a kind of GPU that follows Azure's list cost what it says, in USD per GPU-hour; whether that changes it.

    `of` is when the list was read. What is granted keeps its price. One that follows no list any more, that has the
    price of a later reading, or for which `usd` is no price, stays as it is.
    """
    locked(Flavor.objects.values_list("cluster", flat=True).get(pk=flavor_id))
    flavor = Flavor.objects.select_for_update(of=("self",), no_key=True).get(
        pk=flavor_id
    )
    least, most, _ = LIMITS["price_per_gpu_hour"]
    is_older = (
        flavor.is_list_price and flavor.priced_at is not None and flavor.priced_at > of
    )
    if not flavor.follows_list or is_older or not least <= usd <= most:
        return False
    before, flavor.price_per_gpu_hour = flavor.price_per_gpu_hour, usd
    flavor.is_list_price, flavor.priced_at = True, of
    flavor.save(update_fields=["price_per_gpu_hour", *PRICED])
    if before == usd:
        return False
    record(
        Kind.FLAVOR_CHANGED,
        actor=PORTAL,
        subject=("flavor", flavor.pk),
        name=flavor.name,
        price_per_gpu_hour=str(usd),
        price_per_gpu_hour_before=str(before),
        priced_by="Azure's list",
    )
    return True


def _set_price(flavor: Flavor, changed: Mapping[str, Any], *, followed: bool) -> None:
    """Keep when people set the price; refuse another one than the list's while it is followed, and no list at all."""
    if flavor.follows_list and not flavor.cluster.azure_id:
        raise BadInput(
            f"Give the Azure resource id of {flavor.cluster.title} first, on its page.",
            code="not_in_azure",
            field="follows_list",
        )
    if "price_per_gpu_hour" in changed and flavor.follows_list and followed:
        raise BadInput(
            "This kind follows Azure's list price. Have it follow no list to set a price of your own.",
            code="follows_list",
            field="price_per_gpu_hour",
        )
    if "price_per_gpu_hour" in changed or (followed and not flavor.follows_list):
        flavor.is_list_price, flavor.priced_at = False, clock.now()


def _count_again(flavor: Flavor) -> None:
    """What can be had follows from what is ready and what the pool may grow to; or it is told, as if all was ready."""
    if flavor.cluster.is_observed:
        flavor.gpus_total = flavor.gpus_obtainable
    else:
        flavor.gpus_ready, flavor.gpus_cordoned = flavor.gpus_total, 0


def _let_nodes_leave(cluster: Cluster) -> None:
    """Compare no list of nodes with one of before: other nodes than then may leave by themselves."""
    Cluster.objects.filter(pk=cluster.pk, capacity_doubt="").update(nodes_seen=0)

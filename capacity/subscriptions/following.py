"""How far Azure lets each kind of GPU grow: as it was read, and beside what others were promised since."""

from copy import copy
from typing import Any

from django.db import transaction

from capacity.chain.words import regional
from capacity.models import Subscription
from capacity.subscriptions.enqueue import sharing
from capacity.subscriptions.pools import OF_FAMILY, Behind, Catalogue, place_of
from fleet.models import Cluster, Flavor


def azure_nodes(behind: Behind) -> tuple[int | None, str]:
    """To how many nodes Azure lets the pools grow, and which quota lets them grow no further; None for not known."""
    if behind.machine is None or behind.pool is None:
        return None, ""
    machine, unused = (
        behind.machine,
        behind.reserved.unused if behind.reserved is not None else 0,
    )
    limits = [
        (one.machines_left(machine), words)
        for one, words in (
            (
                behind.family,
                OF_FAMILY.format(behind.family.name) if behind.family else "",
            ),
            (
                behind.regional,
                regional(behind.regional.name) if behind.regional else "",
            ),
        )
        if one is not None
    ]
    if not limits:
        return None, ""
    left, words = min(limits)
    return behind.pool.nodes + unused + left, words


def follow(cluster: Cluster) -> None:
    """Keep what Azure says of a cluster's pools with its kinds of GPU: how far each grows, and what stops it."""
    known = Catalogue.of([cluster])
    for flavor in known.flavors_of(cluster):
        _follow(flavor.pk, known.behind(flavor))


def follow_beside(cluster_id: int) -> None:
    """Keep what is left to all kinds of GPU that share a cluster's quotas, after something was taken from these."""
    place = place_of(Cluster.objects.get(pk=cluster_id))
    if place is None:
        return
    clusters = Cluster.objects.filter(region=place[1]).exclude(azure_id="")
    beside = {one.pk: one for one in clusters if place_of(one) == place}
    known = Catalogue.of(beside.values())
    for flavor in known.flavors:
        if flavor.cluster_id in beside:
            _follow(flavor.pk, known.behind(flavor))


def follow_shared(flavor: Flavor) -> None:
    """Keep what Azure lets a kind of GPU grow to beside all that others were promised, before some of it is taken.

    Whoever calls holds the lock of the kind. Until the transaction ends nobody takes from a quota of its subscription.
    The others that share it are followed once it has committed: pages show what is left of them.
    """
    if flavor.azure_nodes is None:
        return
    lock_quotas(flavor.cluster)
    _follow(flavor.pk, Catalogue.of([flavor.cluster]).behind(flavor))
    sharing.enqueue_on_commit(flavor.cluster_id)


def lock_quotas(cluster: Cluster) -> None:
    """Have others wait who take from a quota of a cluster's subscription, until the transaction ends."""
    place = place_of(cluster)
    if place is not None:
        lock_quotas_of(place[0])


def lock_quotas_of(subscription_id: str) -> None:
    """The same by the subscription; after flavors, before tenancies."""
    rows = Subscription.objects.select_for_update(no_key=True).filter(
        pk=subscription_id
    )
    list(rows.values_list("pk"))


def as_shared(flavor: Flavor) -> Flavor:
    """A kind of GPU with what Azure lets it grow to beside all that others were promised by now; nothing is saved."""
    if flavor.azure_nodes is None:
        return flavor
    found = copy(flavor)
    found.azure_nodes, found.azure_limit = azure_nodes(
        Catalogue.of([flavor.cluster]).behind(flavor)
    )
    found.gpus_total = found.gpus_obtainable
    return found


def forget_azure() -> None:
    """Hold nothing back any more of kinds of GPU whose cluster is no longer said to be in Azure."""
    for flavor_id in Flavor.objects.filter(
        cluster__azure_id="", azure_nodes__isnull=False
    ).values_list("pk", flat=True):
        _follow(flavor_id, Behind())


@transaction.atomic
def _follow(flavor_id: int, behind: Behind) -> None:
    flavor = Flavor.objects.select_for_update(of=("self",), no_key=True).get(
        pk=flavor_id
    )
    nodes, words = azure_nodes(behind)
    changed: dict[str, Any] = {"azure_nodes": nodes, "azure_limit": words[:120]}
    if behind.pool is not None:
        # What AKS says of its own autoscaler counts, not what people once said of it.
        changed |= {
            "max_nodes": behind.pool.maximum or 0,
            "min_nodes": behind.minimum if behind.pool.maximum else 0,
        }
    for name, value in changed.items():
        setattr(flavor, name, value)
    flavor.gpus_total = flavor.gpus_obtainable
    flavor.save(update_fields=[*changed, "gpus_total"])

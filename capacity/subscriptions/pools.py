"""From the pools of a cluster to its kinds of GPU: which pools each has, and how far Azure lets them grow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from capacity.chain.facts import Machine, Pool, Quota, Reserved
from capacity.chain.words import regional
from capacity.models import FamilyQuota, NodePool, Subscription, VmSize
from capacity.subscriptions.ids import aks_of
from fleet.models import Cluster, Flavor

OF_AKS = "kubernetes.azure.com/"
OF_FAMILY = "the subscription quota of {}"


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What stands in Azure behind a kind of GPU on a cluster; None for what is not known.

    Several pools of one kind count together: their nodes, their maxima, and what is reserved for them.
    """

    machine: Machine | None = None
    family: Quota | None = None
    regional: Quota | None = None
    pool: Pool | None = None
    reserved: Reserved | None = None
    minimum: int = 0


@dataclass(frozen=True)
class Catalogue:
    """Sizes and quotas as they were read last, by subscription, region and name in small letters."""

    sizes: Mapping[tuple[str, str, str], VmSize]
    quotas: Mapping[tuple[str, str, str], FamilyQuota]

    @classmethod
    def of(cls, clusters: Sequence[Cluster]) -> "Catalogue":
        """What there is where some clusters are; two queries."""
        here = {"subscription__in": {aks.subscription.lower() for one in clusters if (aks := aks_of(one))}}
        here["region__in"] = {one.region for one in clusters}
        return cls(
            {_key(one): one for one in VmSize.objects.filter(**here)},
            {_key(one): one for one in FamilyQuota.objects.filter(**here).with_meters()},
        )

    def subscription(self, subscription_id: str) -> Subscription | None:
        """A subscription of whose quotas some are known, without a query."""
        rows = (one.subscription for one in self.quotas.values())
        return next((one for one in rows if one.pk == subscription_id), None)

    def meter(self, subscription_id: str, quota: Quota) -> int | None:
        """The id of the limit whose readings are those of a quota; None where nobody has read it."""
        row = self.quotas.get((subscription_id, quota.region, quota.name.casefold()))
        return None if row is None else row.meter


def _key(row: VmSize | FamilyQuota) -> tuple[str, str, str]:
    return row.subscription_id, row.region, row.name.casefold()


def behind_flavors(cluster: Cluster, known: Catalogue | None = None) -> Mapping[int, Behind]:
    """What stands behind each kind of GPU of a cluster in Azure, by the flavor's id.

    Four queries; none where `known` is given and the cluster comes with its flavors and its pools.
    """
    aks = aks_of(cluster)
    if aks is None:
        return {}
    known = known or Catalogue.of([cluster])
    pools, place = list(cluster.node_pools.all()), (aks.subscription.lower(), cluster.region)
    return {one.pk: _behind(pools_of(one, pools), known, place) for one in cluster.flavors.all()}


def pools_of(flavor: Flavor, pools: Sequence[NodePool]) -> list[NodePool]:
    """The pools whose nodes are of a kind of GPU: the one that is named, else those that carry its labels."""
    if flavor.node_pool:
        named = [one for one in pools if one.name == flavor.node_pool]
        # Pools that the portal makes of reservations carry the labels of the kind that they are for.
        return named + [
            one for one in pools if one not in named and one.name.startswith("qm") and _fits(flavor, one)
        ]
    return [one for one in pools if _fits(flavor, one)]


def _fits(flavor: Flavor, pool: NodePool) -> bool:
    # What AKS puts on nodes by itself is no label of the pool.
    own = {name: value for name, value in flavor.node_labels.items() if not name.startswith(OF_AKS)}
    return bool(own) and own.items() <= pool.labels.items() and pool.is_spot == flavor.is_spot


def _behind(pools: Sequence[NodePool], known: Catalogue, place: tuple[str, str]) -> Behind:
    if not pools:
        return Behind()
    size = known.sizes.get((*place, pools[0].vm_size.casefold()))
    # Spot machines of all families have one quota together.
    is_spot = all(one.is_spot for one in pools)
    family, regional = (
        ("", FamilyQuota.SPOT) if is_spot else (size.family if size else "", FamilyQuota.REGIONAL)
    )
    maxima = [one.max_nodes if one.max_nodes is not None else one.nodes for one in pools]
    grows = any(one.max_nodes is not None for one in pools)
    seen_at = min(one.seen_at for one in pools)
    joined = [one for one in pools if one.reserved]
    return Behind(
        machine=None if size is None else Machine(name=size.name, vcpus=size.vcpus),
        family=_quota(known.quotas.get((*place, family.casefold()))),
        regional=_quota(known.quotas.get((*place, regional))),
        pool=Pool(
            name=" and ".join(one.name for one in pools),
            nodes=sum(one.nodes for one in pools),
            maximum=sum(maxima) if grows else None,
            seen_at=seen_at,
        ),
        reserved=Reserved(
            name=" and ".join(one.name for one in joined),
            machines=sum(one.reserved for one in joined),
            used=sum(one.reserved_used for one in joined),
            seen_at=seen_at,
        )
        if joined
        else None,
        minimum=sum(one.min_nodes or 0 for one in pools),
    )


def _quota(row: FamilyQuota | None) -> Quota | None:
    if row is None:
        return None
    return Quota(name=row.name, region=row.region, limit=row.limit, used=row.used, seen_at=row.seen_at)


def quotas_of(size: VmSize) -> list[tuple[Quota, str]]:
    """The quotas that machines of a size on demand count towards, each as the subject of a sentence; one query."""
    words = {
        size.family.casefold(): OF_FAMILY.format(size.family),
        FamilyQuota.REGIONAL: regional(FamilyQuota.REGIONAL),
    }
    rows = FamilyQuota.objects.filter(subscription=size.subscription_id, region=size.region)
    known = [(_quota(row), words.get(row.name.casefold())) for row in rows]
    return [(quota, named) for quota, named in known if quota is not None and named is not None]


def azure_nodes(behind: Behind) -> tuple[int | None, str]:
    """To how many nodes Azure lets the pools grow, and which quota lets them grow no further; None for not known."""
    if behind.machine is None or behind.pool is None:
        return None, ""
    machine, unused = behind.machine, behind.reserved.unused if behind.reserved is not None else 0
    limits = [
        (one.machines_left(machine), words)
        for one, words in (
            (behind.family, OF_FAMILY.format(behind.family.name) if behind.family else ""),
            (behind.regional, regional(behind.regional.name) if behind.regional else ""),
        )
        if one is not None
    ]
    if not limits:
        return None, ""
    left, words = min(limits)
    return behind.pool.nodes + unused + left, words


def follow(cluster: Cluster) -> None:
    """Keep what Azure says of a cluster's pools with its kinds of GPU: how far each grows, and what stops it."""
    for flavor_id, behind in behind_flavors(cluster).items():
        _follow(flavor_id, behind)


def forget_azure() -> None:
    """Hold nothing back any more of kinds of GPU whose cluster is no longer said to be in Azure."""
    for flavor_id in Flavor.objects.filter(cluster__azure_id="", azure_nodes__isnull=False).values_list(
        "pk", flat=True
    ):
        _follow(flavor_id, Behind())


@transaction.atomic
def _follow(flavor_id: int, behind: Behind) -> None:
    flavor = Flavor.objects.select_for_update(of=("self",), no_key=True).get(pk=flavor_id)
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

"""From the pools of a cluster to its kinds of GPU: which pools each has, and what stands in Azure behind them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from django.db.models import F, OuterRef, Q, Subquery, Sum

from capacity.chain.facts import Machine, Pool, Quota, Reserved
from capacity.chain.sharing import GrowingNodes, OnNodes
from capacity.chain.words import regional
from capacity.metering.keys import QuotaKey
from capacity.models import FamilyQuota, NodePool, Reservation, Subscription, VmSize
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
    """What was read last of some regions, by subscription, region and name in small letters.

    `flavors` are all kinds of GPU there, with their clusters, and `pools` those of each cluster: quotas are shared.
    `to_come` are machines that are reserved for nodes of a kind, by its id, and that Azure has not made yet.
    """

    sizes: Mapping[QuotaKey, VmSize]
    quotas: Mapping[QuotaKey, FamilyQuota]
    flavors: Sequence[Flavor]
    pools: Mapping[int, Sequence[NodePool]]
    to_come: Mapping[int, int]

    @classmethod
    def of(cls, clusters: Iterable[Cluster]) -> "Catalogue":
        """What there is where some clusters are, in Azure or not, with all of their own kinds of GPU; four queries."""
        clusters = list(clusters)
        return cls.at(
            [place for one in clusters if (place := place_of(one))], clusters=clusters
        )

    @classmethod
    def at(
        cls, places: Iterable[tuple[str, str]], *, clusters: Iterable[Cluster] = ()
    ) -> "Catalogue":
        """What there is in some subscriptions and regions, and on clusters wherever they are; four queries."""
        places = [*places]
        subscriptions, regions = {one for one, _ in places}, {one for _, one in places}
        here = {"subscription__in": subscriptions, "region__in": regions}
        in_azure = Q(cluster__region__in=regions) & ~Q(cluster__azure_id="")
        flavors = Flavor.objects.filter(in_azure | Q(cluster__in=[*clusters]))
        pools: dict[int, list[NodePool]] = defaultdict(list)
        for pool in NodePool.objects.filter(cluster__region__in=regions):
            pools[pool.cluster_id].append(pool)
        found = list(
            flavors.select_related("cluster").annotate(
                machines_to_come=_machines_to_come()
            )
        )
        return cls(
            {
                _key(one): one
                for one in VmSize.objects.filter(**here).with_machines_to_come()
            },
            {
                _key(one): one
                for one in FamilyQuota.objects.filter(**here).with_meters()
            },
            found,
            pools,
            {one.pk: one.machines_to_come or 0 for one in found},  # type: ignore[attr-defined]  # annotated above
        )

    def flavors_of(self, cluster: Cluster) -> list[Flavor]:
        """The kinds of GPU of a cluster."""
        return [one for one in self.flavors if one.cluster_id == cluster.pk]

    def subscription(self, subscription_id: str) -> Subscription | None:
        """A subscription of whose quotas some are known, without a query."""
        rows = (one.subscription for one in self.quotas.values())
        return next((one for one in rows if one.pk == subscription_id), None)

    def meter(self, subscription_id: str, quota: Quota) -> int | None:
        """The id of the limit whose readings are those of a quota; None where nobody has read it."""
        row = self.quotas.get(
            QuotaKey(subscription_id, quota.region, quota.name.casefold())
        )
        return None if row is None else row.meter

    def size(self, place: tuple[str, str], name: str) -> VmSize | None:
        """A size by its name, whatever its capitals; None for one that was not read there."""
        return self.sizes.get(QuotaKey(*place, name.casefold()))

    @cached_property
    def nodes(self) -> Sequence[GrowingNodes]:
        """All nodes whose size is known, with what they may grow to: each once, however many kinds are on them."""
        found: dict[int, GrowingNodes] = {}
        for flavor in self.flavors:
            drawn = self._drawn_by(flavor)
            if drawn is not None:
                before = found.get(drawn.pool)
                found[drawn.pool] = (
                    drawn
                    if before is None
                    else replace(drawn, kinds={**before.kinds, **drawn.kinds})
                )
        return [self._with_reserved(one) for one in found.values()]

    def nodes_of(self, flavor: Flavor) -> GrowingNodes | None:
        """The nodes that a kind of GPU is on; None where their size is not known."""
        return next((one for one in self.nodes if flavor.pk in one.kinds), None)

    def nodes_for(self, key: str) -> GrowingNodes | None:
        """The nodes among which machines are that are reserved for a kind of GPU, by its key; None for none in Azure.

        Its key is such as training-eastus/a100.
        """
        pks = {one.pk for one in self.flavors if one.key == key}
        return next((one for one in self.nodes if pks & one.carrying), None)

    def _with_reserved(self, nodes: GrowingNodes) -> GrowingNodes:
        """The same with what is reserved for them, as far as that carries every kind of GPU that is on them."""
        kinds = [one for one in self.flavors if one.pk in nodes.kinds]
        carrying = frozenset(
            one.pk
            for one in kinds
            if all(_carries(one, other) for other in kinds if other != one)
        )
        return replace(
            nodes, carrying=carrying, to_come=sum(self.to_come[one] for one in carrying)
        )

    def _drawn_by(self, flavor: Flavor) -> GrowingNodes | None:
        pools, place = (
            pools_of(flavor, self.pools.get(flavor.cluster_id, ())),
            place_of(flavor.cluster),
        )
        size = (
            self.size(place, pools[0].vm_size) if pools and place is not None else None
        )
        if size is None or place is None:
            return None
        names = quota_names(size, is_spot=_are_spot(pools))
        return GrowingNodes(
            pool=pools[0].pk,
            quotas=frozenset(QuotaKey(*place, one) for one in names if one),
            vcpus=size.vcpus,
            standing=_standing(pools),
            maximum=sum(_maximum(one) for one in pools),
            kinds={flavor.pk: OnNodes(flavor.gpus_per_node, flavor.gpus_cordoned)},
        )

    def promised(self, key: QuotaKey, *, but: int = 0) -> int:
        """vCPUs of a quota that were promised and that Azure does not count yet, but for the nodes of one pool.

        They are those of nodes still to come, for GPUs that are allocated, and of reservations still to be made.
        """
        sharing = (one for one in self.nodes if key in one.quotas and one.pool != but)
        return sum(self.nodes_to_come(one) for one in sharing) + self.reserved_to_come(
            key
        )

    def nodes_to_come(self, nodes: GrowingNodes) -> int:
        """vCPUs of the nodes that have to be added for GPUs that are allocated, beside what is reserved for them."""
        return nodes.vcpus_to_come({one.pk: one.allocated for one in self.flavors})

    def reserved_to_come(self, key: QuotaKey) -> int:
        """vCPUs of a quota that reservations take which Azure has not made yet."""
        here = (one for place, one in self.sizes.items() if place[:2] == key[:2])
        return sum(
            (one.machines_to_come or 0) * one.vcpus
            for one in here
            if key.family in quota_names(one, is_spot=False)
        )

    def quota(self, key: QuotaKey, *, but: int = 0) -> Quota | None:
        """A quota with what others are promised of it than the nodes of one pool; None for one that was not read.

        A machine that is reserved for these nodes and still to be made is one of them: it takes nothing from them.
        """
        row = self.quotas.get(key)
        if row is None:
            return None
        own = sum(one.to_come * one.vcpus for one in self.nodes if one.pool == but)
        return Quota(
            name=row.name,
            region=row.region,
            limit=row.limit,
            used=row.used,
            promised=max(0, self.promised(key, but=but) - own),
            seen_at=row.seen_at,
        )

    def behind(self, flavor: Flavor) -> Behind:
        """What stands in Azure behind a kind of GPU, with what others were promised of its quotas."""
        place = place_of(flavor.cluster)
        pools = pools_of(flavor, self.pools.get(flavor.cluster_id, ()))
        return Behind() if place is None or not pools else _behind(pools, self, place)


def _machines_to_come() -> Subquery:
    """Machines that are reserved for nodes of a flavor of an outer query, and that Azure has not made yet."""
    rows = Reservation.objects.to_come().filter(flavor=OuterRef("pk"))
    sums = rows.order_by().values("flavor").annotate(all=Sum(F("machines") - F("held")))
    return Subquery(sums.values("all"))


def _key(row: VmSize | FamilyQuota) -> QuotaKey:
    return QuotaKey(row.subscription_id, row.region, row.name.casefold())


def place_of(cluster: Cluster) -> tuple[str, str] | None:
    """The subscription and the region of a cluster; None for one that is not known to be in Azure."""
    aks = aks_of(cluster)
    return None if aks is None else (aks.subscription.lower(), cluster.region)


def quota_names(size: VmSize | None, *, is_spot: bool) -> tuple[str, str]:
    """The quotas that machines of a size count towards, in small letters: its family's, and one that all share."""
    # Spot machines of all families have one quota together.
    if is_spot:
        return "", FamilyQuota.SPOT
    return size.family.casefold() if size is not None else "", FamilyQuota.REGIONAL


def pools_of(flavor: Flavor, pools: Sequence[NodePool]) -> list[NodePool]:
    """The pools whose nodes are of a kind of GPU: the one that is named, else those that carry its labels."""
    if flavor.node_pool:
        named = [one for one in pools if one.name == flavor.node_pool]
        # Pools that the portal makes of reservations carry the labels of the kind that they are for.
        return named + [
            one
            for one in pools
            if one not in named and one.name.startswith("qm") and _fits(flavor, one)
        ]
    return [one for one in pools if _fits(flavor, one)]


def _fits(flavor: Flavor, pool: NodePool) -> bool:
    return _has_labels(flavor, pool.labels) and pool.is_spot == flavor.is_spot


def _carries(flavor: Flavor, other: Flavor) -> bool:
    """Whether nodes that are made for a kind of GPU, with its labels, are those of another as well."""
    return _has_labels(other, flavor.node_labels) and flavor.is_spot == other.is_spot


def _has_labels(flavor: Flavor, labels: Mapping[str, str]) -> bool:
    # What AKS puts on nodes by itself is no label of the pool.
    own = {
        name: value
        for name, value in flavor.node_labels.items()
        if not name.startswith(OF_AKS)
    }
    return bool(own) and own.items() <= labels.items()


def _behind(
    pools: Sequence[NodePool], known: Catalogue, place: tuple[str, str]
) -> Behind:
    size = known.size(place, pools[0].vm_size)
    family, regional = quota_names(size, is_spot=_are_spot(pools))
    seen_at = min(one.seen_at for one in pools)
    grows = any(one.max_nodes is not None for one in pools)
    joined = [one for one in pools if one.reserved]
    return Behind(
        machine=None if size is None else Machine(name=size.name, vcpus=size.vcpus),
        family=known.quota(QuotaKey(*place, family), but=pools[0].pk),
        regional=known.quota(QuotaKey(*place, regional), but=pools[0].pk),
        pool=Pool(
            name=" and ".join(one.name for one in pools),
            nodes=sum(one.nodes for one in pools),
            maximum=sum(_maximum(one) for one in pools) if grows else None,
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


def _are_spot(pools: Sequence[NodePool]) -> bool:
    return all(one.is_spot for one in pools)


def _maximum(pool: NodePool) -> int:
    return pool.max_nodes if pool.max_nodes is not None else pool.nodes


def _standing(pools: Sequence[NodePool]) -> int:
    """Nodes that take no more quota: those that stand, and those that are reserved and idle."""
    idle = sum(one.reserved for one in pools) - sum(one.reserved_used for one in pools)
    return sum(one.nodes for one in pools) + max(0, idle)


def quota_words(name: str, size: VmSize) -> str:
    """A quota of a size's machines, named in small letters, as the subject of a sentence."""
    return (
        OF_FAMILY.format(size.family)
        if name == size.family.casefold()
        else regional(name)
    )

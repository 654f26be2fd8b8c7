"""Gathering a kind of GPU's chain: from Azure, the fleet, and the portal's copy of the cluster. Asks no cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q

from capacity.chain.facts import Facts, Nodes, Pool, Promised, Queue, ResourceQuota
from capacity.chain.links import Layer, Link, Question, links
from capacity.chain.words import Verdict, verdict
from capacity.models import Subscription
from capacity.subscriptions.ids import aks_of
from capacity.subscriptions.pools import Behind, Catalogue
from fleet.models import Cluster, Flavor
from provisioning.models import Tenancy
from provisioning.pods import OVER
from workloads.freshness import Seen, seen_of
from workloads.models import ClusterObject
from workloads.observed import Queue as ClusterQueue
from workloads.reading.queues import queue_of
from workloads.reading.values import Object, gpus_of_pod, part, text


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of GPU with its chain."""

    flavor: Flavor
    facts: Facts

    def links(self, question: Question) -> tuple[Link, ...]:
        """The chain for a question."""
        return links(self.facts, question)


@dataclass(frozen=True, kw_only=True)
class Chain(Kind):
    """The same for one of a team's namespaces where one is looked at, and how far what is told can be trusted.

    `subscription` is None where the cluster is not known to be in Azure, or Azure is not connected; `meters` are the
    ids of the limits of its quotas.
    """

    tenancy: Tenancy | None
    seen: Seen
    subscription: Subscription | None
    meters: Mapping[Layer, int] = field(default_factory=dict)

    def answer(self, more: int, question: Question) -> Verdict:
        """What stops so many more."""
        return verdict(
            self.links(question), more, product=self.flavor.kind, question=question
        )


def kinds_of(clusters: Sequence[Cluster], *, now: datetime) -> list[Kind]:
    """Every kind of GPU of some clusters with what limits grants of it; what runs there is not looked at.

    Four queries, however many there are.
    """
    known, nothing = Catalogue.of(clusters), _Copied({}, (), ())
    return [
        Kind(flavor=one, facts=_facts(one, known.behind(one), nothing, None, now))
        for cluster in clusters
        for one in known.flavors_of(cluster)
    ]


def chain_of(
    flavor: Flavor, tenancy: Tenancy | None, known: Catalogue, *, now: datetime
) -> Chain:
    """The chain of one of the kinds of GPU that are known, for a tenancy where one is given; two queries."""
    cluster = flavor.cluster
    seen, copied = (
        seen_of(cluster, now),
        _copied(cluster, tenancy, known.flavors_of(cluster)),
    )
    behind = known.behind(flavor)
    subscription_id = _subscription_id(cluster)
    found = known.subscription(subscription_id)
    if found is None and subscription_id:
        found = Subscription.objects.filter(pk=subscription_id).first()
    meters = {
        layer: known.meter(subscription_id, quota)
        for layer, quota in (
            (Layer.FAMILY, behind.family),
            (Layer.REGIONAL, behind.regional),
        )
        if quota is not None
    }
    return Chain(
        flavor=flavor,
        tenancy=tenancy,
        # What is told of queues and pods is as old as the copy that tells of them.
        facts=_facts(flavor, behind, copied, tenancy, seen.heard_at or now),
        seen=seen,
        subscription=found,
        meters={layer: pk for layer, pk in meters.items() if pk is not None},
    )


@dataclass(frozen=True)
class _Copied:
    """What the portal knows of a cluster: its queues by name, the pods of a namespace, and its kinds of GPU."""

    queues: Mapping[str, ClusterQueue]
    pods: Sequence[Object]
    flavors: Sequence[Flavor]

    def busy(self, flavor: str) -> int:
        """GPUs of a flavor that run for anybody."""
        return sum(
            quota.reserved
            for one in self.queues.values()
            for quota in one.quotas
            if quota.flavor == flavor
        )


def _facts(
    flavor: Flavor,
    behind: Behind,
    copied: _Copied,
    tenancy: Tenancy | None,
    heard_at: datetime,
) -> Facts:
    seen_at = flavor.gpus_seen_at or heard_at
    pool = behind.pool
    if pool is None and flavor.max_nodes:
        # What platform leads said of the autoscaler, where Azure does not say it.
        standing = -(
            -(flavor.gpus_ready + flavor.gpus_cordoned) // flavor.gpus_per_node
        )
        pool = Pool(name="", nodes=standing, maximum=flavor.max_nodes, seen_at=seen_at)
    return Facts(
        product=flavor.kind,
        gpus_per_node=flavor.gpus_per_node,
        nodes=Nodes(
            ready=flavor.gpus_ready, cordoned=flavor.gpus_cordoned, seen_at=seen_at
        ),
        promised=Promised(granted=flavor.allocated, obtainable=flavor.gpus_total),
        busy=copied.busy(flavor.name),
        machine=behind.machine,
        family=behind.family,
        regional=behind.regional,
        pool=pool,
        reserved=behind.reserved,
        queue=_queue(flavor, copied, tenancy, heard_at)
        if tenancy is not None
        else None,
        namespace=_namespace(flavor, copied, tenancy, heard_at)
        if tenancy is not None
        else None,
    )


def _queue(
    flavor: Flavor, copied: _Copied, tenancy: Tenancy, heard_at: datetime
) -> Queue | None:
    """The tenancy's ClusterQueue, which has the name of its namespace, beside those that lend to it."""
    own = copied.queues.get(tenancy.namespace)
    mine = (
        next((one for one in own.quotas if one.flavor == flavor.name), None)
        if own is not None
        else None
    )
    if own is None or mine is None:
        return None
    lenders = [
        quota
        for one in copied.queues.values()
        if one.name != own.name and own.cohort and one.cohort == own.cohort
        for quota in one.quotas
        if quota.flavor == flavor.name
    ]
    idle = sum(max(0, min(one.lends, one.nominal - one.reserved)) for one in lenders)
    borrowed_by_others = sum(one.borrowed for one in lenders)
    return Queue(
        name=own.name,
        nominal=mine.nominal,
        borrowable=mine.borrowing if mine.borrowing is not None else idle,
        used=mine.reserved,
        idle_elsewhere=max(0, idle - borrowed_by_others),
        seen_at=heard_at,
        admits=own.stop_policy == "None" and (own.active is None or own.active.is_true),
    )


def _namespace(
    flavor: Flavor, copied: _Copied, tenancy: Tenancy, heard_at: datetime
) -> ResourceQuota | None:
    """What the namespace's quota allows of the flavor's resource, over all kinds that nodes count alike."""
    kinds = {one.name: one for one in copied.flavors}
    alike = [
        one
        for one in tenancy.desired.flavors
        if one.name in kinds and kinds[one.name].resource == flavor.resource
    ]
    if not alike:
        return None
    hard = sum(one.gpus + one.borrow + one.over for one in alike)
    used = sum(
        gpus_of_pod(part(one, "spec"))
        for one in copied.pods
        if text(part(one, "status"), "phase") not in OVER
    )
    return ResourceQuota(hard=hard, used=used, seen_at=heard_at)


def _copied(
    cluster: Cluster, tenancy: Tenancy | None, flavors: Sequence[Flavor]
) -> _Copied:
    """The ClusterQueues of a cluster and the pods of a namespace there; one query."""
    wanted = Q(kind="ClusterQueue")
    if tenancy is not None:
        wanted |= Q(kind="Pod", namespace=tenancy.namespace)
    rows = ClusterObject.objects.filter(wanted, cluster=cluster).values_list(
        "kind", "body"
    )
    found = list(rows)
    queues = (queue_of(body) for kind, body in found if kind == "ClusterQueue")
    pods = [body for kind, body in found if kind == "Pod"]
    return _Copied({one.name: one for one in queues}, pods, flavors)


def _subscription_id(cluster: Cluster) -> str:
    aks = aks_of(cluster)
    return aks.subscription.lower() if aks is not None else ""

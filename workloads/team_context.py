"""What the portal itself knows of a team's work, before it reads a copy of what is on a cluster."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, FilteredRelation, OuterRef, Q, QuerySet

from accounts.models import Team
from approvals.models import Request
from approvals.requests.listing import waits_for
from approvals.states import State
from fleet.models import Cluster, Flavor
from fleet.names import product_words, profile_of
from provisioning.models import Tenancy
from workloads.freshness import Seen, seen_in
from workloads.models import Feed
from workloads.watching.scopes import EVERYBODY


@dataclass(frozen=True, kw_only=True)
class FlavorKnown:
    """A kind of GPU on one of the team's clusters."""

    cluster: int
    name: str
    title: str
    node_labels: Mapping[str, str]
    gpus: int
    profile: str


@dataclass(frozen=True, kw_only=True)
class AllocationKnown:
    """GPUs that the team holds, or has booked, in one of its namespaces."""

    tenancy: int
    cluster: int
    flavor: str
    gpus: int
    begins: datetime
    ends: datetime
    has_begun: bool


@dataclass(frozen=True, kw_only=True)
class RequestKnown:
    """A request for more GPUs of a flavor in one of the team's namespaces that waits for whom, and since when."""

    tenancy: int
    flavor: str
    number: int
    gpus: int
    who: str
    since: datetime


@dataclass(frozen=True, kw_only=True)
class TeamContext:
    """What the portal knows of a team's work before it reads a copy.

    `seen` is by cluster, `feeds` are theirs, and `revisions` (feed, scope, revision) tell one state of the copies from
    all others. `sees_all` is whether the reader may see jobs of all teams by name.
    """

    team: Team
    tenancies: Sequence[Tenancy]
    seen: Mapping[int, Seen]
    feeds: frozenset[int]
    revisions: Sequence[tuple[int, str, str]]
    flavors: Sequence[FlavorKnown]
    allocations: Sequence[AllocationKnown]
    requests: Sequence[RequestKnown]
    sees_all: bool

    def tenancies_on(self, cluster: int) -> Mapping[str, Tenancy]:
        """Those on a cluster, by the namespace, which is the name of their queue, too."""
        return {
            one.namespace: one for one in self.tenancies if one.cluster_id == cluster
        }

    def flavors_on(self, cluster: int) -> Mapping[str, FlavorKnown]:
        """Those of a cluster, by name."""
        return {one.name: one for one in self.flavors if one.cluster == cluster}

    @property
    def mark(self) -> str:
        """A digest of all of it, copies included: of two that are equal the same explanations follow.

        Empty while a copy has no revision: what was copied by an earlier version of the portal changes without one.
        """
        if {
            feed for feed, scope, _ in self.revisions if scope == EVERYBODY
        } != self.feeds:
            return ""
        told = (
            self.sees_all,
            [
                (
                    one.pk,
                    one.cluster_id,
                    one.namespace,
                    one.leaves_at,
                    one.is_settled,
                )
                for one in self.tenancies
            ],
            [
                (
                    one.cluster.pk,
                    one.cluster.name,
                    one.cluster.title,
                    one.cluster.last_maintenance,
                    one.cluster.queues_down_since,
                    one.cluster.queue_priorities,
                    one.cluster.labels_jobs,
                    one.is_known,
                    one.silent_since,
                )
                for one in self.seen.values()
            ],
            self.revisions,
            [vars(one) for one in self.flavors],
            [vars(one) for one in self.allocations],
            [vars(one) for one in self.requests],
        )
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()


def context_of(team: Team, *, sees_all: bool, now: datetime) -> TeamContext:
    """What the portal knows of a team's work; three queries, and two more where it waits for more GPUs."""
    rows = (
        Tenancy.objects.present()
        .filter(team=team)
        .annotate(asks=Exists(_waiting().filter(tenancy=OuterRef("pk"))))
        .select_related("cluster", "team")
        .order_by("pk")
    )
    tenancies = list(rows)
    clusters = {one.cluster_id: one.cluster for one in tenancies}
    feeds, revisions = _feeds(
        clusters, {EVERYBODY, *(one.namespace for one in tenancies)}
    )
    flavors, allocations = _flavors(clusters, team)
    return TeamContext(
        team=team,
        tenancies=tenancies,
        seen=seen_in(clusters, feeds, now),
        feeds=frozenset(one.pk for one in feeds),
        revisions=revisions,
        flavors=flavors,
        allocations=allocations,
        requests=_requests(team) if any(vars(one)["asks"] for one in tenancies) else [],
        sees_all=sees_all,
    )


def _waiting() -> QuerySet[Request]:
    """Requests for GPUs beyond what is held that nobody has answered."""
    return Request.objects.filter(
        state=State.WAITING, renews=None, flavor__isnull=False
    )


def _requests(team: Team) -> list[RequestKnown]:
    """What a team asked for beyond what it holds and nobody has answered, the oldest first."""
    rows = _waiting().filter(team=team, tenancy__isnull=False)
    return [
        RequestKnown(
            tenancy=one.tenancy_id,
            flavor=one.flavor.name,
            number=one.pk,
            gpus=one.gpus_now,
            who=waits_for(one),
            since=one.asked_at,
        )
        for one in rows.select_related("requester", "flavor")
        .prefetch_related("steps")
        .order_by("pk")
        if one.tenancy_id is not None and one.flavor is not None
    ]


def _feeds(
    clusters: Mapping[int, Cluster], scopes: Iterable[str]
) -> tuple[list[Feed], list[tuple[int, str, str]]]:
    """The feeds of clusters, and the revisions of their copies in these scopes: feed, scope, revision."""
    rows = Feed.objects.filter(cluster__in=clusters).annotate(
        own=FilteredRelation(
            "revisions", condition=Q(revisions__scope__in=sorted(scopes))
        ),
        scope=F("own__scope"),
        revision=F("own__revision"),
    )
    feeds, revisions = dict[int, Feed](), list[tuple[int, str, str]]()
    for one in rows.order_by("pk", "own__scope"):
        feeds[one.pk], told = one, vars(one)
        if told["revision"] is not None:
            revisions.append((one.pk, told["scope"], str(told["revision"])))
    return list(feeds.values()), revisions


def _flavors(
    clusters: Mapping[int, Cluster], team: Team
) -> tuple[list[FlavorKnown], list[AllocationKnown]]:
    """The flavors of clusters, and what a team holds of them."""
    held = Q(allocations__team=team, allocations__ended_at=None)
    rows = Flavor.objects.filter(cluster__in=clusters).annotate(
        held=FilteredRelation("allocations", condition=held)
    )
    flavors, allocations = dict[tuple[int, str], FlavorKnown](), list[AllocationKnown]()
    for cluster, name, product, resource, labels, gpus, *own in rows.order_by(
        "pk", "held__pk"
    ).values_list(
        "cluster",
        "name",
        "product",
        "resource",
        "node_labels",
        "gpus_total",
        "held__tenancy",
        "held__gpus",
        "held__starts_at",
        "held__kept_until",
        "held__begun_at",
    ):
        flavors[cluster, name] = FlavorKnown(
            cluster=cluster,
            name=name,
            title=product_words(product, resource),
            node_labels=labels,
            gpus=gpus,
            profile=profile_of(resource),
        )
        tenancy, count, begins, ends, begun = own
        if tenancy is not None:
            allocations.append(
                AllocationKnown(
                    tenancy=tenancy,
                    cluster=cluster,
                    flavor=name,
                    gpus=count,
                    begins=begins,
                    ends=ends,
                    has_begun=begun is not None,
                )
            )
    return list(flavors.values()), allocations

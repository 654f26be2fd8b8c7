"""What a team's work is explained from: what the portal knows of it, and the copies of what is on its clusters."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, F, FilteredRelation, OuterRef, Q

from accounts.models import Team
from fleet.models import Cluster as ClusterRow
from fleet.models import Flavor
from fleet.names import product_words, profile_of
from provisioning.models import Tenancy
from workloads.estimating import History, history_of
from workloads.freshness import Seen, seen_in
from workloads.grouping import pieces_of
from workloads.listing import (
    Around,
    QueueSeen,
    Work,
    by_name,
    in_order,
    queue_seen,
    work_of,
)
from workloads.models import ClusterObject, Feed
from workloads.observed import Allocation as Held
from workloads.observed import Cluster, Elsewhere, JobKey, Nodes, Queue, Viewer
from workloads.own_work import POD, OwnWork, Place, own_work_in
from workloads.queueing import by_queue
from workloads.reading.facts import waits_of
from workloads.reading.limits import limits_of
from workloads.reading.pods import OVER, event_of, nodes_of
from workloads.reading.queues import (
    promised_by_volcano,
    quota_holders_of,
    team_queue_of,
)
from workloads.reading.values import Object, part, text
from workloads.reading.work import Read, read_once
from workloads.reasons.clock import Clock
from workloads.reasons.latest_starts import Change, changes_of_grant
from workloads.watching.kept import JOBS
from workloads.watching.scopes import EVERYBODY

Objects = Mapping[str, Sequence[Object]]
MAX_OVER = 20


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
    title: str
    gpus: int
    begins: datetime
    ends: datetime
    has_begun: bool


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
    sees_all: bool

    def tenancies_on(self, cluster: int) -> Mapping[str, Tenancy]:
        """Those on a cluster, by the namespace, which is the name of their queue, too."""
        return {
            one.namespace: one for one in self.tenancies if one.cluster_id == cluster
        }

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
                    one.is_known,
                    one.silent_since,
                )
                for one in self.seen.values()
            ],
            self.revisions,
            [vars(one) for one in self.flavors],
            [vars(one) for one in self.allocations],
        )
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A team's work in the order in which it is shown, the history of each queue, and until when all of it holds.

    `left_out` counts what ended earlier than the last twenty.
    """

    work: Sequence[Work]
    left_out: int
    histories: Mapping[str, History]
    until: datetime | None


def context_of(team: Team, *, sees_all: bool, now: datetime) -> TeamContext:
    """What the portal knows of a team's work; three queries."""
    rows = (
        Tenancy.objects.present()
        .filter(team=team)
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
        sees_all=sees_all,
    )


def explained(known: TeamContext, *, now: datetime) -> Explained:
    """Read the copies and explain all that runs and waits in a team's namespaces.

    Two queries, however much it is, and a third one where there are pods that no job made.
    """
    namespaces = defaultdict[int, set[str]](set)
    for one in known.tenancies:
        namespaces[one.cluster_id].add(one.namespace)
    objects = _objects(namespaces)
    viewer = Viewer(
        frozenset(name for names in namespaces.values() for name in names),
        sees_all=known.sees_all,
    )
    nodes = {pk: _nodes(pk, objects[pk], known.flavors) for pk in known.seen}
    clock = Clock(now)
    listened = {one.cluster.name: one.is_listened_to for one in known.seen.values()}
    free = [one for one in _free(known, objects, nodes, clock) if listened[one.cluster]]
    work, histories = list[Work](), dict[str, History]()
    reads = {pk: read_once() for pk in known.seen}
    own = own_work_in(
        known.tenancies,
        {
            seen.cluster.name: [*_keys(objects[pk], namespaces[pk], reads[pk])]
            for pk, seen in known.seen.items()
        },
    )
    for pk, read in reads.items():
        in_queue = by_queue(
            objects[pk]["Workload"], objects[pk]["LocalQueue"], read=read
        )
        found = {
            name: _history(name, workloads, read)
            for name, workloads in in_queue.items()
        }
        around = _around(
            known,
            pk,
            objects[pk],
            _queues(known, pk, objects[pk], in_queue, read, own, now),
            found,
            viewer,
            nodes[pk],
            free,
            read,
            own,
        )
        work += _work(objects[pk], sorted(namespaces[pk]), around, now, read=read)
        histories |= {
            history_key(around.cluster, name): one for name, one in found.items()
        }
    ends = [one.why.until for one in work if one.why.until is not None]
    over = sorted((one for one in work if one.is_over), key=_since, reverse=True)
    gone = {id(one) for one in over[MAX_OVER:]}
    return Explained(
        work=in_order(_with_names(own, [one for one in work if id(one) not in gone])),
        left_out=len(gone),
        histories=histories,
        until=min([*ends, *filter(None, [clock.until])], default=None),
    )


def _keys(objects: Objects, namespaces: set[str], read: Read) -> Iterator[JobKey]:
    """The keys of a team's jobs on a cluster, and of its pods that no job made."""
    for workload in objects["Workload"]:
        yield from _within(namespaces, read(workload).key)
    for job in objects["Job"]:
        yield from _within(namespaces, JobKey(*_place(job)))
    for pod in objects["Pod"]:
        if not part(pod, "metadata").get("ownerReferences"):
            yield from _within(namespaces, JobKey(*_place(pod), kind=POD))


def _within(namespaces: set[str], key: JobKey) -> Iterator[JobKey]:
    if key.namespace in namespaces:
        yield key


def _with_names(own: Mapping[Place, OwnWork], work: Sequence[Work]) -> Iterator[Work]:
    """Each with what the portal started it as: its row is there before anything of it is on a cluster."""
    for one in work:
        found = own.get((one.cluster, one.key.namespace, one.key.name))
        if found is None:
            yield one
        else:
            yield replace(
                one, run=found.run, notebook=found.notebook, title=found.title
            )


def _since(one: Work) -> datetime:
    return one.why.since


def history_key(cluster: str, queue: str) -> str:
    """The name under which a queue's history is kept."""
    return f"{cluster}/{queue}"


def _feeds(
    clusters: Mapping[int, ClusterRow], scopes: Iterable[str]
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
    clusters: Mapping[int, ClusterRow], team: Team
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
        title = product_words(product, resource)
        flavors[cluster, name] = FlavorKnown(
            cluster=cluster,
            name=name,
            title=title,
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
                    title=title,
                    gpus=count,
                    begins=begins,
                    ends=ends,
                    has_begun=begun is not None,
                )
            )
    return list(flavors.values()), allocations


def _objects(namespaces: Mapping[int, set[str]]) -> dict[int, Objects]:
    """The copies that explain the team's work, by cluster and kind: its own, and what of others' counts for it.

    That is what has GPUs of the team's queues, which are called as its namespaces, and what takes room on nodes. All of
    it is in the scopes whose revisions are looked at (workloads.watching.scopes).
    """
    # Of one whose phase is absent the database would say neither that it is over nor that it is not.
    goes_on = Q(body__status__phase__isnull=True) | ~Q(body__status__phase__in=OVER)
    on_a_node = Q(kind="Pod", body__spec__has_key="nodeName") & goes_on
    of_a_team = Exists(
        Tenancy.objects.present().filter(
            cluster=OuterRef("cluster"), namespace=OuterRef("name")
        )
    )
    wanted = Q(pk__in=())
    for pk, names in namespaces.items():
        in_queue = Q(kind="Workload", body__status__admission__clusterQueue__in=names)
        queues = Q(kind="ClusterQueue") & (Q(name__in=names) | ~of_a_team)
        wanted |= Q(cluster=pk) & (
            Q(namespace__in=names) | Q(kind="Node") | queues | in_queue | on_a_node
        )
    found: dict[int, dict[str, list[Object]]] = {
        pk: defaultdict(list) for pk in namespaces
    }
    rows = ClusterObject.objects.filter(wanted).values_list("cluster", "kind", "body")
    for pk, kind, body in rows.iterator():
        found[pk]["Job" if kind in JOBS else kind].append(body)
    return dict[int, Objects](found)


def _nodes(cluster: int, objects: Objects, flavors: Iterable[FlavorKnown]) -> Nodes:
    here = [one for one in flavors if one.cluster == cluster]
    labels, profiles = (
        {one.name: one.node_labels for one in here},
        {one.name: one.profile for one in here},
    )
    return nodes_of(objects["Node"], objects["Pod"], labels, profiles)


def _around(
    known: TeamContext,
    cluster: int,
    objects: Objects,
    queues: Mapping[str, QueueSeen],
    histories: Mapping[str, History],
    viewer: Viewer,
    nodes: Nodes,
    free: Sequence[Elsewhere],
    read: Read,
    own: Mapping[Place, OwnWork],
) -> Around:
    seen = known.seen[cluster]
    shared = {
        "allocations": tuple(
            Held(flavor=one.flavor, gpus=one.gpus, begins=one.begins, ends=one.ends)
            for one in known.allocations
            if one.cluster == cluster
        ),
        "capacity": {
            one.name: one.gpus for one in known.flavors if one.cluster == cluster
        },
        "titles": {
            one.name: one.title for one in known.flavors if one.cluster == cluster
        },
        "cluster": Cluster(
            title=seen.cluster.title,
            silent_since=seen.silent_since,
            maintenance=seen.cluster.last_maintenance,
        ),
        "viewer": viewer,
        # Who made another one stop is known where it is in a queue of the team.
        "jobs": {
            key.uid: key for one in objects["Workload"] if (key := read(one).key).uid
        },
        "elsewhere": tuple(free),
        "called": {
            (namespace, name): one.title
            for (there, namespace, name), one in own.items()
            if there == seen.cluster.name
        },
    }

    # A team's own queue has the name of its namespace (provisioning.desired.queues).
    tenancies = known.tenancies_on(cluster)

    def known_of_queue(queue: Queue | None) -> Mapping[str, Any]:
        name = queue.name if queue is not None else ""
        own_queue = tenancies.get(name)
        return {
            **shared,
            "history": histories.get(name),
            "leaves_at": own_queue.leaves_at if own_queue else None,
            "is_queue_behind": own_queue is not None and not own_queue.is_settled,
        }

    return Around(
        cluster=seen.cluster.name,
        queues=queues,
        team_queues={_place(one): team_queue_of(one) for one in objects["LocalQueue"]},
        nodes=nodes,
        known=known_of_queue,
    )


def _queues(
    known: TeamContext,
    cluster: int,
    objects: Objects,
    in_queue: Mapping[str, Sequence[Object]],
    read: Read,
    own: Mapping[Place, OwnWork],
    now: datetime,
) -> dict[str, QueueSeen]:
    """Every queue in which something runs or waits; of a team's own, by when those in it start, too."""
    # Queues of other teams are not read; a team's ClusterQueue is its own (provisioning.desired): none is missed.
    bodies = {
        text(part(one, "metadata"), "name"): one for one in objects["ClusterQueue"]
    }
    row = known.seen[cluster].cluster
    tenancies = known.tenancies_on(cluster)
    limits = limits_of(
        objects["Job"],
        {
            (namespace, name): one.limit
            for (there, namespace, name), one in own.items()
            if there == row.name and one.limit is not None
        },
    )
    return {
        name: queue_seen(
            bodies.get(name),
            found,
            read=read,
            limits=limits,
            changes=_changes(known, tenancies[name]) if name in tenancies else (),
            maintenance=row.maintenance(now),
            # Volcano's queues go by shares: nobody has a place in them.
            now=now if name in tenancies and not row.has_volcano else None,
        )
        for name, found in in_queue.items()
    }


def _changes(known: TeamContext, tenancy: Tenancy) -> Iterator[Change]:
    """When the queue of a namespace has more GPUs or fewer, as what is granted and booked stands now."""
    for one in known.allocations:
        if one.tenancy == tenancy.pk:
            begins = None if one.has_begun else one.begins
            yield from changes_of_grant(
                one.flavor, one.gpus, begins=begins, ends=one.ends
            )


def _free(
    known: TeamContext,
    objects: Mapping[int, Objects],
    nodes: Mapping[int, Nodes],
    clock: Clock,
) -> Iterator[Elsewhere]:
    """GPUs that the team holds and nothing of its uses now, by namespace and flavor, with what one node has of them."""
    by_pk = {one.pk: one for one in known.tenancies}
    counts = Counter[tuple[int, str]]()
    titles = dict[tuple[int, str], str]()
    profiles = {(one.cluster, one.name): one.profile for one in known.flavors}
    for one in known.allocations:
        if one.tenancy in by_pk and one.has_begun and not clock.has_come(one.ends):
            counts[one.tenancy, one.flavor] += one.gpus
            titles[one.tenancy, one.flavor] = one.title
    used = {pk: _used(by_pk[pk], objects) for pk in {pk for pk, _ in counts}}
    for (pk, flavor), gpus in counts.items():
        tenancy = by_pk[pk]
        profile = profiles.get((tenancy.cluster_id, flavor), "")
        spare = [
            each.free for each in nodes[tenancy.cluster_id] if each.flavor == flavor
        ]
        yield Elsewhere(
            cluster=tenancy.cluster.name,
            namespace=tenancy.namespace,
            flavor=flavor,
            title=titles[pk, flavor],
            gpus=min(gpus - used[pk].of(flavor, profile), sum(spare)),
            largest=max(spare, default=0),
            profile=profile,
        )


class _Used(NamedTuple):
    """GPUs of a namespace that its work has, by flavor, and that Volcano has promised to it, by profile."""

    held: Mapping[str, int]
    promised: Mapping[str, int]

    def of(self, flavor: str, profile: str) -> int:
        """Those that are of a flavor, or may come to be."""
        return self.held.get(flavor, 0) + self.promised.get(profile, 0)


def _used(tenancy: Tenancy, objects: Mapping[int, Objects]) -> _Used:
    own = [
        one
        for one in objects[tenancy.cluster_id]["Workload"]
        if _is_in(one, tenancy.namespace)
    ]
    held = Counter[str]()
    for one in quota_holders_of(own):
        held[one.flavor] += one.gpus
    return _Used(held, promised_by_volcano(own) if tenancy.cluster.has_volcano else {})


def _place(found: Object) -> tuple[str, str]:
    meta = part(found, "metadata")
    return text(meta, "namespace"), text(meta, "name")


def _history(queue: str, workloads: Sequence[Object], read: Read) -> History:
    return history_of(
        waits_of(workloads, read=read),
        source=f"the jobs of {queue} that the cluster still shows",
    )


def _work(
    objects: Objects,
    namespaces: Sequence[str],
    around: Around,
    now: datetime,
    *,
    read: Read,
) -> list[Work]:
    found: list[Work] = []
    in_namespace = {kind: _by_namespace(objects[kind]) for kind in _OWN}
    for namespace in namespaces:
        own = {kind: in_namespace[kind].get(namespace, ()) for kind in _OWN}
        events = by_name(map(event_of, own["Event"]))
        pieces = pieces_of(own["Workload"], own["Job"], own["Pod"], read=read)
        found += [work_of(piece, around, events, now=now) for piece in pieces]
    return found


_OWN = ("Workload", "Job", "Pod", "Event")


def _by_namespace(objects: Iterable[Object]) -> Mapping[str, Sequence[Object]]:
    found = defaultdict[str, list[Object]](list)
    for one in objects:
        found[text(part(one, "metadata"), "namespace")].append(one)
    return found


def _is_in(found: Object, namespace: str) -> bool:
    return text(part(found, "metadata"), "namespace") == namespace

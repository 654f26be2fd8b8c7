"""A team's work on every cluster, from the portal's own copy: no page view and no call asks a cluster."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from accounts.models import Team, User
from accounts.roles import Permission
from allocations.models import Allocation
from fleet.models import Cluster as ClusterRow
from fleet.models import Flavor
from provisioning.models import Tenancy
from workloads.estimating import History, history_of
from workloads.listing import Around, Work, by_name, in_order, queue_seen, work_of
from workloads.models import ClusterObject, Feed
from workloads.observed import Allocation as Held
from workloads.observed import Cluster, Elsewhere, Node, Nodes, Queue, Viewer
from workloads.pieces import pieces_of
from workloads.queueing import by_queue
from workloads.reading.facts import waits_of
from workloads.reading.pods import OVER, event_of, nodes_of
from workloads.reading.queues import quota_holders_of, team_queue_of
from workloads.reading.values import Object, part, text
from workloads.reading.work import Read, read_once
from workloads.watching.kept import KINDS

# A watch ends every ten seconds at the latest, and says so: what is older is not being watched.
FRESH = timedelta(seconds=30)
MOST_OVER = 20


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How far what is told of a cluster can be trusted: since when it is silent, or that nobody has looked yet."""

    cluster: ClusterRow
    heard_at: datetime | None
    silent_since: datetime | None
    message: str

    @property
    def is_known(self) -> bool:
        """Whether everything that is copied has been read at least once."""
        return self.heard_at is not None

    @property
    def is_listened_to(self) -> bool:
        """Whether what is copied is how things are now."""
        return self.is_known and self.silent_since is None


@dataclass(frozen=True, kw_only=True)
class TeamWork:
    """Everything of one team: what runs first, then what waits and what ended last; `left_out` counts older ends.

    `tenancies` and `flavors` are those of the clusters that were read.
    """

    team: Team
    tenancies: Sequence[Tenancy]
    flavors: Sequence[Flavor]
    clusters: Sequence[Seen]
    work: Sequence[Work]
    left_out: int

    @property
    def held(self) -> int:
        """GPUs that all of it has now."""
        return sum(one.held for one in self.work)


def work_of_team(team: Team, *, by: User, now: datetime, only: tuple[Tenancy, str] | None = None) -> TeamWork:
    """What runs and waits in a team's namespaces, whoever started it; five queries, however much it is.

    `only` one piece, by its tenancy (with its cluster) and name; the rest is read for its line and not explained.
    """
    rows = Tenancy.objects.present().filter(team=team).select_related("cluster", "team").order_by("pk")
    tenancies = list(rows) if only is None else [only[0]]
    clusters = {one.cluster_id: one.cluster for one in tenancies}
    namespaces = defaultdict[int, set[str]](set)
    for one in tenancies:
        namespaces[one.cluster_id].add(one.namespace)
    seen = _seen(clusters, now)
    objects = _objects(namespaces)
    flavors = list(Flavor.objects.filter(cluster__in=clusters).select_related("cluster"))
    held = list(Allocation.objects.live().of_gpus().filter(team=team).select_related("flavor", "tenancy"))
    viewer = Viewer(
        frozenset(name for names in namespaces.values() for name in names),
        sees_all=by.may(Permission.SEE_ALL_TEAMS),
    )
    nodes = {
        pk: nodes_of(
            objects[pk]["Node"],
            objects[pk]["Pod"],
            {one.name: one.node_labels for one in flavors if one.cluster_id == pk},
        )
        for pk in clusters
    }
    listened = {one.cluster.name: one.is_listened_to for one in seen.values()}
    free = [one for one in _free(held, tenancies, objects, nodes, now=now) if listened[one.cluster]]
    work: list[Work] = []
    for pk, cluster in clusters.items():
        mine = [one for one in flavors if one.cluster_id == pk]
        read = read_once()
        around = _around(cluster, objects[pk], mine, held, viewer, seen[pk], nodes[pk], free, read)
        work += _work(
            objects[pk], sorted(namespaces[pk]), around, now, name=only[1] if only else "", read=read
        )
    ordered = in_order(work)
    over = [one for one in ordered if one.is_over]
    gone = {id(one) for one in sorted(over, key=_ended, reverse=True)[MOST_OVER:]}
    return TeamWork(
        team=team,
        tenancies=tenancies,
        flavors=flavors,
        clusters=[seen[pk] for pk in clusters],
        work=[one for one in ordered if id(one) not in gone],
        left_out=len(gone),
    )


def _ended(one: Work) -> datetime:
    return one.why.since


def seen_of(cluster: ClusterRow, now: datetime) -> Seen:
    """How far what is told of a cluster can be trusted; one query."""
    return _seen({cluster.pk: cluster}, now)[cluster.pk]


def _seen(clusters: Mapping[int, ClusterRow], now: datetime) -> dict[int, Seen]:
    feeds = defaultdict[int, list[Feed]](list)
    for feed in Feed.objects.filter(cluster__in=clusters):
        feeds[feed.cluster_id].append(feed)
    return {pk: _seen_of(cluster, feeds[pk], now) for pk, cluster in clusters.items()}


def _seen_of(cluster: ClusterRow, feeds: Sequence[Feed], now: datetime) -> Seen:
    """The oldest of what is known: one kind that is not read makes the whole as old as it."""
    heard = [feed.heard_at for feed in feeds if feed.listed_at and feed.heard_at]
    oldest = min(heard) if len(heard) == len(KINDS) else None
    silent = [feed for feed in feeds if feed.silent_since]
    first = min(silent, key=lambda feed: feed.silent_since or now, default=None)
    since = first.silent_since if first else None
    if since is None and oldest is not None and now - oldest > FRESH:
        since = oldest
    return Seen(
        cluster=cluster,
        heard_at=oldest,
        silent_since=min(filter(None, (since, oldest))) if since else None,
        message=first.message if first else "",
    )


Objects = Mapping[str, Sequence[Object]]


def _objects(namespaces: Mapping[int, set[str]]) -> dict[int, Objects]:
    """The copies that explain the team's work, by cluster and kind: its own, and what of others' counts for it.

    That is what has GPUs of the team's queues, which are called as its namespaces, and what takes room on nodes.
    """
    # Of one whose phase is absent the database would say neither that it is over nor that it is not.
    goes_on = Q(body__status__phase__isnull=True) | ~Q(body__status__phase__in=OVER)
    on_a_node = Q(kind="Pod", body__spec__has_key="nodeName") & goes_on
    wanted = Q(pk__in=())
    for pk, names in namespaces.items():
        in_queue = Q(kind="Workload", body__status__admission__clusterQueue__in=names)
        own, shared = Q(namespace__in=names), Q(kind__in=("Node", "ClusterQueue"))
        wanted |= Q(cluster=pk) & (own | shared | in_queue | on_a_node)
    found: dict[int, dict[str, list[Object]]] = {pk: defaultdict(list) for pk in namespaces}
    rows = ClusterObject.objects.filter(wanted).values_list("cluster", "kind", "body")
    for pk, kind, body in rows.iterator():
        found[pk][kind].append(body)
    return dict[int, Objects](found)


def _around(
    cluster: ClusterRow,
    objects: Objects,
    flavors: Sequence[Flavor],
    held: Sequence[Allocation],
    viewer: Viewer,
    seen: Seen,
    nodes: Nodes,
    free: Sequence[Elsewhere],
    read: Read,
) -> Around:
    # Queues of other teams are not read; a team's ClusterQueue is its own (provisioning.desired): none is missed.
    in_queue = by_queue(objects["Workload"], objects["LocalQueue"], read=read)
    queues = {text(part(one, "metadata"), "name"): one for one in objects["ClusterQueue"]}
    histories = {name: _history(name, found, read) for name, found in in_queue.items()}
    shared = {
        "allocations": tuple(
            Held(flavor=one.flavor.name, gpus=one.gpus, begins=one.starts_at, ends=one.kept_until)
            for one in held
            if one.flavor and one.tenancy and one.tenancy.cluster_id == cluster.pk
        ),
        "capacity": {one.name: one.gpus_total for one in flavors},
        "titles": {one.name: one.product for one in flavors},
        "cluster": Cluster(title=cluster.title, silent_since=seen.silent_since),
        "viewer": viewer,
        "elsewhere": tuple(free),
    }

    def known(queue: Queue | None) -> Mapping[str, Any]:
        return {**shared, "history": histories.get(queue.name) if queue is not None else None}

    return Around(
        cluster=cluster.name,
        queues={name: queue_seen(queues.get(name), found, read=read) for name, found in in_queue.items()},
        team_queues={_place(one): team_queue_of(one) for one in objects["LocalQueue"]},
        nodes=nodes,
        known=known,
    )


def _free(
    held: Sequence[Allocation],
    tenancies: Sequence[Tenancy],
    objects: Mapping[int, Objects],
    nodes: Mapping[int, Sequence[Node]],
    *,
    now: datetime,
) -> Iterator[Elsewhere]:
    """GPUs that the team holds and nothing of its uses now, by namespace and flavor, with what one node has of them."""
    by_pk = {one.pk: one for one in tenancies}
    counts = Counter[tuple[int, str]]()
    titles = dict[str, str]()
    for one in held:
        if one.flavor and one.tenancy_id in by_pk and one.starts_at <= now < one.kept_until:
            counts[one.tenancy_id, one.flavor.name] += one.gpus
            titles[one.flavor.name] = one.flavor.product
    for (pk, flavor), gpus in counts.items():
        tenancy = by_pk[pk]
        own = [one for one in objects[tenancy.cluster_id]["Workload"] if _is_in(one, tenancy.namespace)]
        used = sum(one.gpus for one in quota_holders_of(own) if one.flavor == flavor)
        spare = [one.free for one in nodes[tenancy.cluster_id] if one.flavor == flavor]
        yield Elsewhere(
            cluster=tenancy.cluster.name,
            namespace=tenancy.namespace,
            flavor=flavor,
            title=titles[flavor],
            gpus=min(gpus - used, sum(spare)),
            largest=max(spare, default=0),
        )


def _place(found: Object) -> tuple[str, str]:
    meta = part(found, "metadata")
    return text(meta, "namespace"), text(meta, "name")


def _history(queue: str, workloads: Sequence[Object], read: Read) -> History:
    return history_of(
        waits_of(workloads, read=read), source=f"the jobs of {queue} that the cluster still shows"
    )


def _work(
    objects: Objects, namespaces: Sequence[str], around: Around, now: datetime, *, name: str, read: Read
) -> list[Work]:
    found: list[Work] = []
    in_namespace = {kind: _by_namespace(objects[kind]) for kind in _OWN}
    for namespace in namespaces:
        own = {kind: in_namespace[kind].get(namespace, ()) for kind in _OWN}
        events = by_name(map(event_of, own["Event"]))
        pieces = pieces_of(own["Workload"], own["Job"], own["Pod"], read=read)
        wanted = [piece for piece in pieces if not name or piece.key.name == name]
        found += [work_of(piece, around, events, now=now) for piece in wanted]
    return found


_OWN = ("Workload", "Job", "Pod", "Event")


def _by_namespace(objects: Iterable[Object]) -> Mapping[str, Sequence[Object]]:
    found = defaultdict[str, list[Object]](list)
    for one in objects:
        found[text(part(one, "metadata"), "namespace")].append(one)
    return found


def _is_in(found: Object, namespace: str) -> bool:
    return text(part(found, "metadata"), "namespace") == namespace

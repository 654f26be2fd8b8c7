"""A team's work on every cluster, from the portal's own copy: no page view and no call asks a cluster."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Q

from accounts.models import Team, User
from accounts.roles import Permission
from allocations.models import Allocation
from fleet.models import Cluster as ClusterRow
from fleet.models import Flavor
from provisioning.models import Tenancy
from workloads.estimating import History, history_of
from workloads.listing import Around, Work, in_order, queue_seen, work_of
from workloads.models import ClusterObject, Feed
from workloads.observed import Allocation as Held
from workloads.observed import Cluster, Facts, Viewer
from workloads.pieces import pieces_of
from workloads.reading.facts import waits_of
from workloads.reading.pods import event_of, nodes_of
from workloads.reading.queues import team_queue_of
from workloads.reading.values import Object, part, text
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


@dataclass(frozen=True, kw_only=True)
class TeamWork:
    """Everything of one team: what runs first, then what waits and what ended last; `left_out` counts older ends."""

    team: Team
    clusters: Sequence[Seen]
    work: Sequence[Work]
    left_out: int

    @property
    def held(self) -> int:
        """GPUs that all of it has now."""
        return sum(one.held for one in self.work)


def work_of_team(team: Team, *, by: User, now: datetime) -> TeamWork:
    """What runs and waits in a team's namespaces, whoever started it; five queries, however much it is."""
    tenancies = list(Tenancy.objects.present().filter(team=team).select_related("cluster").order_by("pk"))
    clusters = {one.cluster_id: one.cluster for one in tenancies}
    namespaces = defaultdict[int, set[str]](set)
    for one in tenancies:
        namespaces[one.cluster_id].add(one.namespace)
    seen = _seen(clusters, now)
    objects = _objects(namespaces)
    flavors = list(Flavor.objects.filter(cluster__in=clusters))
    held = list(Allocation.objects.live().of_gpus().filter(team=team).select_related("flavor", "tenancy"))
    viewer = Viewer(
        frozenset(name for names in namespaces.values() for name in names),
        sees_all=by.may(Permission.SEE_ALL_TEAMS),
    )
    work: list[Work] = []
    for pk, cluster in clusters.items():
        mine = [one for one in flavors if one.cluster_id == pk]
        around = _around(cluster, objects[pk], mine, held, viewer, seen[pk])
        work += _work(objects[pk], sorted(namespaces[pk]), around, now)
    ordered = in_order(work)
    over = [one for one in ordered if one.is_over]
    gone = {id(one) for one in sorted(over, key=_ended, reverse=True)[MOST_OVER:]}
    return TeamWork(
        team=team,
        clusters=[seen[pk] for pk in clusters],
        work=[one for one in ordered if id(one) not in gone],
        left_out=len(gone),
    )


def _ended(one: Work) -> datetime:
    return one.why.since


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
    """The copies that explain the team's work, by cluster and kind: its own, and what the whole cluster shares."""
    wanted = Q(pk__in=())
    for pk, names in namespaces.items():
        own, shared = Q(namespace__in=names), Q(kind__in=("Workload", "Pod", "Node", "ClusterQueue"))
        wanted |= Q(cluster=pk) & (own | shared)
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
) -> Around:
    by_queue = _by_queue(objects["Workload"], objects["LocalQueue"])
    queues = {text(part(one, "metadata"), "name"): one for one in objects["ClusterQueue"]}
    histories = {name: _history(name, found) for name, found in by_queue.items()}
    shared = Facts(
        allocations=tuple(
            Held(flavor=one.flavor.name, gpus=one.gpus, begins=one.starts_at, ends=one.kept_until)
            for one in held
            if one.flavor and one.tenancy and one.tenancy.cluster_id == cluster.pk
        ),
        capacity={one.name: one.gpus_total for one in flavors},
        titles={one.name: one.product for one in flavors},
        cluster=Cluster(title=cluster.title, silent_since=seen.silent_since),
        viewer=viewer,
    )

    def known(facts: Facts) -> Facts:
        return replace(
            facts,
            allocations=shared.allocations,
            capacity=shared.capacity,
            titles=shared.titles,
            cluster=shared.cluster,
            viewer=shared.viewer,
            history=histories.get(facts.queue.name) if facts.queue is not None else None,
        )

    return Around(
        cluster=cluster.name,
        queues={name: queue_seen(queues.get(name), found) for name, found in by_queue.items()},
        team_queues={_place(one): team_queue_of(one) for one in objects["LocalQueue"]},
        nodes=nodes_of(objects["Node"], objects["Pod"], {one.name: one.node_labels for one in flavors}),
        known=known,
    )


def _place(found: Object) -> tuple[str, str]:
    meta = part(found, "metadata")
    return text(meta, "namespace"), text(meta, "name")


def _by_queue(workloads: Sequence[Object], team_queues: Sequence[Object]) -> dict[str, list[Object]]:
    """Workloads by their ClusterQueue: as admitted, or by the name of their team's queue.

    Queues of other teams are not read. A team's ClusterQueue is its own (provisioning.desired), so none is missed.
    """
    leads_to = {_place(one): team_queue_of(one).cluster_queue for one in team_queues}
    found: dict[str, list[Object]] = defaultdict(list)
    for one in workloads:
        at = (text(part(one, "metadata"), "namespace"), text(part(one, "spec"), "queueName"))
        admitted = text(part(one, "status", "admission"), "clusterQueue")
        if name := admitted or leads_to.get(at, ""):
            found[name].append(one)
    return found


def _history(queue: str, workloads: Sequence[Object]) -> History:
    return history_of(waits_of(workloads), source=f"the jobs of {queue} that the cluster still shows")


def _work(objects: Objects, namespaces: Sequence[str], around: Around, now: datetime) -> list[Work]:
    found: list[Work] = []
    for namespace in namespaces:
        own = {kind: [one for one in objects[kind] if _is_in(one, namespace)] for kind in _OWN}
        events = [event_of(one) for one in own["Event"]]
        pieces = pieces_of(own["Workload"], own["Job"], own["Pod"])
        found += [work_of(piece, around, events, now=now) for piece in pieces]
    return found


_OWN = ("Workload", "Job", "Pod", "Event")


def _is_in(found: Object, namespace: str) -> bool:
    return text(part(found, "metadata"), "namespace") == namespace

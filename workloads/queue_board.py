"""A cluster's queues from the portal's own copy: no page view and no call asks a cluster."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Team, User
from accounts.roles import Permission
from fleet.models import Cluster, Flavor
from fleet.names import profile_of
from provisioning.models import Tenancy
from workloads.freshness import Seen, seen_of
from workloads.listing import line_in
from workloads.models import ClusterObject
from workloads.observed import Workload
from workloads.queueing import (
    PodsOf,
    QueueLine,
    Room,
    by_queue,
    line_of_queue,
    pods_by_workload,
    rooms_of,
)
from workloads.reading.pods import nodes_of
from workloads.reading.queues import queue_of
from workloads.reading.values import Object, part, text
from workloads.reading.work import Read, read_once, workload_of
from workloads.watching.kept import JOBS

KINDS = ("Workload", "ClusterQueue", "LocalQueue", "Pod", "Node", *sorted(JOBS))


@dataclass(frozen=True, kw_only=True)
class TeamLine:
    """The queue of one of a team's namespaces."""

    team: Team
    tenancy: Tenancy
    namespace: str
    line: QueueLine


@dataclass(frozen=True, kw_only=True)
class Others:
    """Queues of teams that the reader may not see, as sums that name nobody."""

    queues: int
    running: int
    held: int
    borrowed: int
    waiting: int
    wanted: int
    oldest: datetime | None


@dataclass(frozen=True, kw_only=True)
class ClusterQueues:
    """Everything that runs and waits on a cluster, as far as the reader may know it."""

    seen: Seen
    flavors: Sequence[Flavor]
    rooms: Sequence[Room]
    teams: Sequence[TeamLine]
    others: Others


def queues_of_cluster(cluster: Cluster, *, by: User, now: datetime) -> ClusterQueues:
    """A cluster's queues, each team's own by name and the others as sums; four queries, however many jobs there are."""
    flavors = list(cluster.flavors.all())
    tenancies = list(
        Tenancy.objects.present()
        .filter(cluster=cluster)
        .select_related("team", "cluster")
    )
    found: dict[str, list[Object]] = defaultdict(list)
    rows = ClusterObject.objects.filter(cluster=cluster, kind__in=KINDS).values_list(
        "kind", "body"
    )
    for kind, body in rows.iterator():
        found[kind].append(body)
    queues = {
        text(part(one, "metadata"), "name"): queue_of(one)
        for one in found["ClusterQueue"]
    }
    read = read_once()
    workloads = by_queue(found["Workload"], found["LocalQueue"], read=read)
    sees_all = by.may(Permission.SEE_ALL_TEAMS)
    # A tenancy's ClusterQueue has the name of its namespace and takes jobs of no other (provisioning.desired.queues).
    own = {
        one.namespace: one
        for one in tenancies
        if sees_all or one.team_id in by.team_ids
    }
    pods = _pods(found, own, read)
    lines = {
        name: line_of_queue(
            queues.get(name),
            workloads.get(name, ()),
            read=read,
            pods=pods.get(name),
        )
        for name in {*queues, *workloads}
    }
    nodes = nodes_of(
        found["Node"],
        found["Pod"],
        {one.name: one.node_labels for one in flavors},
        {one.name: profile_of(one.resource) for one in flavors},
    )
    return ClusterQueues(
        seen=seen_of(cluster, now),
        flavors=flavors,
        rooms=rooms_of(nodes, [one.name for one in flavors]),
        teams=sorted(
            (
                TeamLine(
                    team=own[name].team, tenancy=own[name], namespace=name, line=line
                )
                for name, line in lines.items()
                if name in own
            ),
            key=lambda one: (one.team.name, one.namespace),
        ),
        others=_sums([line for name, line in lines.items() if name not in own]),
    )


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What waits in all queues of a cluster: how many jobs, for how many GPUs, and since when the first of them."""

    jobs: int
    gpus: int
    oldest: datetime | None


NOTHING_WAITS = Waiting(jobs=0, gpus=0, oldest=None)


def waiting_by_cluster() -> dict[int, Waiting]:
    """What waits on each cluster, by its number; without those where nothing does. One query, however many jobs."""
    # What has an assignment has its quota, or had it to its end: of thousands that are over none is read.
    copies = ClusterObject.objects.filter(
        kind="Workload", body__status__admission__podSetAssignments__0__isnull=True
    ).order_by()
    found = defaultdict[int, list[Workload]](list)
    for cluster, body in copies.values_list("cluster", "body").iterator():
        found[cluster] += line_in([workload_of(body)])
    return {
        cluster: Waiting(
            jobs=len(line),
            gpus=sum(one.gpus for one in line),
            oldest=min(filter(None, (one.queued_at for one in line)), default=None),
        )
        for cluster, line in found.items()
        if line
    }


def _pods(
    found: Mapping[str, Sequence[Object]], namespaces: Collection[str], read: Read
) -> dict[str, PodsOf]:
    """The pods of the Workloads of these namespaces; of the others only sums are told, for which none are needed."""
    own: dict[str, defaultdict[str, list[Object]]] = {
        name: defaultdict(list) for name in namespaces
    }
    for kind in ("Workload", "Pod", *JOBS):
        for one in found.get(kind, ()):
            namespace = text(part(one, "metadata"), "namespace")
            if namespace in own:
                own[namespace]["Job" if kind in JOBS else kind].append(one)
    return {
        name: pods_by_workload(
            objects["Workload"], objects["Job"], objects["Pod"], read=read
        )
        for name, objects in own.items()
    }


def _sums(lines: Sequence[QueueLine]) -> Others:
    return Others(
        queues=len(lines),
        running=sum(len(one.running) for one in lines),
        held=sum(one.held for one in lines),
        borrowed=sum(one.borrowed for one in lines),
        waiting=sum(len(one.waiting) for one in lines),
        wanted=sum(waits.gpus for one in lines for waits in one.waiting),
        oldest=min((one.oldest for one in lines if one.oldest), default=None),
    )

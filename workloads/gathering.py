"""What runs and waits in a team's namespaces, explained from the copies of what is on its clusters."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q

from allocations.use.models import StoppedWork
from fleet.models import Cluster as ClusterRow
from provisioning.models import Tenancy
from provisioning.pods import OVER
from workloads.estimating import History, history_of
from workloads.freshness import Seen
from workloads.grouping import pieces_of
from workloads.listing import (
    Around,
    QueueSeen,
    Starts,
    Work,
    by_name,
    in_order,
    queue_seen,
    work_of,
)
from workloads.models import ClusterObject
from workloads.observed import Allocation as Held
from workloads.observed import (
    Cluster,
    Elsewhere,
    JobKey,
    Nodes,
    OpenRequest,
    Queue,
    Stop,
    Viewer,
)
from workloads.own_work import POD, OwnWork, Place, own_work_in
from workloads.queueing import by_queue
from workloads.reading.limits import limits_of
from workloads.reading.pods import event_of, nodes_of
from workloads.reading.queues import (
    promised_by_volcano,
    quota_holders_of,
    team_queue_of,
)
from workloads.reading.values import Object, namespaced_name, part, text, uid_of
from workloads.reading.waits import waits_of
from workloads.reading.work import Read, read_once
from workloads.reasons.clock import Clock
from workloads.reasons.latest_starts import Change, changes_of_grant
from workloads.team_context import FlavorKnown, TeamContext
from workloads.watching.kept import JOBS

Objects = Mapping[str, Sequence[Object]]
MAX_OVER = 20
_OWN = ("Workload", "Job", "Pod", "Event")


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A team's work in the order in which it is shown, the history of each queue, and until when all of it holds.

    `left_out` counts what ended earlier than the last twenty.
    """

    work: Sequence[Work]
    left_out: int
    histories: Mapping[str, History]
    until: datetime | None


def explained(known: TeamContext, *, now: datetime) -> Explained:
    """Read the copies and explain all that runs and waits in a team's namespaces.

    Two queries, however much it is, and a third one where there are pods that no job made.
    """
    clusters = _copies(known)
    own = own_work_in(
        known.tenancies,
        {one.row.name: [*one.keys()] for one in clusters.values()},
    )
    clock = Clock(now)
    shared = _Shared(
        viewer=Viewer(
            frozenset(one.namespace for one in known.tenancies),
            sees_all=known.sees_all,
        ),
        free=tuple(_free(known, clusters, clock)),
    )
    work = [
        each
        for one in clusters.values()
        for each in one.work(_own_on(one.row.name, own), shared, now=now)
    ]
    ends = [one.why.until for one in work if one.why.until is not None]
    shown = _without_older(work)
    return Explained(
        work=in_order(_with_names(own, shown)),
        left_out=len(work) - len(shown),
        histories={
            history_key(one.row.name, queue): history
            for one in clusters.values()
            for queue, history in one.histories.items()
        },
        until=min([*ends, *filter(None, [clock.until])], default=None),
    )


class _Shared(NamedTuple):
    """What the work on each of the team's clusters is explained by: who reads it, and GPUs that are free on any."""

    viewer: Viewer
    free: tuple[Elsewhere, ...]


class _Used(NamedTuple):
    """GPUs of a namespace that its work has, by flavor, and that Volcano has promised to it, by profile."""

    held: Mapping[str, int]
    promised: Mapping[str, int]

    def of(self, flavor: FlavorKnown) -> int:
        """Those that are of a flavor, or may come to be."""
        return self.held.get(flavor.name, 0) + self.promised.get(flavor.profile, 0)


@dataclass(frozen=True, kw_only=True)
class ClusterCopies:
    """The copies of what is on one of the team's clusters, each Workload read once, and what the portal knows of it."""

    known: TeamContext
    seen: Seen
    objects: Objects
    read: Read = field(default_factory=read_once)

    @property
    def row(self) -> ClusterRow:
        """The cluster as the fleet has it."""
        return self.seen.cluster

    @cached_property
    def tenancies(self) -> Mapping[str, Tenancy]:
        """Those of the team here, by the namespace, which is the name of their queue, too."""
        return self.known.tenancies_on(self.row.pk)

    @cached_property
    def flavors(self) -> Mapping[str, FlavorKnown]:
        """The kinds of GPU here, by name."""
        return self.known.flavors_on(self.row.pk)

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes with GPUs, and what pods have of them."""
        return nodes_of(
            self.objects["Node"],
            self.objects["Pod"],
            {name: one.node_labels for name, one in self.flavors.items()},
            {name: one.profile for name, one in self.flavors.items()},
        )

    @cached_property
    def in_queue(self) -> Mapping[str, Sequence[Object]]:
        """The Workloads of each queue."""
        return by_queue(
            self.objects["Workload"], self.objects["LocalQueue"], read=self.read
        )

    @cached_property
    def histories(self) -> Mapping[str, History]:
        """How long jobs waited in each queue."""
        return {
            name: history_of(
                waits_of(workloads, read=self.read),
                source=f"the jobs of {name} that the cluster still shows",
            )
            for name, workloads in self.in_queue.items()
        }

    @cached_property
    def in_namespace(self) -> Mapping[str, Mapping[str, Sequence[Object]]]:
        """What is in each namespace of the team, by kind, in the order of their names."""
        found = {kind: _by_namespace(self.objects[kind]) for kind in _OWN}
        return {
            namespace: {kind: found[kind].get(namespace, ()) for kind in _OWN}
            for namespace in sorted(self.tenancies)
        }

    def keys(self) -> Iterator[JobKey]:
        """The keys of the team's jobs, and of its pods that no job made."""
        for own in self.in_namespace.values():
            for workload in own["Workload"]:
                yield self.read(workload).key
            for job in own["Job"]:
                yield JobKey(*namespaced_name(job))
            for pod in own["Pod"]:
                if not part(pod, "metadata").get("ownerReferences"):
                    yield JobKey(*namespaced_name(pod), kind=POD)

    def free(self, namespace: str, flavor: FlavorKnown, held: int) -> Elsewhere:
        """What nothing uses of so many GPUs that the team holds in a namespace, with what one node has of them."""
        spare = [one.free for one in self.nodes if one.flavor == flavor.name]
        return Elsewhere(
            cluster=self.row.name,
            cluster_title=self.row.title,
            namespace=namespace,
            flavor=flavor.name,
            title=flavor.title,
            gpus=min(held - self._used[namespace].of(flavor), sum(spare)),
            largest=max(spare, default=0),
            profile=flavor.profile,
        )

    @cached_property
    def _used(self) -> Mapping[str, _Used]:
        return {
            namespace: self._used_by(own["Workload"])
            for namespace, own in self.in_namespace.items()
        }

    def _used_by(self, workloads: Sequence[Object]) -> _Used:
        held = Counter[str]()
        for one in quota_holders_of(workloads):
            held[one.flavor] += one.gpus
        promised = promised_by_volcano(workloads) if self.row.has_volcano else {}
        return _Used(held, promised)

    def work(
        self,
        own: Mapping[tuple[str, str], OwnWork],
        shared: _Shared,
        *,
        now: datetime,
    ) -> Iterator[Work]:
        """All that runs and waits in the team's namespaces; `own` is what the portal started of it."""
        around = self._around(own, shared, now)
        for found in self.in_namespace.values():
            events = by_name(map(event_of, found["Event"]))
            for piece in pieces_of(
                found["Workload"], found["Job"], found["Pod"], read=self.read
            ):
                yield work_of(piece, around, events, now=now)

    def _around(
        self, own: Mapping[tuple[str, str], OwnWork], shared: _Shared, now: datetime
    ) -> Around:
        everywhere = self._known_here(own, shared)

        def known_of_queue(queue: Queue | None) -> Mapping[str, Any]:
            # A team's own queue has the name of its namespace (provisioning.desired.queues).
            name = queue.name if queue is not None else ""
            tenancy = self.tenancies.get(name)
            return {
                **everywhere,
                "history": self.histories.get(name),
                "leaves_at": tenancy.leaves_at if tenancy else None,
                "requests": {} if tenancy is None else self._asked_in(tenancy),
                "is_queue_behind": tenancy is not None and not tenancy.is_settled,
            }

        return Around(
            cluster=self.row.name,
            queues=self._queues(own, now),
            team_queues={
                namespaced_name(one): team_queue_of(one)
                for one in self.objects["LocalQueue"]
            },
            nodes=self.nodes,
            known=known_of_queue,
            stops=self._stops(),
        )

    def _stops(self) -> Mapping[str, Stop]:
        """What the portal made inactive and is so still, by uid; a query where anything is inactive."""
        inactive = [
            uid_of(one)
            for own in self.in_namespace.values()
            for one in own["Workload"]
            if not self.read(one).is_active
        ]
        if not inactive:
            return {}
        rows = StoppedWork.objects.filter(
            tenancy__in=[*self.tenancies.values()], uid__in=inactive
        )
        return {
            one.uid: Stop(one.asked_at, one.leftover.flavor.name, one.gpus)
            for one in rows.select_related("leftover__flavor").order_by("asked_at")
        }

    def _asked_in(self, tenancy: Tenancy) -> Mapping[str, OpenRequest]:
        """The first request for more of each flavor in a namespace that waits for an answer."""
        here = [one for one in self.known.requests if one.tenancy == tenancy.pk]
        in_all = Counter[str]()
        for one in here:
            in_all[one.flavor] += one.gpus
        return {
            one.flavor: OpenRequest(
                one.number, one.gpus, one.who, one.since, in_all[one.flavor]
            )
            for one in reversed(here)
        }

    def _known_here(
        self, own: Mapping[tuple[str, str], OwnWork], shared: _Shared
    ) -> dict[str, Any]:
        """What only the portal knows of any job here, as fields of Facts."""
        return {
            "allocations": tuple(
                Held(flavor=one.flavor, gpus=one.gpus, begins=one.begins, ends=one.ends)
                for one in self.known.allocations
                if one.cluster == self.row.pk
            ),
            "capacity": {name: one.gpus for name, one in self.flavors.items()},
            "titles": {name: one.title for name, one in self.flavors.items()},
            "cluster": Cluster(
                title=self.row.title,
                silent_since=self.seen.silent_since,
                maintenance=self.row.last_maintenance,
                queues_down_since=self.row.queues_down_since,
                priorities=_known(self.row.queue_priorities),
                labels_jobs=self.row.labels_jobs,
            ),
            "viewer": shared.viewer,
            # Who made another one stop is known where it is in a queue of the team.
            "jobs": {
                key.uid: key
                for one in self.objects["Workload"]
                if (key := self.read(one).key).uid
            },
            "elsewhere": shared.free,
            "called": {place: one.title for place, one in own.items()},
        }

    def _queues(
        self, own: Mapping[tuple[str, str], OwnWork], now: datetime
    ) -> dict[str, QueueSeen]:
        """Every queue in which something runs or waits; of a team's own, by when those in it start, too."""
        # Queues of other teams are not read; a team's ClusterQueue is its own (provisioning.desired): none is missed.
        bodies = {
            text(part(one, "metadata"), "name"): one
            for one in self.objects["ClusterQueue"]
        }
        runs = {place: one.limit for place, one in own.items() if one.limit is not None}
        limits = limits_of(self.objects["Job"], runs)
        return {
            name: queue_seen(
                bodies.get(name),
                found,
                read=self.read,
                limits=limits,
                starts=self._starts(name, now),
            )
            for name, found in self.in_queue.items()
        }

    def _starts(self, queue: str, now: datetime) -> Starts | None:
        tenancy = self.tenancies.get(queue)
        # Volcano's queues go by shares: nobody has a place in them.
        if tenancy is None or self.row.has_volcano:
            return None
        return Starts(
            changes=tuple(_changes(self.known, tenancy)),
            maintenance=self.row.maintenance(now),
            now=now,
        )


def _known(names: Sequence[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _copies(known: TeamContext) -> dict[int, ClusterCopies]:
    """The copies of each of the team's clusters; one query."""
    namespaces = {pk: {*known.tenancies_on(pk)} for pk in known.seen}
    objects = _objects(namespaces)
    return {
        pk: ClusterCopies(known=known, seen=seen, objects=objects[pk])
        for pk, seen in known.seen.items()
    }


def _own_on(
    cluster: str, own: Mapping[Place, OwnWork]
) -> Mapping[tuple[str, str], OwnWork]:
    """What the portal started on a cluster, by namespace and name."""
    return {
        (namespace, name): one
        for (there, namespace, name), one in own.items()
        if there == cluster
    }


def _without_older(work: Sequence[Work]) -> list[Work]:
    """All but what has ended before the last that have, in the same order."""
    over = sorted((one for one in work if one.is_over), key=_since, reverse=True)
    older = {id(one) for one in over[MAX_OVER:]}
    return [one for one in work if id(one) not in older]


def _free(
    known: TeamContext, clusters: Mapping[int, ClusterCopies], clock: Clock
) -> Iterator[Elsewhere]:
    """GPUs that the team holds and nothing of its uses now, by namespace and flavor, where that is known."""
    tenancies = {one.pk: one for one in known.tenancies}
    held = Counter[tuple[int, str]]()
    for one in known.allocations:
        if one.tenancy in tenancies and one.has_begun and not clock.has_come(one.ends):
            held[one.tenancy, one.flavor] += one.gpus
    for (pk, flavor), gpus in held.items():
        tenancy = tenancies[pk]
        here = clusters[tenancy.cluster_id]
        if here.seen.is_listened_to:
            yield here.free(tenancy.namespace, here.flavors[flavor], gpus)


def _changes(known: TeamContext, tenancy: Tenancy) -> Iterator[Change]:
    """When the queue of a namespace has more GPUs or fewer, as what is granted and booked stands now."""
    for one in known.allocations:
        if one.tenancy == tenancy.pk:
            begins = None if one.has_begun else one.begins
            yield from changes_of_grant(
                one.flavor, one.gpus, begins=begins, ends=one.ends
            )


def _by_namespace(objects: Iterable[Object]) -> Mapping[str, Sequence[Object]]:
    found = defaultdict[str, list[Object]](list)
    for one in objects:
        found[text(part(one, "metadata"), "namespace")].append(one)
    return found


def _with_names(own: Mapping[Place, OwnWork], work: Sequence[Work]) -> Iterator[Work]:
    """Each with what the portal started it as, and what helps that: its row is there before it is on a cluster."""
    for one in work:
        found = own.get((one.cluster, one.key.namespace, one.key.name))
        if found is None:
            yield one
        else:
            yield replace(
                one,
                run=found.run,
                notebook=found.notebook,
                title=found.title,
                why=found.explained(one.why),
            )


def _since(one: Work) -> datetime:
    return one.why.since


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


def history_key(cluster: str, queue: str) -> str:
    """The name under which a queue's history is kept."""
    return f"{cluster}/{queue}"

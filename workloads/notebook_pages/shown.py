"""A notebook server as people look at it: how it stands, why it is not there yet, and when it ends."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from accounts.models import User
from allocations.ends.carrying import Uncarried
from allocations.ends.notebooks import uncarried_at
from fleet.prices import cost_while
from notebooks.hubs.models import Hub
from notebooks.models import NotebookServer
from notebooks.profiles.document import Document
from notebooks.profiles.idle import Reclaim, idle_since, stops_at, unknown_since
from notebooks.profiles.priority import priority_of
from notebooks.servers.ending import documents_of, limit_of, threshold_of, use_of
from notebooks.servers.states import State
from workloads.board import work_of_team
from workloads.explanations import Explanation
from workloads.freshness import Seen
from workloads.listing import State as WorkState
from workloads.listing import Work
from workloads.models import ClusterObject
from workloads.own_work import of_notebook
from workloads.reading.values import Object, part
from workloads.runs.planning.queue_copies import queue_demand

# What KubeSpawner writes on the pod of a server.
SERVER, USER = "hub.jupyter.org/servername", "hub.jupyter.org/username"


@dataclass(frozen=True, kw_only=True)
class ServerSeen:
    """A server with its hub and its profile's version, None where they are gone.

    `why` says why one that starts is not there yet, and `waits` whether its pod stands in line instead of starting;
    nothing before it has a pod. Since `idle_unknown_since` nobody can tell whether it is used; None where that is
    known. `uncarried` says when GPUs end that carry it, None for never; `goes_back` is when it is stopped with them, as
    its owner was told, else as far as is known now. `going_first` is how much work of the team waits that could take
    its GPUs.
    """

    server: NotebookServer
    hub: Hub | None
    document: Document | None
    why: Explanation | None = None
    waits: bool = False
    seen: Seen | None = None
    uncarried: Uncarried | None = None
    goes_back: datetime | None = None
    idle_unknown_since: datetime | None = None
    going_first: int = 0

    @property
    def priority(self) -> int:
        """With which priority it runs."""
        return priority_of(self.document)

    @property
    def address(self) -> str:
        """Where its notebook opens; empty while it does not."""
        return address_of(self.server)

    @property
    def idle_since(self) -> datetime | None:
        """Since when nobody has used it; None while it cannot be used."""
        return idle_of(self.server)

    @property
    def stops_when_idle(self) -> datetime | None:
        """When it is stopped if nobody uses or keeps it; None where that does not happen."""
        threshold = threshold_of(self.document)
        is_reclaimed = (
            self.hub is not None
            and self.hub.reclaim == Reclaim.ON
            and self.server.gpus > 0
        )
        if (
            self.server.state != State.READY
            or threshold is None
            or not is_reclaimed
            or self.idle_unknown_since
        ):
            return None
        return stops_at(use_of(self.server), threshold)

    @property
    def may_be_idle(self) -> bool:
        """Whether somebody is told, or it is stopped, when nobody uses it: where not, keeping it does nothing."""
        is_looked_at = (
            self.hub is not None
            and self.hub.reclaim != Reclaim.OFF
            and self.server.gpus > 0
        )
        return (
            self.server.state == State.READY
            and is_looked_at
            and threshold_of(self.document) is not None
        )

    @property
    def ends_at(self) -> datetime | None:
        """When its profile's limit ends it; None without one, and before it is ready."""
        is_limited = self.document is not None and self.document.hours
        if self.server.state != State.READY or self.document is None or not is_limited:
            return None
        return limit_of(self.server, self.document)

    def idle_usd(self, now: datetime) -> Decimal:
        """What its GPUs have cost since somebody used it last."""
        since = self.idle_since
        idle = max(now - since, timedelta(0)) if since is not None else timedelta(0)
        return cost_while(idle, usd_per_hour=self.server.usd_per_hour)


def address_of(server: NotebookServer) -> str:
    """Where a ready server's notebook opens, empty for any other; it comes with `tenancy__cluster__hub`."""
    hub: Hub | None = getattr(server.tenancy.cluster, "hub", None)
    return (
        f"{hub.opened_at}{server.path}"
        if hub is not None and server.state == State.READY
        else ""
    )


def idle_of(server: NotebookServer) -> datetime | None:
    """Since when nobody has used a ready server; None for any other."""
    return idle_since(use_of(server)) if server.state == State.READY else None


def seen_server(server: NotebookServer, *, by: User, now: datetime) -> ServerSeen:
    """What is known of one server; ten queries at most. It comes described, with `tenancy__cluster__hub`."""
    work, seen = (None, None)
    if server.state == State.STARTING:
        work, seen = _work(server, by=by, now=now)
    uncarried = (
        uncarried_at([server.tenancy_id], now=now).get(server.pk)
        if server.flavor_id
        else None
    )
    document = documents_of([server]).get((server.profile_id, server.profile_version))
    return ServerSeen(
        server=server,
        hub=getattr(server.tenancy.cluster, "hub", None),
        document=document,
        why=of_notebook(work.why) if work is not None else None,
        waits=work is not None and work.state == WorkState.WAITING,
        seen=seen,
        uncarried=uncarried,
        goes_back=_goes_back(server, uncarried, now),
        idle_unknown_since=unknown_since(use_of(server), now)
        if server.state == State.READY
        else None,
        going_first=_going_first(server, priority_of(document)),
    )


def _going_first(server: NotebookServer, priority: int) -> int:
    if server.state != State.READY or server.flavor is None:
        return 0
    flavor, gpus = server.flavor.name, server.gpus
    return queue_demand(server.tenancy, flavor, gpus).going_first(priority)


def _goes_back(
    server: NotebookServer, uncarried: Uncarried | None, now: datetime
) -> datetime | None:
    known = server.told_end or (uncarried.at if uncarried is not None else None)
    return known if known is not None and known > now and server.is_live else None


def _work(
    server: NotebookServer, *, by: User, now: datetime
) -> tuple[Work | None, Seen | None]:
    """Its pod as the team's board tells it, and how far its cluster's copy can be trusted."""
    board = work_of_team(server.team, by=by, now=now)
    seen = next(
        (one for one in board.clusters if one.cluster.pk == server.tenancy.cluster_id),
        None,
    )
    pod = _pod_of(server)
    if not pod:
        return None, seen
    here = (server.cluster.name, server.tenancy.namespace, pod)
    found = (
        one
        for one in board.work
        if (one.cluster, one.key.namespace, one.key.name) == here
    )
    return next(found, None), seen


def _pod_of(server: NotebookServer) -> str:
    """The name of its pod in the portal's copy, the newest; empty while there is none."""
    rows = ClusterObject.objects.filter(
        cluster=server.tenancy.cluster_id,
        namespace=server.tenancy.namespace,
        kind="Pod",
        body__metadata__labels__has_key=SERVER,
    )
    mine = [
        body for body in rows.values_list("body", flat=True) if is_pod_of(body, server)
    ]
    newest = max(
        mine,
        key=lambda one: str(part(one, "metadata").get("creationTimestamp", "")),
        default=None,
    )
    return str(part(newest, "metadata").get("name", "")) if newest is not None else ""


def is_pod_of(body: Object, server: NotebookServer) -> bool:
    """Whether a pod is that server's. Names of the portal's own are nobody else's; of others the user counts, too."""
    labels = part(body, "metadata", "labels")
    if labels.get(SERVER) not in label_values(server.name):
        return False
    return server.has_name_of_the_portal or labels.get(USER) in label_values(
        server.username
    )


def label_values(name: str) -> set[str]:
    """A name as a label has it: as it is, or as KubeSpawner's older scheme escapes it."""
    escaped = "".join(
        one
        if one.isascii() and (one.islower() or one.isdigit())
        else "".join(f"-{byte:02x}" for byte in one.encode())
        for one in name
    )
    return {name, escaped}

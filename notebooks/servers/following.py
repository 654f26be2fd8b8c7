"""What becomes of notebook servers that run, as their hubs say it; servers that people start in a hub are taken in."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from accounts.models import User
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError
from connectors.jupyterhub import HubServer, JupyterHub
from fleet.models import Cluster
from notebooks.hubs.actions import note_followed, note_unknown
from notebooks.hubs.clients import client_for
from notebooks.hubs.models import Hub, UnknownReason, UnknownServer
from notebooks.hubs.people import people_at
from notebooks.servers.models import NotebookServer
from notebooks.servers.queue_stops import stopped_by_queue
from notebooks.servers.reconcile import Clock, move, ready
from notebooks.servers.started_with import Profiles, Started, is_of_its_profile
from notebooks.servers.states import State, StopReason
from reconciling.sweeping import for_each

log = structlog.get_logger(__name__)


def follow(*, now: Clock) -> None:
    """Write down how the servers of every hub stand; of a hub that does not answer, what was known stays.

    What was on a cluster that is written off has stopped.
    """
    for_each(_lost(), lambda server: _lose(server, now=now()))
    hubs = (
        Hub.objects.filter(cluster__in=Cluster.objects.looked_after().not_written_off())
        .exclude(reachable=False)
        .select_related("cluster")
    )

    def ask(hub: Hub) -> None:
        try:
            _follow(hub, client_for(hub), now)
        except ConnectorError as error:
            log.info(
                "hub does not answer", cluster=hub.cluster.name, reason=error.message
            )

    for_each(hubs, ask)


def _lost() -> QuerySet[NotebookServer]:
    live = NotebookServer.objects.live()
    return live.filter(tenancy__cluster__written_off_at__isnull=False).order_by("pk")


def _lose(server: NotebookServer, *, now: datetime) -> None:
    move(
        server.pk,
        State.STOPPED,
        seen=State(server.state),
        now=now,
        observed_generation=server.generation,
        stop_reason=StopReason.CLUSTER_GONE,
        message="",
    )


def _follow(hub: Hub, client: JupyterHub, now: Clock) -> None:
    asked_at = now()
    found = {
        (one.username, one.name): one for one in client.servers() if not one.is_stopped
    }
    of_hub = NotebookServer.objects.filter(tenancy__cluster=hub.cluster_id)
    names = {name for _, name in found}
    rows = (
        of_hub.exclude(state__in=[State.STARTING, State.STOPPING])
        .filter(Q(state=State.READY) | Q(name__in=names))
        # What stopped after the hub was asked is still in its answer. When the hub started it tells nothing: the hub's
        # clock is another one, and what was taken for gone by mistake has run since before that.
        .filter(Q(stopped_at=None) | Q(stopped_at__lte=asked_at))
        .select_related("tenancy__cluster", "profile")
    )
    profiles = Profiles(hub.cluster)
    unknown = []
    for server in rows:
        one = found.get((server.username, server.name))
        if server.state == State.READY and not _is_another(
            server, one, profiles, asked_at
        ):
            _carry_over(server, one, client, asked_at, now=now())
        elif (
            one is not None
            and one.is_ready
            and not _start_again(server, one, profiles, now=now())
        ):
            unknown.append(_unknown(hub, one, is_known=True, now=now()))
    known = {*of_hub.filter(name__in=names).values_list("username", "name")}
    others = [one for key, one in found.items() if key not in known and one.is_ready]
    note_unknown(hub, [*unknown, *take_in(hub, others, profiles, now=now())])
    # At the end: whoever reads this finds what the hub said of each of them.
    note_followed(hub, now=asked_at)


def _is_another(
    server: NotebookServer,
    one: HubServer | None,
    profiles: Profiles,
    asked_at: datetime,
) -> bool:
    """Whether the server that runs under the name of a ready one was started with something else than that one."""
    if one is None or not one.is_ready or dict(one.options) == server.user_options:
        return False
    if server.ready_at is None or server.ready_at > asked_at:
        # The hub was asked before that.
        return False
    return not profiles.is_as_kept(server, one)


def _carry_over(
    server: NotebookServer,
    one: HubServer | None,
    client: JupyterHub,
    asked_at: datetime,
    *,
    now: datetime,
) -> None:
    """What the hub says of a server that was ready. That it is gone is believed only when it is asked for alone."""
    if one is None:
        one = client.server(server.username, server.name)
        if one is None or (one.is_stopped and not one.pending):
            rows = NotebookServer.objects.filter(pk=server.pk, ready_at__lte=asked_at)
            if rows.exists():
                reason = stopped_by_queue(server)
                found = {"stop_reason": reason} if reason else {}
                move(
                    server.pk,
                    State.STOPPED,
                    seen=State.READY,
                    now=now,
                    message="",
                    **found,
                )
        return
    if one.active_at is not None and one.active_at != server.active_at:
        fields: dict[str, Any] = {"active_at": one.active_at}
        if server.warned_at is not None and one.active_at > server.warned_at:
            fields["warned_at"] = None
        NotebookServer.objects.filter(pk=server.pk, state=State.READY).update(**fields)


@transaction.atomic
def _start_again(
    server: NotebookServer, one: HubServer, profiles: Profiles, *, now: datetime
) -> bool:
    """Keep a server as somebody started it again in the hub; False where that is no profile that the portal offers.

    What was known under its name has ended then. Nothing is kept of one that was moved on meanwhile.
    """
    same = {
        name: getattr(server, name) for name in ("generation", "ready_at", "stopped_at")
    }
    if not NotebookServer.objects.locked().filter(pk=server.pk, **same):
        return True
    seen, started = State(server.state), profiles.of(one)
    if started is None and not is_of_its_profile(server, one):
        if seen is State.READY:
            move(server.pk, State.STOPPED, seen=seen, now=now, message="")
        return False
    fields = {**_again(server, one, now), **(started.fields if started else {})}
    if started is not None and started.tenancy.pk != server.tenancy_id:
        # How long it ran before was in another namespace, maybe another team's, and at another price.
        fields |= {"ran_seconds": 0, "spent_usd": 0}
    if started is not None and not started.is_same_profile_there(server):
        # They name Secrets of the namespace that it was launched in, and the hub was told none for another.
        fields["secrets"] = []
    move(server.pk, State.READY, seen=seen, now=now, **fields)
    return True


def _again(server: NotebookServer, one: HubServer, now: datetime) -> Mapping[str, Any]:
    return {
        **ready(server, one, now=now),
        "ready_at": now,
        **server.ran_until(now),
        "launched_at": max(one.started_at or now, server.created_at),
        "stopped_at": None,
        "stopped_by": None,
        "stop_reason": "",
        "secret_missed_at": None,
        "gpu_busy_at": None,
        "gpu_measured_since": None,
        "gpu_measured_at": None,
        "warned_at": None,
        "keep_until": None,
        "kept_times": 0,
        "limit_told_at": None,
        "told_end": None,
    }


def take_in(
    hub: Hub, servers: Collection[HubServer], profiles: Profiles, *, now: datetime
) -> list[UnknownServer]:
    """Keep servers that people started in the hub itself; those of nobody the portal knows come back, for its leads."""
    people = people_at(hub.cluster, {one.username for one in servers})
    unknown = []
    for one in servers:
        owner, started = people.get(one.username), profiles.of(one)
        if owner is not None and started is not None:
            _save(_row(one, started, owner=owner, now=now))
        else:
            unknown.append(_unknown(hub, one, is_known=owner is not None, now=now))
    return unknown


def _unknown(
    hub: Hub, one: HubServer, *, is_known: bool, now: datetime
) -> UnknownServer:
    """A server that is not taken in, because of its person or, where that is known, of its profile."""
    return UnknownServer(
        hub=hub,
        username=one.username[:255],
        name=one.name[:255],
        reason=UnknownReason.PROFILE if is_known else UnknownReason.PERSON,
        since=one.started_at or now,
    )


def _row(
    one: HubServer, started: Started, *, owner: User, now: datetime
) -> NotebookServer:
    began = min(one.started_at or now, now)
    return NotebookServer(
        **started.fields,
        owner=owner,
        username=one.username,
        name=one.name,
        title=(one.title or started.offer.document.title)[:60],
        state=State.READY,
        created_at=began,
        launched_at=began,
        ready_at=began,
        path=one.path[:400],
        active_at=one.active_at or now,
        requeue_at=now,
    )


def _save(row: NotebookServer) -> None:
    """Keep a server that was taken in, unless another worker has just done it."""
    with suppress(IntegrityError), transaction.atomic():
        row.save(force_insert=True)
        record(
            Kind.NOTEBOOK_TAKEN_IN,
            actor=PORTAL,
            subject=("notebook", row.pk),
            team_id=row.team_id,
            name=row.title,
            person=row.owner_id,
        )

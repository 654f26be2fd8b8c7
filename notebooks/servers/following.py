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
from notebooks.models import Profile
from notebooks.places import flavors_on
from notebooks.profile_desk.kept import Offered, offered
from notebooks.profiles.choosing import NotAChoice, chosen
from notebooks.profiles.spawning import spawned_as
from notebooks.servers.models import NotebookServer
from notebooks.servers.queue_stops import stopped_by_queue
from notebooks.servers.reconcile import Clock, move, ready
from notebooks.servers.states import State, StopReason
from provisioning.models import Tenancy
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
    of_hub = NotebookServer.objects.filter(tenancy__cluster=hub.cluster_id).exclude(
        state__in=[State.STARTING, State.STOPPING]
    )
    names = {name for _, name in found}
    rows = of_hub.filter(Q(state=State.READY) | Q(name__in=names)).select_related(
        "tenancy__cluster"
    )
    for server in rows:
        one = found.get((server.username, server.name))
        if server.state == State.READY:
            _carry_over(server, one, client, asked_at, now=now())
        elif one is not None and one.is_ready:
            # Somebody started it again in the hub itself.
            move(
                server.pk,
                State.READY,
                seen=State(server.state),
                now=now(),
                **_again(server, one, now()),
            )
    known = {
        *NotebookServer.objects.filter(
            tenancy__cluster=hub.cluster_id, name__in=names
        ).values_list("username", "name")
    }
    take_in(
        hub,
        [one for key, one in found.items() if key not in known and one.is_ready],
        now=now(),
    )
    # At the end: whoever reads this finds what the hub said of each of them.
    note_followed(hub, now=asked_at)


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


def _again(server: NotebookServer, one: HubServer, now: datetime) -> Mapping[str, Any]:
    return {
        **ready(server, one, now=now),
        "launched_at": max(one.started_at or now, server.created_at),
        "stopped_at": None,
        "stopped_by": None,
        "stop_reason": "",
        "gpu_busy_at": None,
        "gpu_measured_since": None,
        "gpu_measured_at": None,
        "keep_until": None,
        "kept_times": 0,
        "limit_told_at": None,
        "told_end": None,
    }


def take_in(hub: Hub, servers: Collection[HubServer], *, now: datetime) -> None:
    """Keep servers that people started in the hub itself; those of nobody the portal knows are listed for its leads."""
    if not servers:
        note_unknown(hub, [])
        return
    cluster = hub.cluster
    people = people_at(cluster, {one.username for one in servers})
    tenancies = {
        one.namespace: one
        for one in Tenancy.objects.here().filter(cluster=cluster).select_related("team")
    }
    profiles = {one.document.slug: one for one in offered()}
    unknown = []
    for one in servers:
        owner, chosen_there = (
            people.get(one.username),
            _profile_of(one, tenancies, profiles),
        )
        row = (
            _row(one, *chosen_there, owner=owner, now=now)
            if owner and chosen_there
            else None
        )
        if row is not None:
            _save(row)
        else:
            unknown.append(_unknown(hub, one, is_known=owner is not None, now=now))
    note_unknown(hub, unknown)


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


def _profile_of(
    one: HubServer, tenancies: Mapping[str, Tenancy], profiles: Mapping[str, Offered]
) -> tuple[Tenancy, Offered] | None:
    """The namespace and the profile that a server's choices name together."""
    name = str(one.options.get("profile", ""))
    for namespace, tenancy in tenancies.items():
        slug = name.removesuffix(spawned_as("", namespace))
        if slug != name and slug in profiles:
            return tenancy, profiles[slug]
    return None


def _row(
    one: HubServer, tenancy: Tenancy, offer: Offered, *, owner: User, now: datetime
) -> NotebookServer | None:
    options = {
        name: str(value) for name, value in one.options.items() if name != "profile"
    }
    known = {
        name: value
        for name, value in options.items()
        if name.partition("--")[0] in offer.document.options
    }
    try:
        found = chosen(offer.document, known)
    except NotAChoice:
        return None
    flavor = (
        flavors_on(tenancy.cluster_id).get(offer.document.flavor)
        if found.gpus
        else None
    )
    began = min(one.started_at or now, now)
    return NotebookServer(
        team=tenancy.team,
        tenancy=tenancy,
        owner=owner,
        profile=Profile.objects.get(slug=offer.document.slug),
        profile_version=offer.number,
        flavor=flavor,
        username=one.username,
        name=one.name,
        title=(one.title or offer.document.title)[:60],
        options=dict(found.options),
        gpus=found.gpus,
        usd_per_hour=found.gpus * flavor.price_per_gpu_hour if flavor else 0,
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

"""Notebook servers that the portal ends by itself: idle ones, after a notice, and those that nobody has a right to."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from accounts.models import Membership
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.prices import cost_while
from notebooks.hubs.models import Hub
from notebooks.models import ProfileVersion
from notebooks.profile_desk.kept import document_in
from notebooks.profiles.document import Document
from notebooks.profiles.idle import (
    Deed,
    Reclaim,
    Use,
    due,
    idle_since,
    notice,
    stops_at,
)
from notebooks.servers.actions import stop_because, take_warning_back
from notebooks.servers.models import NotebookServer
from notebooks.servers.notices import tell_ends, tell_idle
from notebooks.servers.states import State, StopReason
from provisioning.models import Tenancy
from reconciling.sweeping import for_each
from ui.amounts import span, usd

# How long before its end people are told, and how long it runs on at least where nobody could be told before.
TOLD_BEFORE, RUNS_ON_FOR = timedelta(hours=1), timedelta(minutes=30)
LIMIT_COMES = "It will have run for as long as its profile allows, and is stopped then; its volumes stay."
RESTARTS = "Save what is in memory. You can start it again at once."
GPUS_END = "The GPUs that carry it go back then, and it is stopped with them; its volumes stay."
GPUS_ENDED = "Your team holds too few GPUs for it by now, so it is stopped then; its volumes stay."
KEEP, ASK = (
    "Keep the GPUs longer, and it goes on.",
    "Ask for GPUs, and it goes on.",
)


def _why_gpus_end(server: NotebookServer, was_foreseen: bool) -> str:
    """What happens to a server whose GPUs end, and what keeps it going, where anything does."""
    ends, goes_on = (GPUS_END, KEEP) if was_foreseen else (GPUS_ENDED, ASK)
    if server.flavor is not None and server.flavor.why_closed:
        goes_on = f"They cannot be kept longer: {server.flavor.why_closed}."
    return f"{ends} {goes_on}"


def end_what_is_over(*, now: datetime) -> None:
    """Stop the servers whose people left the team or whose team leaves the cluster, and those that ran long enough."""
    rows = NotebookServer.objects.filter(state__in=[State.STARTING, State.READY])
    is_member = Membership.objects.filter(user=OuterRef("owner"), team=OuterRef("team"))
    no_members = rows.filter(~Exists(is_member) | Q(owner__is_active=False))
    standing = rows.filter(tenancy__cluster__written_off_at=None)
    leaving = standing.exclude(tenancy__in=Tenancy.objects.here())
    over = [
        *(
            (pk, StopReason.NOT_A_MEMBER)
            for pk in no_members.values_list("pk", flat=True)
        ),
        *((pk, StopReason.LEAVING) for pk in leaving.values_list("pk", flat=True)),
    ]
    try:
        for_each(over, lambda one: stop_because(*one, now=now))
    finally:
        ready = list(rows.filter(state=State.READY).described())
        documents = documents_of(ready)
        for_each(ready, partial(_keep_to_limit, documents=documents, now=now))


def _keep_to_limit(
    server: NotebookServer,
    *,
    documents: Mapping[tuple[int, int], Document],
    now: datetime,
) -> None:
    """Stop a server that has run for as long as its profile allows; its owner is told once, an hour before."""
    document = documents.get((server.profile_id, server.profile_version))
    if document is None or not document.hours:
        return
    limit = limit_of(server, document)
    if limit <= now:
        stop_because(server.pk, StopReason.LIMIT, now=now)
    elif limit - now <= TOLD_BEFORE and server.limit_told_at is None:
        _tell_of_limit(server, limit, now=now)


@transaction.atomic
def _tell_of_limit(server: NotebookServer, limit: datetime, *, now: datetime) -> None:
    same = NotebookServer.objects.filter(
        pk=server.pk, state=State.READY, ready_at=server.ready_at
    )
    if same.filter(limit_told_at=None).update(limit_told_at=now):
        tell_ends(server, limit, f"{LIMIT_COMES} {RESTARTS}", now=now)


def keep_told(server: NotebookServer, ends: datetime | None, *, now: datetime) -> None:
    """Tell the owner of a server that runs, once, when GPUs end that carry it; None for never.

    They are told an hour before, and what ends before anybody could be told has half an hour from then on. `told_end`
    of the server is the moment that they know, None again where it goes on.
    """
    known = server.told_end
    if ends is None and known is not None and known <= now:
        # Its GPUs should have ended and have not yet: whatever ends them is on its way, or holds them back.
        return
    at = None
    if ends is not None and ends - now <= TOLD_BEFORE:
        at = ends if ends > now else known or now + RUNS_ON_FOR
    if at != known:
        _tell_of_end(server, at, was_foreseen=ends is not None and ends > now, now=now)


@transaction.atomic
def _tell_of_end(
    server: NotebookServer, at: datetime | None, *, was_foreseen: bool, now: datetime
) -> None:
    known = server.told_end
    same = NotebookServer.objects.filter(
        pk=server.pk, generation=server.generation, told_end=known
    )
    if not same.update(told_end=at):
        return
    server.told_end = at
    # One that lasts longer than they were told is no news.
    if at is not None and (known is None or at < known):
        tell_ends(server, at, _why_gpus_end(server, was_foreseen), now=now)


def reclaim_idle(*, now: datetime) -> None:
    """Tell people of servers that are idle, and stop those that nobody kept, as the hub of each cluster wants it."""
    rows = NotebookServer.objects.filter(
        state=State.READY,
        gpus__gt=0,
        tenancy__cluster__hub__reclaim__in=[Reclaim.WARN, Reclaim.ON],
    )
    servers = list(rows.described().select_related("tenancy__cluster__hub"))
    documents = documents_of(servers)

    def follow(server: NotebookServer) -> None:
        document = documents.get((server.profile_id, server.profile_version))
        threshold = threshold_of(document)
        mode = Reclaim(server.cluster.hub.reclaim)
        deed = due(use_of(server), threshold=threshold, mode=mode, now=now)
        if threshold is not None and deed is Deed.WARN:
            _warn(server, threshold, stops=mode is Reclaim.ON, now=now)
        elif threshold is not None and deed is Deed.STOP:
            _stop(server.pk, threshold, now=now)
        elif deed is Deed.TAKE_BACK:
            take_warning_back(server.pk)

    for_each(servers, follow)


def use_of(server: NotebookServer) -> Use:
    """How a ready server was used, as its row says it; it comes with `tenancy__cluster__hub`."""
    hub: Hub | None = getattr(server.cluster, "hub", None)
    return Use(
        ready_at=server.ready_at or server.launched_at,
        active_at=server.active_at,
        gpu_busy_at=server.gpu_busy_at,
        has_prometheus=server.gpus > 0 and bool(server.cluster.prometheus),
        measured_since=server.gpu_measured_since,
        measured_at=server.gpu_measured_at,
        hub_answers=hub is not None and hub.reachable is not False,
        followed_since=hub.followed_since if hub else None,
        followed_at=hub.followed_at if hub else None,
        warned_at=server.warned_at,
        keep_until=server.kept_until,
    )


def threshold_of(document: Document | None) -> timedelta | None:
    """After how long without use a server of a profile is idle; None for never."""
    return (
        timedelta(minutes=document.idle_minutes)
        if document and document.idle_minutes
        else None
    )


def limit_of(server: NotebookServer, document: Document) -> datetime:
    """When a server ends that its profile lets run for some hours."""
    return (server.ready_at or server.launched_at) + timedelta(
        hours=document.hours or 0
    )


def documents_of(servers: list[NotebookServer]) -> Mapping[tuple[int, int], Document]:
    """The profiles of servers in the versions they were started with, in one query."""
    wanted = {(one.profile_id, one.profile_version) for one in servers}
    versions = ProfileVersion.objects.filter(
        profile__in={profile for profile, _ in wanted}
    )
    found = [one for one in versions if (one.profile_id, one.number) in wanted]
    read = {(one.profile_id, one.number): document_in(one) for one in found}
    return {key: document for key, document in read.items() if document is not None}


@transaction.atomic
def _stop(server_id: int, threshold: timedelta, *, now: datetime) -> None:
    """Stop an idle server, unless it was used or kept since it was looked at."""
    server = (
        NotebookServer.objects.locked()
        .select_related("tenancy__cluster__hub")
        .get(pk=server_id)
    )
    if due(use_of(server), threshold=threshold, mode=Reclaim.ON, now=now) is Deed.STOP:
        stop_because(server_id, StopReason.IDLE, now=now)


@transaction.atomic
def _warn(
    server: NotebookServer, threshold: timedelta, *, stops: bool, now: datetime
) -> None:
    """Tell the owner once of this idleness; what was used or kept meanwhile is not told of."""
    fresh = NotebookServer.objects.filter(
        pk=server.pk, state=State.READY, warned_at=None
    )
    same = {
        name: getattr(server, name)
        for name in ("active_at", "gpu_busy_at", "keep_until", "exempt_until")
    }
    if not fresh.filter(**same).update(warned_at=now):
        return
    server.warned_at = now
    idle = now - idle_since(use_of(server))
    spent = cost_while(idle, usd_per_hour=server.usd_per_hour)
    minutes = span(max(stops_at(use_of(server), threshold) - now, notice(threshold)))
    ends = (
        f"It is stopped in {minutes}; its volumes stay."
        if stops
        else "Stop it if you need it no more."
    )
    cost = f", which cost {usd(spent)}" if spent else ""
    tell_idle(server, idle=span(idle), cost=cost, ends=ends, now=now)
    record(
        Kind.NOTEBOOK_IDLE,
        actor=PORTAL,
        subject=("notebook", server.pk),
        team_id=server.team_id,
        name=server.title,
        minutes=int(idle.total_seconds() // 60),
    )

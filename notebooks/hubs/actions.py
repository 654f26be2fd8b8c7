"""What changes about hubs: platform leads connect them, make keys and disconnect them; what was observed is kept."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster
from notebooks.hubs import connections
from notebooks.hubs.keys import digest_of, new_key
from notebooks.hubs.models import Hub, UnknownServer
from notebooks.profiles.idle import FOLLOWED_FOR, Reclaim
from notebooks.servers.models import NotebookServer
from reconciling.backoff import Backoff
from web.refusals import BadInput, Conflict, NoRight

# Due hubs are enqueued every 30 seconds; whoever observes one has a minute for it before another worker may.
OBSERVED_EVERY = timedelta(seconds=25)
OBSERVING = timedelta(seconds=60)
MAX_UNKNOWN = 200
PAUSES = Backoff(OBSERVED_EVERY, timedelta(minutes=5))


NOT_WITH_VOLCANO = "its queues are Volcano’s, and notebooks get their GPUs through Kueue’s. There are none there."


def require_lead(user: User) -> None:
    """Raises NoRight for who does not manage clusters."""
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads connect and change hubs.", code="not_a_platform_lead"
        )


@transaction.atomic
def connect(
    cluster: Cluster,
    *,
    address: str,
    token_file: str,
    by: User,
    now: datetime,
    public_address: str | None = None,
    reclaim: str | None = None,
) -> Hub:
    """Connect a cluster's hub, or change how it is connected; a worker observes it within a minute.

    Without `public_address` or `reclaim` these stay as they are; a new hub is opened at its address and has `reclaim`
    off. Another address is another hub, whose names for
    people are learnt anew. Raises NoRight, BadInput naming the field, Conflict where another cluster has this hub or
    where the address would change while servers run.
    """
    require_lead(by)
    if cluster.has_volcano:
        raise Conflict(f"{cluster.title}: {NOT_WITH_VOLCANO}", code="no_hub")
    if cluster.written_off_at is not None:
        raise Conflict(f"{cluster.title} is written off.", code="written_off")
    hub, is_new = _locked(cluster, now)
    address = connections.checked_address(address)
    connections.check_token_file(token_file)
    if reclaim is not None and reclaim not in [*Reclaim]:
        raise BadInput(
            "Idle GPUs are reclaimed off, warn or on.", code="invalid", field="reclaim"
        )
    if public_address is not None:
        public_address = connections.checked_public_address(public_address)
    wanted = {
        "address": address,
        "public_address": hub.public_address
        if public_address is None
        else public_address,
        "token_file": token_file,
        "reclaim": reclaim or hub.reclaim,
    }
    changed = {
        name: value
        for name, value in wanted.items()
        if is_new or getattr(hub, name) != value
    }
    if not changed:
        return hub
    if "address" in changed and not is_new:
        _refuse_while_servers_run(hub)
    for name, value in changed.items():
        setattr(hub, name, value)
    if {"address", "token_file"} & changed.keys():
        _forget_observed(hub, now)
    _save(hub)
    if "address" in changed:
        hub.accounts.all().delete()
        hub.unknown_servers.all().delete()
    _record(Kind.HUB_CONNECTED if is_new else Kind.HUB_CHANGED, hub, by, **changed)
    return hub


@transaction.atomic
def make_key(hub: Hub, *, by: User, now: datetime) -> tuple[Hub, str]:
    """Give the hub a new key to call the portal with, shown this once; the one before ends.

    Raises NoRight, Conflict where it was disconnected meanwhile.
    """
    require_lead(by)
    hub = _there(hub.cluster, now)
    made, before = new_key(), hub.key_prefix
    hub.key_prefix, hub.key_digest, hub.key_made_at = (
        made.prefix,
        digest_of(made.text),
        now,
    )
    hub.save(update_fields=["key_prefix", "key_digest", "key_made_at"])
    _record(Kind.HUB_KEY_MADE, hub, by, prefix=made.prefix, ended=before)
    return hub, made.text


@transaction.atomic
def disconnect(hub: Hub, *, by: User, now: datetime) -> None:
    """Forget the hub, its key and its names for people. Raises as `make_key`, and Conflict while servers run there."""
    require_lead(by)
    hub = _there(hub.cluster, now)
    _refuse_while_servers_run(hub)
    _record(Kind.HUB_DISCONNECTED, hub, by, address=hub.address)
    hub.delete()


def claim_observation(hub_id: int, *, now: datetime) -> bool:
    """Whether a worker may observe a hub now; no other one may until it is done, or a minute later."""
    return bool(
        Hub.objects.due(now).filter(pk=hub_id).update(next_look_at=now + OBSERVING)
    )


@transaction.atomic
def note_observed(
    seen: Hub,
    *,
    now: datetime,
    version: str = "",
    problem: str = "",
    retry_after: float | None = None,
) -> None:
    """Keep what was found of `seen`: a version, or the problem for which the portal cannot work with the hub.

    Nothing is kept of a hub that was changed meanwhile. Each failure doubles the wait, to at most five minutes unless
    the hub asks for more (`retry_after` in seconds).
    """
    rows = Hub.objects.locked().select_related("cluster")
    hub = rows.filter(
        pk=seen.pk, address=seen.address, token_file=seen.token_file
    ).first()
    if hub is None:
        return
    was_reachable, hub.reachable = hub.reachable, not problem
    hub.message, hub.looked_at = problem, now
    hub.version = version or hub.version
    hub.failures = hub.failures + 1 if problem else 0
    wait = (
        PAUSES.wait(hub.failures, retry_after=retry_after)
        if problem
        else OBSERVED_EVERY
    )
    hub.next_look_at = now + wait
    hub.save(
        update_fields=[
            "reachable",
            "message",
            "looked_at",
            "version",
            "failures",
            "next_look_at",
        ]
    )
    if hub.reachable is not was_reachable:
        kind = Kind.HUB_REACHABLE if hub.reachable else Kind.HUB_UNREACHABLE
        record(kind, actor=PORTAL, subject=("hub", hub.cluster.name), message=problem)


def note_followed(seen: Hub, *, now: datetime) -> None:
    """Keep that a hub has said now how its servers are used; after a gap that begins anew.

    Nothing is kept of a hub that was changed meanwhile, and nothing moves back.
    """
    rows = Hub.objects.filter(pk=seen.pk, address=seen.address)
    has_gap = Q(followed_at=None) | Q(followed_at__lt=now - FOLLOWED_FOR)
    rows.filter(has_gap).update(followed_since=now, followed_at=now)
    rows.filter(followed_at__lt=now).update(followed_at=now)


@transaction.atomic
def note_unknown(seen: Hub, found: Iterable[UnknownServer]) -> None:
    """Keep which servers of a hub were not taken in, the first 200 by name; those that are no longer so are forgotten.

    Nothing is kept of a hub that was changed meanwhile.
    """
    rows = Hub.objects.locked()
    hub = rows.filter(pk=seen.pk, address=seen.address).first()
    if hub is None:
        return
    ordered = sorted(found, key=lambda one: (one.username, one.name))[:MAX_UNKNOWN]
    wanted = {(one.username, one.name, one.reason): one for one in ordered}
    kept = {
        (one.username, one.name, one.reason): one.pk
        for one in hub.unknown_servers.all()
    }
    gone = [pk for key, pk in kept.items() if key not in wanted]
    if gone:
        hub.unknown_servers.filter(pk__in=gone).delete()
    UnknownServer.objects.bulk_create(
        [one for key, one in wanted.items() if key not in kept]
    )


def _locked(cluster: Cluster, now: datetime) -> tuple[Hub, bool]:
    """The hub, and whether it is a new one; nobody else connects it meanwhile, and no notebook starts there."""
    cluster = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    found = Hub.objects.locked().filter(pk=cluster.pk).first()
    if found is None:
        return Hub(cluster=cluster, next_look_at=now), True
    found.cluster = cluster
    return found, False


def _there(cluster: Cluster, now: datetime) -> Hub:
    hub, is_new = _locked(cluster, now)
    if is_new:
        raise Conflict("The cluster has no hub any more.", code="no_hub")
    return hub


def _refuse_while_servers_run(hub: Hub) -> None:
    running = NotebookServer.objects.live().filter(tenancy__cluster=hub.pk).count()
    if running:
        raise Conflict(
            f"{running} notebook{' runs' if running == 1 else 's run'} on this hub. They are stopped first.",
            code="notebooks_run",
        )


def _forget_observed(hub: Hub, now: datetime) -> None:
    hub.version, hub.reachable, hub.message, hub.looked_at = "", None, "", None
    hub.failures, hub.next_look_at = 0, now
    hub.followed_since = hub.followed_at = None


def _save(hub: Hub) -> None:
    try:
        with transaction.atomic():
            hub.save()
    except IntegrityError as error:
        raise Conflict(
            "This hub is connected to another cluster: each cluster has its own.",
            code="hub_of_another_cluster",
            field="address",
        ) from error


def _record(kind: Kind, hub: Hub, by: User, **details: Any) -> None:
    record(kind, actor=by.as_actor(), subject=("hub", hub.cluster.name), **details)

"""Reading what Azure says of a subscription, every ten minutes: sizes, quotas, pools, and what the portal may do."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from capacity.connection import Azure, azure_of, home_subscription, is_connected
from capacity.metering import actions as metering
from capacity.metering.actions import Level
from capacity.metering.keys import quota_key
from capacity.models import (
    FamilyQuota,
    ModelAccount,
    NodePool,
    Reservation,
    Subscription,
    VmSize,
)
from capacity.openai.observing import keep_models
from capacity.orphans import reading as orphans
from capacity.subscriptions import actions, following
from capacity.subscriptions.ids import aks_of
from capacity.subscriptions.replacing import replace
from connectors.azure.compute import Size
from connectors.azure.container_service import AgentPool
from connectors.azure.ids import parsed
from connectors.azure.rights import missing
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from fleet.models import Cluster
from reconciling.backoff import Backoff

log = structlog.get_logger(__name__)
LOOKED_EVERY, LOOKING = timedelta(minutes=10), timedelta(minutes=5)
# What sizes there are changes with Azure's catalogue alone.
SIZES_EVERY = timedelta(hours=12)
PAUSES = Backoff(timedelta(seconds=30), timedelta(minutes=10))
Clock = Callable[[], datetime]


def keep_known(*, now: datetime) -> None:
    """Have a row for each subscription that a cluster or a reservation is in, and for the one that is configured."""
    following.forget_azure()
    if not is_connected():
        return
    wanted = {home_subscription()}
    wanted |= {
        found.subscription.lower()
        for one in Cluster.objects.exclude(azure_id="")
        if (found := aks_of(one))
    }
    wanted |= {
        *Reservation.objects.in_azure()
        .values_list("subscription", flat=True)
        .distinct()
    }
    wanted |= {
        *ModelAccount.objects.in_azure()
        .values_list("subscription", flat=True)
        .distinct()
    }
    new = [Subscription(pk=one, next_look_at=now) for one in sorted(wanted)]
    Subscription.objects.bulk_create(new, ignore_conflicts=True)
    Subscription.objects.exclude(pk__in=wanted).delete()


def observe(subscription_id: str, *, now: Clock) -> bool:
    """Read one subscription and keep what was found; False while another worker does, or before its time."""
    at = now()
    if (
        not Subscription.objects.due(at)
        .filter(pk=subscription_id)
        .update(next_look_at=at + LOOKING)
    ):
        return False
    subscription = Subscription.objects.get(pk=subscription_id)
    is_answered = True
    try:
        _read(subscription, azure_of(subscription.pk), now)
    except ConnectorError as error:
        is_answered = isinstance(error, PermanentError)
        wait = error.retry_after if isinstance(error, TemporaryError) else None
        note_look(subscription.pk, problem=error.message, retry_after=wait, now=now())
    else:
        note_look(subscription.pk, now=now())
    if is_answered:
        # Also where Azure refuses to be read: that is when people want to know what the portal lacks.
        _check_rights(subscription, now)
    return True


def _check_rights(subscription: Subscription, now: Clock) -> None:
    """Keep what the portal may not do in a subscription; where that cannot be read, the reading is none the worse."""
    try:
        held = azure_of(subscription.pk).authorization.permissions(
            f"/subscriptions/{subscription.pk}"
        )
    except ConnectorError as error:
        actions.note_unchecked(subscription.pk, error.message)
    else:
        actions.keep_rights(subscription.pk, missing(held), now=now())


@transaction.atomic
def note_look(
    subscription_id: str,
    *,
    now: datetime,
    problem: str = "",
    retry_after: float | None = None,
) -> None:
    """Keep how a look went; each failure doubles the wait."""
    row = (
        Subscription.objects.select_for_update(no_key=True)
        .filter(pk=subscription_id)
        .first()
    )
    if row is None:
        return
    was, row.reachable = row.reachable, not problem
    row.message, row.looked_at = problem[:600], now
    row.answered_at = row.answered_at if problem else now
    row.failures = row.failures + 1 if problem else 0
    wait = (
        PAUSES.wait(row.failures, retry_after=retry_after) if problem else LOOKED_EVERY
    )
    row.next_look_at = now + wait
    row.save()
    if row.reachable is not was:
        kind = (
            Kind.SUBSCRIPTION_REACHABLE
            if row.reachable
            else Kind.SUBSCRIPTION_UNREACHABLE
        )
        record(
            kind, actor=PORTAL, subject=("subscription", row.pk), message=row.message
        )


def _read(subscription: Subscription, azure: Azure, now: Clock) -> None:
    clusters = [
        one
        for one in Cluster.objects.exclude(azure_id="")
        if _is_in(one, subscription.pk)
    ]
    reserved = Reservation.objects.in_azure().filter(subscription=subscription.pk)
    regions = {one.region for one in clusters} | {
        *reserved.values_list("region", flat=True).distinct()
    }
    is_home = subscription.pk == home_subscription()
    if is_home:
        regions |= {
            *Cluster.objects.looked_after()
            .exclude(azure_id="")
            .values_list("region", flat=True)
        }
    for region in sorted(regions):
        if _sizes_are_old(subscription, region, now()):
            _keep_sizes(subscription, region, azure.compute.sizes(region), now())
        _keep_quotas(subscription, region, azure, now())
    if is_home:
        accounts = ModelAccount.objects.in_azure().filter(subscription=subscription.pk)
        for region in sorted(
            regions | {*accounts.values_list("region", flat=True).distinct()}
        ):
            keep_models(subscription, region, azure, now())
    failures = [_read_cluster(one, azure, now) for one in clusters]
    # Last, as nothing else waits for it.
    orphans.read(subscription, azure, now=now())
    for failure in failures:
        if isinstance(failure, TemporaryError):
            raise failure


def _read_cluster(cluster: Cluster, azure: Azure, now: Clock) -> ConnectorError | None:
    """Keep a cluster's pools, or with it why they cannot be read: one that was deleted in Azure hides no other."""
    aks = aks_of(cluster)
    assert aks is not None  # noqa: S101 - `_is_in` has looked
    try:
        _keep_pools(cluster, azure.containers.pools(aks.group, aks.name), azure, now())
    except ConnectorError as error:
        actions.note_cluster(cluster.pk, error.message)
        return error
    actions.note_cluster(cluster.pk, "")
    following.follow(cluster)
    return None


def _is_in(cluster: Cluster, subscription: str) -> bool:
    found = aks_of(cluster)
    return found is not None and found.subscription.lower() == subscription


def _sizes_are_old(subscription: Subscription, region: str, now: datetime) -> bool:
    fresh = VmSize.objects.filter(
        subscription=subscription, region=region, seen_at__gt=now - SIZES_EVERY
    )
    return not fresh.exists()


def _keep_sizes(
    subscription: Subscription, region: str, sizes: Iterable[Size], now: datetime
) -> None:
    rows = [
        VmSize(
            subscription=subscription,
            region=region,
            name=one.name,
            family=one.family,
            vcpus=one.vcpus,
            gpus=one.gpus,
            zones=[*one.zones],
            is_reservable=one.is_reservable,
            restriction=one.closed,
            seen_at=now,
        )
        for one in sizes
        if one.gpus
    ]
    replace(VmSize, rows, subscription=subscription, region=region, now=now)


def _keep_quotas(
    subscription: Subscription, region: str, azure: Azure, now: datetime
) -> None:
    """The families of the GPUs that there are, and the region's total; of the other families nobody asks anything."""
    families = {
        name.casefold()
        for name in VmSize.objects.filter(
            subscription=subscription, region=region
        ).values_list("family", flat=True)
    } | {FamilyQuota.REGIONAL, FamilyQuota.SPOT}
    found = [
        one for one in azure.compute.usages(region) if one.name.casefold() in families
    ]
    rows = [
        FamilyQuota(
            subscription=subscription,
            region=region,
            name=one.name,
            title=one.title,
            limit=one.limit,
            used=one.used,
            seen_at=now,
        )
        for one in found
    ]
    replace(FamilyQuota, rows, subscription=subscription, region=region, now=now)
    for one in found:
        # Families that the subscription may not use at all are no limit that comes near.
        if one.limit or one.used:
            metering.note(
                Level(
                    key=quota_key(subscription.pk, region, one.name),
                    title=f"{one.title} in {region}",
                    unit="vCPUs",
                    limit=one.limit,
                    used=one.used,
                ),
                now=now,
            )


def _keep_pools(
    cluster: Cluster, found: Iterable[AgentPool], azure: Azure, now: datetime
) -> None:
    rows = []
    for one in found:
        reserved, used = _reserved_for(one, azure)
        rows.append(
            NodePool(
                cluster=cluster,
                name=one.name,
                vm_size=one.size,
                nodes=one.count,
                min_nodes=one.minimum,
                max_nodes=one.maximum,
                is_spot=one.is_spot,
                labels=dict(one.labels),
                reservation_group=one.reservation_group,
                reserved=reserved,
                reserved_used=used,
                seen_at=now,
            )
        )
    replace(NodePool, rows, cluster=cluster, now=now)


def _reserved_for(pool: AgentPool, azure: Azure) -> tuple[int, int]:
    """Machines of the pool's size in its reservation group, whoever made that: reserved, and in use."""
    group = parsed(pool.reservation_group)
    if group is None:
        return 0, 0
    rows = azure.compute.reservations(group.group, group.name)
    mine = [one for one in rows if one.size.casefold() == pool.size.casefold()]
    return sum(one.held for one in mine), sum(one.used for one in mine)

"""How hard a cluster is worked on, over all workers: tenancies at once, writes a second, and none while it is away."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Case, F, IntegerField, Q, Value, When

from connectors.errors import ConnectorError
from fleet.models import Cluster
from provisioning.models import ClusterThrottle, Tenancy
from reconciling import breaker, rate

# Steady work may be this far ahead of its budget, a team's first objects farther: on-boarding must not wait in line.
BURST, BURST_ON_BOARDING = timedelta(seconds=1), timedelta(seconds=10)


def of(cluster: Cluster) -> ClusterThrottle:
    """The row as it was read with the cluster; one that is not there yet holds nothing against anybody."""
    try:
        return cluster.throttle
    except ClusterThrottle.DoesNotExist:
        return ClusterThrottle(cluster=cluster)


def max_concurrent(cluster: Cluster) -> int:
    """How many tenancies of a cluster are worked on at once.

    Of one that does not answer it is one, so that finding out whether it is back costs one worker, not all of them.
    """
    is_away = cluster.is_away or of(cluster).open_until is not None
    return 1 if is_away else cluster.most_at_once


# The same of each tenancy's cluster, in a query of tenancies.
MAX_CONCURRENT = Case(
    When(
        Q(cluster__reachable=False) | Q(cluster__throttle__open_until__isnull=False),
        then=Value(1),
    ),
    default=F("cluster__most_at_once"),
    output_field=IntegerField(),
)


def reserve(
    cluster: Cluster, writes: int, *, on_boarding: bool, now: datetime
) -> timedelta | None:
    """Take so many writes from the cluster's budget; None when they may be done, else after how long to come again."""
    burst = BURST_ON_BOARDING if on_boarding else BURST
    throttle = ClusterThrottle(pk=cluster.pk)
    return rate.reserve(
        throttle, writes, per_second=cluster.writes_per_second, burst=burst, now=now
    )


def seconds_here(cluster: Cluster) -> float:
    """How long this process still leaves the cluster alone; asks the database nothing."""
    return breaker.seconds_here(ClusterThrottle(pk=cluster.pk))


def seconds_to_wait(cluster: Cluster, *, now: datetime) -> float:
    """How long this process still leaves the cluster alone, for its own sake or with all others; 0 when it may call."""
    return breaker.seconds_to_wait(of(cluster), now=now)


def probe(
    cluster: Cluster, *, now: Callable[[], datetime]
) -> AbstractContextManager[bool]:
    """Whether the cluster may be called in the block: what last kept somebody waiting is called by one worker alone."""
    return breaker.probe(of(cluster), now=now)


def failed(
    cluster: Cluster, error: ConnectorError, *, seconds: float, now: datetime
) -> bool:
    """Have everybody leave the cluster alone if a call took so long and had no answer at all; whether it did."""
    return breaker.failed(
        ClusterThrottle(pk=cluster.pk), error, seconds=seconds, now=now
    )


def answered(cluster: Cluster, *, now: datetime) -> None:
    """Forget what was held against the cluster, and have what waited for it tried now.

    It asks the database nothing when there is nothing. What failed while the cluster was away was put off for up to a
    minute, each by itself, though only the cluster was at fault.
    """
    throttle = of(cluster)
    breaker.forget(throttle)
    if throttle.open_until is None:
        return
    waiting = Tenancy.objects.filter(
        cluster=cluster, is_true=False, slot=None, requeue_at__gt=now
    )
    waiting = waiting.filter(conditions__0__reason="WillTryAgain").order_by()
    with transaction.atomic():
        if breaker.close_everywhere(throttle):
            # Whoever holds one of them will look at it, so nobody is waited for here.
            free = list(
                waiting.select_for_update(skip_locked=True, no_key=True).values_list(
                    "pk", flat=True
                )
            )
            Tenancy.objects.filter(pk__in=free).requeue(now)

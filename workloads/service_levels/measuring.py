"""Counting the requests of services: the Prometheus of their cluster is asked every five minutes, once for each span.

A span ends at a full five minutes and at midnight (UTC), and stands in the query: a look that is late or made twice
counts nothing twice and leaves nothing out that Prometheus still knows, for a day back.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from django.db import transaction

from connectors.errors import ConnectorError
from fleet.models import Cluster
from provisioning import throttle
from provisioning.delivery import client_for
from reconciling.sweeping import for_each
from workloads.service_levels.budget import DAYS, State, budget_of
from workloads.service_levels.meters import Counted, Meter, counted, query
from workloads.service_levels.models import ServiceDay, ServiceLevel
from workloads.service_levels.notices import tell_leads

LOOK = timedelta(minutes=5)
# Prometheus reads its targets every half minute, or every minute.
SETTLED = timedelta(minutes=1)
LONGEST = timedelta(days=1)
Clock = Callable[[], datetime]
Span = tuple[datetime, datetime]


def measure(*, now: Clock) -> None:
    """Count what the services of every cluster had since the last look; a silent cluster delays no other."""
    levels = ServiceLevel.objects.measured()
    clusters = Cluster.objects.filter(pk__in=levels.values("tenancy__cluster"))
    for_each(clusters, lambda cluster: _measure(cluster, now=now()))


def spans(begins: datetime, ends: datetime) -> Iterator[Span]:
    """What lies between two moments, by day (UTC), a day back at most."""
    at = max(begins, ends - LONGEST)
    while at < ends:
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + timedelta(1)
        until = min(midnight, ends)
        yield at, until
        at = until


def last_look(now: datetime) -> datetime:
    """The full five minutes of which Prometheus knows everything by now."""
    settled = (now - SETTLED).astimezone(UTC)
    return settled - (settled - datetime.min.replace(tzinfo=UTC)) % LOOK


def _measure(cluster: Cluster, *, now: datetime) -> None:
    if not cluster.is_observed or throttle.seconds_to_wait(cluster, now=now):
        return
    levels = ServiceLevel.objects.measured().filter(tenancy__cluster=cluster)
    asked = defaultdict[tuple[Span, str], list[ServiceLevel]](list)
    for level in levels.select_related("tenancy"):
        since = level.measured_until or last_look(level.set_at)
        for span in spans(since, last_look(now)):
            asked[span, level.meter].append(level)
    try:
        for (span, meter), found in sorted(asked.items(), key=lambda one: one[0]):
            _count(cluster, Meter(meter), span, found, now=now)
    except ConnectorError as error:
        levels.update(problem=error.message[:300])


def _count(
    cluster: Cluster,
    meter: Meter,
    span: Span,
    levels: list[ServiceLevel],
    *,
    now: datetime,
) -> None:
    samples = client_for(cluster).measured(cluster.prometheus, query(meter, *span))
    found = counted(meter, samples)
    for level in levels:
        seen = found.get((level.tenancy.namespace, level.service))
        _add(level.pk, meter, span, seen, now=now)


@transaction.atomic
def _add(
    level_id: int, meter: Meter, span: Span, seen: Counted | None, *, now: datetime
) -> None:
    """Add what was counted in a span, once; None is a service that Prometheus knows nothing of."""
    begins, ends = span
    rows = ServiceLevel.objects.locked().filter(pk=level_id, meter=meter)
    level = rows.select_related("tenancy__team", "tenancy__cluster").first()
    if level is None or (level.measured_until or begins) > begins:
        return  # removed, changed or counted by another round meanwhile
    level.measured_until, level.problem = ends, ""
    if seen is not None:
        level.seen_at = ends
        _add_to_day(level, begins, seen)
    level.told = _tell(level, now=now)
    level.save(update_fields=["measured_until", "problem", "seen_at", "told"])


def _add_to_day(level: ServiceLevel, begins: datetime, seen: Counted) -> None:
    day, _ = ServiceDay.objects.get_or_create(
        level=level, day=begins.date(), defaults={"requests": 0, "failed": 0}
    )
    day.requests += seen.requests
    day.failed += seen.failed
    day.p99 = max((one for one in (day.p99, seen.p99) if one is not None), default=None)
    day.save(update_fields=["requests", "failed", "p99"])


def _tell(level: ServiceLevel, *, now: datetime) -> str:
    """Tell its leads when a budget goes too fast or is used up, once until all is well again; what they were told."""
    today = now.astimezone(UTC).date()
    window = level.days.filter(day__gt=today - timedelta(DAYS))
    budget = budget_of((one.counted for one in window), level.objective, today=today)
    if budget.state is State.WELL:
        return ""
    is_news = {State.FAST: level.told == "", State.SPENT: level.told != State.SPENT}
    if not is_news.get(budget.state, False):
        return level.told
    tell_leads(level, budget, now=now)
    return str(budget.state)

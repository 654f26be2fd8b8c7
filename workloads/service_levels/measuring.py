"""Counting the requests of services: the Prometheus of their cluster is asked every five minutes, once for each span.

A span ends at a full five minutes and at each full hour (UTC), so that it is of one day and never much to ask for. It
stands in the query: a look that is late or made twice counts nothing twice and leaves nothing out that Prometheus still
knows, for a day back.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from django.db import transaction
from django.db.models import Min

from connectors.errors import ConnectorError
from fleet.models import Cluster
from provisioning import throttle
from provisioning.delivery import client_for
from reconciling.sweeping import for_each
from workloads.service_levels.budget import DAYS, Budget, State, budget_of
from workloads.service_levels.meters import Counted, Meter, counted, query
from workloads.service_levels.models import ServiceDay, ServiceLevel
from workloads.service_levels.notices import (
    message_of_budget,
    message_of_latency,
    tell_leads,
)

LOOK = timedelta(minutes=5)
# Prometheus reads its targets every half minute, or every minute.
SETTLED = timedelta(minutes=1)
LONGEST, HOUR = timedelta(days=1), timedelta(hours=1)
Clock = Callable[[], datetime]
Span = tuple[datetime, datetime]


def measure(*, now: Clock) -> None:
    """Count what the services of every cluster had since the last look; a silent cluster delays no other."""
    levels = ServiceLevel.objects.measured()
    clusters = Cluster.objects.filter(pk__in=levels.values("tenancy__cluster"))
    for_each(clusters, lambda cluster: _measure(cluster, now=now()))


def spans(begins: datetime, ends: datetime) -> Iterator[Span]:
    """What lies between two moments, by hour, a day back at most."""
    at = max(begins, ends - LONGEST)
    while at < ends:
        until = min(at.replace(minute=0, second=0, microsecond=0) + HOUR, ends)
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
    for meter in Meter:
        rows = levels.filter(meter=meter)
        try:
            _count_all(cluster, meter, rows.select_related("tenancy"), now=now)
        except ConnectorError as error:
            # Of this meter alone: what Prometheus cannot count of one, it may count of the others.
            rows.update(problem=error.message.replace("\0", "")[:300])


def _count_all(
    cluster: Cluster, meter: Meter, levels: Iterable[ServiceLevel], *, now: datetime
) -> None:
    asked = defaultdict[Span, list[ServiceLevel]](list)
    for level in levels:
        since = level.measured_until or last_look(level.set_at)
        for span in spans(since, last_look(now)):
            asked[span].append(level)
    for span, found in sorted(asked.items(), key=lambda one: one[0]):
        _count(cluster, meter, span, found, now=now)


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
        _add(level, meter, span, seen, now=now)


@transaction.atomic
def _add(
    known: ServiceLevel,
    meter: Meter,
    span: Span,
    seen: Counted | None,
    *,
    now: datetime,
) -> None:
    """Add what was counted in a span, once; None is a service that Prometheus knows nothing of.

    `known` is the level as this round has it: one that was removed, changed or counted by another round meanwhile is
    left alone, also with the later spans of this round, which would leave out what lies before them.
    """
    _, ends = span
    rows = ServiceLevel.objects.locked().filter(
        pk=known.pk, meter=meter, measured_until=known.measured_until
    )
    level = rows.select_related("tenancy__team", "tenancy__cluster").first()
    if level is None:
        return
    level.measured_until, level.problem = ends, ""
    if seen is not None:
        level.seen_at = ends
        _add_to_day(level, span, seen)
    _tell(level, now=now)
    level.save(
        update_fields=["measured_until", "problem", "seen_at", "told", "told_slow"]
    )
    known.measured_until = ends


def _add_to_day(level: ServiceLevel, span: Span, seen: Counted) -> None:
    begins, ends = span
    day, _ = ServiceDay.objects.get_or_create(
        level=level, day=begins.date(), defaults={"requests": 0, "failed": 0}
    )
    day.requests += seen.requests
    day.failed += seen.failed
    day.save(update_fields=["requests", "failed"])
    if seen.p99 is not None:
        _add_latency(level, (ends - HOUR).date(), (seen.p99, seen.is_beyond))


def _add_latency(level: ServiceLevel, on: date, found: tuple[float, bool]) -> None:
    """Keep the worst hour of the day in which it began; of a day of which nothing is counted, there is none."""
    day = level.days.filter(day=on).first()
    if day is None:
        return
    day.p99, day.is_beyond = max((day.p99 or 0, day.is_beyond), found)
    day.save(update_fields=["p99", "is_beyond"])


def _tell(level: ServiceLevel, *, now: datetime) -> None:
    """Tell its leads what they do not know yet of its budget and its latency."""
    today = now.astimezone(UTC).date()
    window = level.days.filter(day__gt=today - timedelta(DAYS))
    first: date | None = level.days.aggregate(first=Min("day"))["first"]
    budget = budget_of(
        (one.counted for one in window), level.objective, today=today, first=first
    )
    level.told = _tell_of_budget(level, budget, now=now)
    level.told_slow = _tell_of_latency(level, budget, now=now)


def _tell_of_budget(level: ServiceLevel, budget: Budget, *, now: datetime) -> str:
    """Tell when a budget goes too fast or is used up, once until all is well again; what leads were told."""
    if budget.is_calm:
        return ""
    is_news = {State.FAST: level.told == "", State.SPENT: level.told != State.SPENT}
    if not is_news.get(budget.state, False):
        return level.told
    tell_leads(level, message_of_budget(level, budget), now=now)
    return str(budget.state)


def _tell_of_latency(level: ServiceLevel, budget: Budget, *, now: datetime) -> bool:
    """Tell when a service is slower than promised, once until a day and the one before had no slow hour."""
    if budget.p99 is None or budget.is_unseen:
        return level.told_slow
    if budget.is_slow and not level.told_slow:
        tell_leads(level, message_of_latency(level, budget), now=now)
    return budget.is_slow

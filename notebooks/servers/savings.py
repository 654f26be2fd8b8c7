"""What stopping idle notebooks has freed: others could have their GPUs until somebody started them again."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from notebooks.servers.models import IdleStop, NotebookServer

# What stands still for longer than this would have been stopped by somebody.
MOST = timedelta(days=1)
# How far back a report goes.
REPORTED = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Saved:
    """How often idle notebooks were stopped since a moment, and what their GPUs did not take meanwhile."""

    since: datetime
    stops: int
    gpu_hours: Decimal
    usd: Decimal


def note_stop(server: NotebookServer, *, now: datetime) -> None:
    """Count from now on what a server with GPUs, which was stopped because nobody used it, takes no more."""
    if server.gpus:
        IdleStop.objects.create(
            server=server,
            cluster=server.tenancy.cluster,
            gpus=server.gpus,
            usd_per_hour=server.usd_per_hour,
            stopped_at=now,
            until=now + MOST,
        )


def note_start(server: NotebookServer, *, now: datetime) -> None:
    """Count no further for a server that starts again."""
    IdleStop.objects.filter(server=server, until__gt=now).update(until=now)


def saved_on(cluster_id: int, *, now: datetime) -> Saved:
    """What was freed on a cluster within the last 30 days; one query."""
    since = now - REPORTED
    return summed(
        IdleStop.objects.filter(cluster=cluster_id, stopped_at__gte=since),
        since=since,
        now=now,
    )


def summed(stops: Iterable[IdleStop], *, since: datetime, now: datetime) -> Saved:
    """Stops added up, each until its server was started again, or until now."""
    number, gpu_hours, usd = 0, Decimal(0), Decimal(0)
    for one in stops:
        hours = Decimal((min(one.until, now) - one.stopped_at).total_seconds()) / 3_600
        number, gpu_hours, usd = (
            number + 1,
            gpu_hours + hours * one.gpus,
            usd + hours * one.usd_per_hour,
        )
    return Saved(since=since, stops=number, gpu_hours=gpu_hours, usd=usd)

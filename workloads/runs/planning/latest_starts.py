"""By when work that is not sent yet would start in a namespace, behind what waits there already."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from allocations.models import Allocation
from provisioning.models import Tenancy
from workloads.models import Run
from workloads.observed import Queue, Workload
from workloads.reading.limits import limits_of
from workloads.reading.queues import quota_holders_of
from workloads.reasons.latest_starts import LineEntry, entry_of, latest_starts
from workloads.reasons.line import latest
from workloads.runs.held_until import changes_of


def latest_starts_of(
    wanted: Collection[tuple[str, int]],
    *,
    tenancy: Tenancy,
    queue: Queue,
    workloads: Sequence[Any],
    jobs: Sequence[Any],
    ahead: Sequence[Workload],
    now: datetime,
) -> dict[tuple[str, int], str]:
    """By when so many GPUs of a flavor are free behind those `ahead`, in words, of each where that is known."""
    if not wanted:
        return {}
    runs = Run.objects.filter(tenancy=tenancy, ended_at=None)
    limits = limits_of(
        jobs,
        {
            (tenancy.namespace, name): timedelta(seconds=seconds)
            for name, seconds in runs.values_list("name", "limit_seconds")
            if seconds is not None
        },
    )
    granted = Allocation.objects.granted().of_gpus().filter(tenancy=tenancy)
    changes = [*changes_of(granted.select_related("flavor"))]
    holders = quota_holders_of(workloads, limits)
    line = [entry_of(one, queue, limits.limit(one.key)) for one in ahead]
    found = dict[tuple[str, int], str]()
    for flavor, gpus in wanted:
        own = LineEntry(flavors=frozenset({flavor}), gpus=gpus, limit=None)
        *_, at = latest_starts(
            queue,
            holders,
            changes,
            [*line, own],
            maintenance=tenancy.cluster.maintenance(now),
            now=now,
        )
        if at is not None and at > now:
            found[flavor, gpus] = latest(at, now)
    return found

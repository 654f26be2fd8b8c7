"""When work ends at its time limit, from the Jobs that have one and the runs that were submitted with one. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from workloads.observed import JobKey
from workloads.reading.values import (
    Object,
    conditions,
    items,
    moment,
    part,
    text,
)
from workloads.reading.work import job_of, key_of


@dataclass(frozen=True, kw_only=True)
class TimeLimits:
    """How long work may be active: runs by namespace and name, Jobs and what owns them by uid, with when they began.

    Kubernetes counts from the beginning of the Job: what is put back into the line begins anew.
    """

    runs: Mapping[tuple[str, str], timedelta] = field(default_factory=dict)
    jobs: Mapping[str, tuple[timedelta, datetime | None]] = field(default_factory=dict)

    def limit(self, key: JobKey) -> timedelta | None:
        """How long it may be active; None where nobody says so."""
        found = self.jobs.get(key.uid)
        return found[0] if found else self.runs.get((key.namespace, key.name))

    def ends_at(self, workload: Object) -> datetime | None:
        """When the work of a Workload that was let in ends at its limit; None for what has none."""
        key = key_of(part(workload, "metadata"))
        limit, admitted = self.limit(key), conditions(workload).get("Admitted")
        if limit is None or admitted is None or not admitted.is_true:
            return None
        if admitted.since is None:
            return None
        _, began = self.jobs.get(key.uid, (limit, None))
        return max(admitted.since, began or admitted.since) + limit


NO_LIMITS = TimeLimits()


def limits_of(
    jobs: Iterable[Object], runs: Mapping[tuple[str, str], timedelta]
) -> TimeLimits:
    """The limits of Jobs as they were copied, and of runs by namespace and name.

    Of several Jobs of one owner, such as a JobSet, the one that began last ends last; one without a limit ends never.
    """
    found, endless = dict[str, tuple[timedelta, datetime | None]](), set[str]()
    for one in jobs:
        limit = job_of(one).limit
        began = moment(part(one, "status").get("startTime"))
        meta = part(one, "metadata")
        owners = [
            text(each, "uid")
            for each in items(meta, "ownerReferences")
            if each.get("controller")
        ]
        if limit is None:
            endless |= {*owners}
            continue
        for uid in (text(meta, "uid"), *owners):
            before = found.get(uid)
            if before is None or _ends_later((limit, began), before):
                found[uid] = limit, began
    bounded = {uid: each for uid, each in found.items() if uid not in endless}
    return TimeLimits(runs=runs, jobs=bounded)


def _ends_later(
    one: tuple[timedelta, datetime | None], other: tuple[timedelta, datetime | None]
) -> bool:
    if one[1] is None or other[1] is None:
        return one[1] is not None
    return one[1] + one[0] > other[1] + other[0]

"""What is checked of a maintenance that a platform lead plans for a cluster, changes or takes back."""

from datetime import datetime, timedelta
from typing import Any

from fleet.maintenance import LONGEST
from fleet.models import Cluster
from web.refusals import BadInput

STARTS, ENDS, DRAINS = (
    "maintenance_starts_at",
    "maintenance_ends_at",
    "maintenance_drains",
)
FIELDS = frozenset({STARTS, ENDS, DRAINS})


def settle(
    cluster: Cluster, changed: dict[str, Any], *, before: Cluster, now: datetime
) -> None:
    """Check what was filled in, against the cluster as it was `before`; raises BadInput naming the field.

    One that is taken back while it is on ends with this minute instead, which is set in `cluster` and `changed`.
    """
    if not FIELDS & changed.keys():
        return
    if cluster.maintenance_starts_at is None and cluster.maintenance_ends_at is None:
        _take_back(cluster, changed, before=before, now=now)
    else:
        _check(cluster, now=now)


def _take_back(
    cluster: Cluster, changed: dict[str, Any], *, before: Cluster, now: datetime
) -> None:
    was = before.last_maintenance
    settled: dict[str, Any] = {STARTS: None, ENDS: None, DRAINS: False}
    if was is not None and was.is_on(now):
        this_minute = now.replace(second=0, microsecond=0)
        ends = min(was.ends, this_minute + timedelta(minutes=1))
        settled = {STARTS: was.starts, ENDS: ends, DRAINS: was.drains}
    for name, value in settled.items():
        setattr(cluster, name, value)
        changed.pop(name, None)
        if value != getattr(before, name):
            changed[name] = value


def _check(cluster: Cluster, *, now: datetime) -> None:
    starts, ends = cluster.maintenance_starts_at, cluster.maintenance_ends_at
    if starts is None or ends is None:
        raise BadInput(
            "A maintenance has a start and an end.",
            code="half_a_window",
            field=STARTS if starts is None else ENDS,
        )
    if not starts < ends <= starts + LONGEST:
        raise BadInput(
            f"It ends after it starts, within {LONGEST.days} days: for longer, take the cluster out of use.",
            code="no_window",
            field=ENDS,
        )
    if ends <= now:
        raise BadInput("It ends in the future.", code="in_the_past", field=ENDS)
    if cluster.maintenance_drains and cluster.has_volcano:
        raise BadInput(
            "Volcano has no queue that stops what runs and starts it anew later.",
            code="not_with_volcano",
            field=DRAINS,
        )

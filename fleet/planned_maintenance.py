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
# A maintenance that starts at once is planned by a form that was opened some minutes ago.
AT_ONCE = timedelta(minutes=15)


def check_and_settle(
    cluster: Cluster, changed: dict[str, Any], *, before: Cluster, now: datetime
) -> None:
    """Check what was filled in, against the cluster as it was `before`; raises BadInput naming the field.

    Without times, one that was planned is taken back, one that is on ends with this minute, and one that is over stays
    known; this sets what that comes to in `cluster` and `changed`.
    """
    if not FIELDS & changed.keys():
        return
    is_empty = (
        cluster.maintenance_starts_at is None and cluster.maintenance_ends_at is None
    )
    if is_empty and not changed.get(DRAINS):
        _take_back(cluster, changed, before=before, now=now)
    else:
        _check(cluster, before=before, now=now)


def _take_back(
    cluster: Cluster, changed: dict[str, Any], *, before: Cluster, now: datetime
) -> None:
    settled: dict[str, Any] = {name: getattr(before, name) for name in FIELDS}
    if (was := before.maintenance(now)) is not None:
        if was.is_on(now):
            this_minute = now.replace(second=0, microsecond=0)
            settled[ENDS] = min(was.ends, this_minute + timedelta(minutes=1))
        else:
            settled = {STARTS: None, ENDS: None, DRAINS: False}
    for name, value in settled.items():
        setattr(cluster, name, value)
        changed.pop(name, None)
        if value != getattr(before, name):
            changed[name] = value


def _check(cluster: Cluster, *, before: Cluster, now: datetime) -> None:
    starts, ends = cluster.maintenance_starts_at, cluster.maintenance_ends_at
    if starts is None or ends is None:
        field, missing = (STARTS, "a start") if starts is None else (ENDS, "an end")
        raise BadInput(
            f"A maintenance has a start and an end: give {missing}, too.",
            code="half_a_window",
            field=field,
        )
    if ends <= starts:
        raise BadInput("Give an end after its start.", code="no_window", field=ENDS)
    if ends - starts > LONGEST:
        raise BadInput(
            f"A maintenance lasts at most {LONGEST.days} days: for longer, take the cluster out of use.",
            code="no_window",
            field=ENDS,
        )
    was = before.maintenance(now)
    if starts < now - AT_ONCE and (was is None or was.starts != starts):
        # What was mistyped would stop everything at once, and nobody was told before.
        raise BadInput(
            "Give a start that is not past.", code="in_the_past", field=STARTS
        )
    if ends <= now:
        raise BadInput(
            "Give an end that is still to come.", code="in_the_past", field=ENDS
        )
    if cluster.maintenance_drains and cluster.has_volcano:
        raise BadInput(
            "Volcano has no queue that stops what runs and starts it anew later.",
            code="not_with_volcano",
            field=DRAINS,
        )

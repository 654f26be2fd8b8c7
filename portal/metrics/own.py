"""Figures of the portal's own processes and of its audit log."""

from collections.abc import Iterator

from audit.models import Head
from portal.metrics.families import Family, of_all, seconds_since
from portal.metrics.moment import Moment
from portal.models import last_pulse
from workloads.watching import feeds


def workers(moment: Moment) -> Iterator[Family]:
    """What `/workz` knows: when a worker last did what the clock asked, and for how long no watcher has been there."""
    yield of_all(
        "quartermaster_workers_last_pulse_seconds",
        "Seconds since a worker last did what the clock asked for; infinite where none ever has.",
        seconds_since(last_pulse(), now=moment.now),
    )
    is_unwatched, since = feeds.unwatched(now=moment.now)
    yield of_all(
        "quartermaster_watcher_missing_seconds",
        "Seconds for which no watcher has kept a copy that one should keep; 0 while they are kept.",
        seconds_since(since, now=moment.now) if is_unwatched else 0,
    )


def audit_log(moment: Moment) -> Iterator[Family]:
    """The number of the newest event, which only ever grows."""
    head = Head.objects.values_list("seq", flat=True).first()
    yield Family(
        name="quartermaster_audit_events_total",
        words="The number of the newest event of the audit log; events are numbered without gaps.",
        samples={(): head or 0},
        is_counter=True,
    )

"""What a maintenance of the cluster makes of the answer to whoever starts something there."""

from datetime import datetime, timedelta

from fleet.models import Cluster
from ui.amounts import moment, span
from ui.parts import Verdict

AFTER = "It starts after the maintenance"


def in_maintenance(
    found: Verdict, cluster: Cluster, limit: timedelta | None, *, now: datetime
) -> Verdict:
    """The answer of a run that were let in now and has this limit: put off, or with what a maintenance does to it."""
    maintenance = cluster.maintenance(now)
    if maintenance is None:
        return found
    if maintenance.is_on(now):
        return {
            **found,
            "tone": "waiting",
            "sentence": AFTER,
            "detail": f"{until_words(cluster, now)} {found['detail']}",
        }
    if limit is not None and now + limit <= maintenance.starts:
        return found
    at = moment(maintenance.starts, now)
    becomes = (
        f"it is stopped then and starts anew when that ends, {moment(maintenance.ends, now)}"
        if maintenance.drains
        else "it goes on, and can be interrupted"
    )
    shorter = f"With a time limit of up to {span(maintenance.starts - now)} it ends before, if it starts now."
    said = f"The maintenance of {cluster.title} starts {at}, before it may have ended: {becomes}. {shorter}"
    return {**found, "detail": f"{found['detail']} {said}"}


def stop_words(cluster: Cluster, until: datetime | None, *, now: datetime) -> str:
    """That a planned maintenance stops what may run for so long, or for ever; empty where it does not."""
    planned = cluster.maintenance(now)
    if planned is None or planned.starts <= now or not planned.drains:
        return ""
    if until is not None and until <= planned.starts:
        return ""
    at = moment(planned.starts, now)
    return (
        f"Save what you keep of it before {at}: the maintenance of {cluster.title} stops what runs then, and it starts "
        f"anew after {moment(planned.ends, now)}."
    )


def until_words(cluster: Cluster, now: datetime) -> str:
    """That nothing starts on a cluster which is maintained now; empty where none is."""
    maintenance = cluster.maintenance(now)
    if maintenance is None or not maintenance.is_on(now):
        return ""
    return f"{cluster.title} is maintained until {moment(maintenance.ends, now)}, and nothing new starts before."

"""All figures of a scrape, computed from the database: whichever web process answers, the answer is the same."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

import structlog
from django.db import OperationalError

from fleet.models import Cluster
from portal.metrics import fleet, own, people, teams, work
from portal.metrics.families import Family, Labels
from portal.metrics.moment import Moment

logger = structlog.get_logger(__name__)
Group = Callable[[Moment], Iterable[Family]]
GROUPS: Mapping[str, Group] = {
    "audit": own.audit_log,
    "brakes": fleet.brakes,
    "clusters": fleet.clusters,
    "gpus": fleet.gpus,
    "jobs": work.jobs,
    "notices": people.notices,
    "parked": teams.parked,
    "requests": people.requests,
    "runs": work.runs,
    "tenancies": teams.tenancies,
    "workers": own.workers,
}


def gather(*, now: datetime) -> Iterator[Family]:
    """The families of every group, and which groups could be read.

    A group that breaks, such as by what a cluster wrote, keeps no other from being told; an alert is shipped for it.
    Raises OperationalError where the database does not answer: then nothing can be told, and the scrape fails.
    """
    moment = Moment(now=now, clusters=list(Cluster.objects.looked_after()))
    was_read: dict[Labels, float] = {}
    for name, group in GROUPS.items():
        found = _alone(name, group, moment)
        was_read[name,] = found is not None
        yield from found or ()
    yield Family(
        name="quartermaster_scrape_group_success",
        words="1 where the group of metrics could be read, 0 where it broke and is missing.",
        labels=["group"],
        samples=was_read,
    )


def _alone(name: str, group: Group, moment: Moment) -> list[Family] | None:
    """The families of a group; None where it breaks."""
    try:
        return list(group(moment))
    except OperationalError:
        raise
    except Exception:
        logger.exception("metrics not read", group=name)
        return None

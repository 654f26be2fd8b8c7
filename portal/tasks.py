"""What the whole installation does by the clock."""

from celery import shared_task

from audit import clock
from portal.invariants.checking import check, tell


@shared_task(name="portal.tasks.check_invariants", soft_time_limit=1800, time_limit=1900)
def check_invariants() -> None:
    """Check every promise against the database and the clusters, and tell the audit log of what does not hold."""
    tell(check(now=clock.now()))

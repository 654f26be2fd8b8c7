"""When departures go on. Every task may run twice, late or never."""

from celery import shared_task

from audit import clock
from offboarding import sweep as leaving_sweep


@shared_task(name="offboarding.tasks.let_teams_leave")
def let_teams_leave() -> None:
    """Take every departure as far as its dates say."""
    leaving_sweep.sweep(now=clock.now())

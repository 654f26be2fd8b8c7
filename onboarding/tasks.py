"""When departures go on. Every task may run twice, late or never."""

from celery import shared_task

from audit import clock
from onboarding import leaving_sweep


@shared_task(name="onboarding.tasks.let_teams_leave")
def let_teams_leave() -> None:
    """Take every departure as far as its dates say."""
    leaving_sweep.sweep(now=clock.now())

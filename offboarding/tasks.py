"""When departures go on. Every task may run twice, late or never."""

from celery import shared_task

from audit import clock
from offboarding import sweep as leaving_sweep
from offboarding import written_off


@shared_task(name="offboarding.tasks.let_teams_leave")
def let_teams_leave() -> None:
    """Take every departure as far as its dates say, and let go of what stood on clusters that are written off."""
    try:
        leaving_sweep.sweep(now=clock.now())
    finally:
        written_off.sweep(now=clock.now())

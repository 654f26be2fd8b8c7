"""What the whole installation does by the clock."""

from celery import shared_task
from django.conf import settings

from audit import anchors, clock
from checks.invariants import check, tell
from notices.servers import outside
from portal.models import note_pulse


@shared_task(
    name="portal.tasks.check_invariants", soft_time_limit=1800, time_limit=1900
)
def check_invariants() -> None:
    """Check every promise against the database and the clusters, and tell the audit log of what does not hold."""
    tell(check(now=clock.now()))


@shared_task(name="portal.tasks.anchor_audit_log")
def anchor_audit_log() -> None:
    """Sign the head of the log once a day, and leave copies of it where the portal's operators cannot rewrite it."""
    away = outside()
    anchors.leave(
        anchors.Ways(
            mail=away.mail,
            to=tuple(settings.ENV.anchor_mail),
            folder=settings.ENV.anchor_dir,
        ),
        log=settings.PUBLIC_URL,
        now=clock.now(),
    )


@shared_task(name="portal.tasks.pulse")
def pulse() -> None:
    """Write down that the clock rings, its message arrives, and a worker is there to take it."""
    note_pulse(now=clock.now())

"""When messages go out. Every task may run twice, late or never."""

from datetime import timedelta

from celery import shared_task

from audit import clock
from notices import delivery, digest, directory
from notices.models import Delivery, Digest, Notice
from notices.servers import outside

KEPT = timedelta(days=90)
MOST_FORGOTTEN = 5000


@shared_task(name="notices.tasks.deliver")
def deliver() -> None:
    """Tell of a stopped directory, write the daily mails whose hour has come, then send what is due.

    A lost ring and a dead worker end here.
    """
    # Whatever cannot be written keeps nothing from being sent.
    try:
        directory.tell_of_brake(now=clock.now())
    finally:
        try:
            digest.collect(now=clock.now())
        finally:
            delivery.deliver_due(now=clock.now, outside=outside())


@shared_task(name="notices.tasks.forget")
def forget() -> None:
    """Delete notices that were told 90 days ago or more; what has not left yet is kept."""
    before = clock.now() - KEPT
    old = Notice.objects.filter(at__lt=before)
    unsent = Delivery.objects.exclude(state=Delivery.State.SENT)
    told = (
        old.exclude(deliveries__in=unsent)
        .exclude(digest__deliveries__in=unsent)
        .exclude(pace="digest", digest=None)
    )
    Notice.objects.filter(
        pk__in=list(told.order_by("at").values_list("pk", flat=True)[:MOST_FORGOTTEN])
    ).delete()
    Digest.objects.filter(at__lt=before, notices=None).delete()

"""When requests lapse: a query over dates, not a timer."""

from celery import shared_task
from django.utils import timezone

from approvals import actions
from approvals.models import Request


@shared_task(name="approvals.tasks.lapse")
def lapse() -> None:
    """End every request that nobody decided in time, each in a transaction of its own."""
    now = timezone.now()
    for request_id in (
        Request.objects.waiting()
        .filter(lapses_at__lte=now)
        .order_by("lapses_at")
        .values_list("pk", flat=True)
    ):
        actions.lapse(request_id, now=now)

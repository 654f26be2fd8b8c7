"""When holdings end: a query over dates, not a timer."""

from celery import shared_task
from django.utils import timezone

from allocations import actions
from allocations.models import Allocation


@shared_task(name="allocations.tasks.expire")
def expire() -> None:
    """End every allocation whose date has passed, each in a transaction of its own."""
    now = timezone.now()
    for allocation_id in Allocation.objects.over(now).order_by("until").values_list("pk", flat=True):
        actions.expire(allocation_id, now=now)

"""What happens to holdings by the clock: queries over dates, not timers."""

from celery import shared_task
from django.utils import timezone

from allocations import actions, use
from allocations.models import Allocation, Budget


@shared_task(name="allocations.tasks.expire")
def expire() -> None:
    """End every allocation whose date has passed, each in a transaction of its own."""
    now = timezone.now()
    for allocation_id in Allocation.objects.over(now).order_by("until").values_list("pk", flat=True):
        actions.expire(allocation_id, now=now)


@shared_task(name="allocations.tasks.sample_use")
def sample_use() -> None:
    """Count every look at a queue that was not counted yet, each in a transaction of its own."""
    for tenancy_id in use.due():
        use.sample(tenancy_id)


@shared_task(name="allocations.tasks.tell_close")
def tell_close() -> None:
    """Tell of every budget that has reached its soft stage and was not told of, each in a transaction of its own."""
    for budget_id in (
        Budget.objects.close().filter(soft_told_at=None).order_by("pk").values_list("pk", flat=True)
    ):
        actions.tell_close(Budget.objects.filter(pk=budget_id), now=timezone.now())

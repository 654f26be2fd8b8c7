"""When messages go out. Every task may run twice, late or never."""

from celery import shared_task


@shared_task(name="notices.tasks.deliver")
def deliver() -> None:
    """Send what is due."""

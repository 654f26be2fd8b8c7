"""Ringing the broker after a commit, off the request's path: a lost ring costs five seconds, never a message."""

import logging
from concurrent.futures import ThreadPoolExecutor

from celery import current_app
from django.db import transaction

logger = logging.getLogger(__name__)
_ringer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="notices-doorbell")


def ring_on_commit() -> None:
    """Ask a worker to send what is due once the current transaction has committed."""
    transaction.on_commit(_submit)


def _submit() -> None:
    _ringer.submit(ring)


def ring() -> None:
    """Publish the wake-up now; a broker that does not answer is logged, the sweep sends anyway."""
    try:
        # By its name: the task imports the modules that ring.
        current_app.send_task("notices.tasks.deliver", expires=30)
    except Exception as error:
        # Whatever the broker's client raises: what there is to send stands in the database.
        logger.warning("doorbell unanswered", extra={"error": type(error).__name__})

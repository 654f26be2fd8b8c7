"""Ringing the broker after a commit, off the request's path: a lost ring costs until the next sweep, never the work."""

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from celery import current_app
from django.db import transaction

logger = logging.getLogger(__name__)


class Doorbell:
    """Wakes a worker for one task; `subject` names what the ids that it is rung with are of.

    Its rings are published one after another by a thread of its own, so that no request waits for the broker.
    """

    def __init__(self, task: str, *, expires: float, subject: str = "") -> None:
        # By its name: the task imports the modules that ring.
        self._task, self._expires, self._subject = task, expires, subject
        self.ringer = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"doorbell {task}")

    def ring_on_commit(self, *ids: int) -> None:
        """Wake a worker once the current transaction has committed."""
        transaction.on_commit(partial(self.ring_soon, *ids))

    def ring_soon(self, *ids: int) -> None:
        """Wake a worker without waiting for the broker."""
        self.ringer.submit(self.ring, *ids)

    def ring(self, *ids: int) -> None:
        """Publish the wake-up now; a broker that does not answer is logged, the sweep finds what there is to do."""
        try:
            current_app.send_task(self._task, args=[*ids], expires=self._expires)
        except Exception as error:
            # Whatever the broker's client raises: what there is to do stands in the database.
            about = {self._subject: ids[0]} if ids else {}
            logger.warning("doorbell unanswered", extra={**about, "error": type(error).__name__})

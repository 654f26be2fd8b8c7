"""Telling a worker, after a commit, that there is something to do: a lost message costs until the next sweep."""

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from celery import current_app
from django.db import transaction

from reconciling import failpoints

logger = logging.getLogger(__name__)


def waiting() -> int:
    """How many messages wait for a worker; 0 where the broker does not answer."""
    try:
        with (
            current_app.pool.acquire(block=True) as broker,
            broker.channel() as channel,
        ):
            found = channel.queue_declare(
                current_app.conf.task_default_queue, passive=True
            )
            return int(found.message_count)
    except Exception:
        # Whatever the broker's client raises. To Redis an empty queue is none, which is raised, too.
        return 0


class Queue:
    """The messages for one task; `subject` names the rows whose ids they carry.

    Messages of committed transactions are published one after another by a thread of its own, so that no request waits
    for the broker.
    """

    def __init__(self, task: str, *, expires: float, subject: str = "") -> None:
        # By its name: the task imports the modules that enqueue.
        self._task, self._expires, self.subject = task, expires, subject
        self.publisher = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix=f"queue {task}"
        )

    def enqueue_on_commit(self, *ids: int) -> None:
        """Tell a worker once the current transaction has committed."""
        transaction.on_commit(partial(self._committed, ids))

    def enqueue(self, *ids: int) -> None:
        """Tell a worker now; a broker that does not answer is logged, the sweep finds what there is to do."""
        try:
            current_app.send_task(self._task, args=[*ids], expires=self._expires)
        except Exception as error:
            # Whatever the broker's client raises: what there is to do stands in the database.
            about = {self.subject: ids[0]} if ids else {}
            logger.warning(
                "broker does not answer", extra={**about, "error": type(error).__name__}
            )

    def _committed(self, ids: tuple[int, ...]) -> None:
        failpoints.reach("enqueue.committed")
        self.publisher.submit(self.enqueue, *ids)

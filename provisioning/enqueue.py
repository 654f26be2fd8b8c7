"""Ringing the broker after a commit, off the request's path: a lost ring costs two seconds, never the work."""

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from celery import current_app
from django.db import transaction

from provisioning import failpoints

logger = logging.getLogger(__name__)
_ringer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="doorbell")


def ring_on_commit(tenancy_id: int) -> None:
    """Ask a worker to look at this tenancy once the current transaction has committed."""
    transaction.on_commit(partial(_ring_soon, tenancy_id))


def _ring_soon(tenancy_id: int) -> None:
    failpoints.reach("doorbell.committed")
    _ringer.submit(ring, tenancy_id)


def ring(tenancy_id: int) -> None:
    """Publish the wake-up now; a broker that does not answer is logged, the sweep finds the tenancy anyway."""
    try:
        # By its name: the task imports the modules that ring.
        current_app.send_task("provisioning.tasks.reconcile_tenancy", args=[tenancy_id], expires=60)
    except Exception as error:
        # Whatever the broker's client raises: what there is to do stands in the database.
        logger.warning("doorbell unanswered", extra={"tenancy": tenancy_id, "error": type(error).__name__})

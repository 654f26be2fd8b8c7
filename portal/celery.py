"""The Celery app. The broker is a doorbell: what there is to do stands in the database."""

import logging
import os

from celery import Celery
from celery.signals import worker_ready

from portal import folder_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

folder_broker.register()
app = Celery("quartermaster")
app.config_from_object("portal.celery_config")
app.autodiscover_tasks(["provisioning", "allocations", "approvals", "notices", "accounts"])


@worker_ready.connect
def say_ready(**sent: object) -> None:
    """One line when a worker listens, whatever level it was started with: who starts it can wait for it."""
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)
    logger.info("worker ready")

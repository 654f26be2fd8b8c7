"""The Celery app. The broker is a doorbell: what there is to do stands in the database."""

import logging
import os
import signal
from typing import Any

from celery import Celery, Task
from celery.signals import worker_init, worker_ready

from audit import clock
from portal import folder_broker, garbage

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

folder_broker.register()


class OneTask(Task):
    """A task takes ids only, goes by the database's clock, and fails alone when it has no more memory.

    Whoever can write to the broker can name a task that exists and a row, both of which the worker judges afresh.
    Celery would end the whole worker for want of memory, and what else it does.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(type(value) is not int for value in (*args, *kwargs.values())):
            raise TypeError(
                "A message names a task and the ids of rows, and nothing else."
            )
        try:
            with clock.of_the_database():
                return super().__call__(*args, **kwargs)
        except MemoryError as error:
            raise RuntimeError("out of memory") from error


app = Celery(
    "quartermaster", task_cls=OneTask, fixups=["portal.worker_connections:fixup"]
)
app.config_from_object("portal.celery_config")
# Of every installed app: a list of names would be forgotten when a package is added.
app.autodiscover_tasks()


@worker_init.connect
def collect_seldom(**sent: object) -> None:
    """The loaded application stays, and its pages stay shared with the processes that are forked."""
    garbage.settle()


@worker_ready.connect
def say_ready(**sent: object) -> None:
    """One line when a worker listens, whatever level it was started with: who starts it can wait for it."""
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)
    logger.info("worker ready")


@worker_ready.connect
def end_soon_when_told_to(sender: Any, **sent: object) -> None:
    """SIGTERM, as deployments send it, ends a worker as SIGQUIT does: what runs has the soft window, and is then left.

    Celery's own way would wait for the longest task. What is left is taken up by another worker: its message goes
    back, and the lease of its tenancy ends by itself.
    """
    # Here, because a web server that only rings has no use for it.
    from celery.concurrency.prefork import TaskPool

    if isinstance(getattr(sender, "pool", None), TaskPool):
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGQUIT))

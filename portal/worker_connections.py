"""What a worker's processes do with their connections to the database between tasks."""

from typing import Any

from celery import Celery
from celery.fixups import django
from django.db import close_old_connections


class KeptPool(django.DjangoWorkerFixup):
    """Gives a task's connections back to the pool of its process, as a web server does after a request.

    Celery's own closes the pool before each task and after it: each would connect anew, and PostgreSQL would plan anew
    whatever the connection before had prepared.
    """

    def on_task_prerun(self, sender: Any, **sent: Any) -> None:
        """Begin with a connection that the pool has looked at."""
        self._give_back(sender)

    def on_task_postrun(self, sender: Any, **sent: Any) -> None:
        """Leave nothing open for the next task."""
        self._give_back(sender)
        self.close_cache()

    def _give_back(self, sender: Any) -> None:
        # One that runs where it was called has the connection of whoever called it.
        if not getattr(sender.request, "is_eager", False):
            close_old_connections()


class Fixup(django.DjangoFixup):
    """Celery's own for Django, but for the pool."""

    _worker_fixup: KeptPool | None

    @property
    def worker_fixup(self) -> KeptPool:
        """What a worker does around its tasks."""
        if self._worker_fixup is None:
            self._worker_fixup = KeptPool(self.app)
        return self._worker_fixup


def fixup(app: Celery) -> Fixup:
    """Set an application up for Django."""
    found = Fixup(app)
    found.install()
    return found

"""The watcher as a process of its own."""

import signal
import threading
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from audit import clock
from workloads.watching.watcher import watch


class Command(BaseCommand):
    """Runs until it is told to end; several may run, and each cluster is watched by one."""

    help = "Keep the copy of what runs on all clusters, by watches."

    def handle(self, *args: Any, **options: Any) -> None:
        """Ends with SIGTERM or SIGINT, and lets others take over at once."""
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write("watcher ready")
        # Into a file or a pipe it would come when it ends.
        self.stdout.flush()
        watch(stop, now=_now)


def _now() -> datetime:
    """The database's time, asked anew each time: leases of several watchers go by one clock."""
    with clock.of_the_database():
        return clock.now()

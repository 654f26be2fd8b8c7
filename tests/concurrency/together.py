"""Several actions at the same moment."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection


def together(*actions: Callable[[], object]) -> None:
    """Run the actions at the same moment, each with a connection of its own."""
    barrier = Barrier(len(actions))

    def run(action: Callable[[], object]) -> None:
        try:
            barrier.wait(timeout=30)
            action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as threads:
        list(threads.map(run, actions))

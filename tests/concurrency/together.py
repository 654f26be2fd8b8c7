"""Several actions at the same moment."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

from django.db import connection


@contextmanager
def waiting_no_longer(than: str) -> Iterator[None]:
    """This connection waits for no row longer; it is pooled, so what comes after waits as usual again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [than])
        try:
            yield
        finally:
            cursor.execute("RESET lock_timeout")


def together(*actions: Callable[[], object]) -> None:
    """Run the actions at the same moment, each with a connection of its own that waits for rows as long as it takes."""
    barrier = Barrier(len(actions))

    def run(action: Callable[[], object]) -> None:
        try:
            barrier.wait(timeout=30)
            with waiting_no_longer("60s"):
                action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as threads:
        list(threads.map(run, actions))

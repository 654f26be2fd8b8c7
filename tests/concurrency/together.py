"""Several actions at the same moment."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import TypeVar

from django.db import connection, transaction

from tests.services.process import wait_until

T = TypeVar("T")


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


@contextmanager
def uncommitted(action: Callable[[], object]) -> Iterator[None]:
    """What another connection has done when the block begins, and commits when it ends."""
    done, goes_on = Event(), Event()

    def run() -> None:
        try:
            with transaction.atomic():
                action()
                done.set()
                assert goes_on.wait(timeout=30)
        finally:
            done.set()
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        doing = thread.submit(run)
        assert done.wait(timeout=30)
        try:
            yield
        finally:
            goes_on.set()
        doing.result(timeout=30)


def held_up(
    action: Callable[[], T],
    *,
    by: Callable[[], object],
    meanwhile: Callable[[], object] = lambda: None,
) -> T:
    """What an action returns, or raises, that waits for a lock until what is done `by` somebody else is committed."""

    def run() -> T:
        try:
            with waiting_no_longer("60s"):
                return action()
        finally:
            connection.close()

    doing: Future[T]
    with ThreadPoolExecutor(1) as thread:
        with uncommitted(by):
            doing = thread.submit(run)
            wait_until(lambda: waiting_for_a_lock() == 1, what="it waits for a lock")
            meanwhile()
        return doing.result(timeout=30)


def waiting_for_a_lock() -> int:
    """How many connections wait for a lock."""
    with connection.cursor() as cursor:
        # Within a transaction PostgreSQL else goes on to know those connections alone that there were the first time.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        found: int = cursor.fetchone()[0]
    return found

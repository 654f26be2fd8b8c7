"""The right to work on a row: numbered, kept alive while its holder waits, and lost by itself."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import Error, connection
from django.db.models import QuerySet

from reconciling.models import Leased

M = TypeVar("M", bound=Leased)
SECONDS = 5
# A holder that has not asked the database for this long asks again before its next write. Nobody takes a lease within
# its five seconds, so four of them are left for clocks that differ.
SURE_SECONDS = 1.0
# Who waits for an outside system says this often that it lives.
BEAT_SECONDS = 2.0


class LeaseLost(Exception):
    """Another worker has taken over; everything else is its business now."""


@dataclass
class Lease(Generic[M]):
    """A held lease with the row as it was read; `number` is the fencing number that every write of its holder carries.

    `at` is when the database last said so, by the clock that everybody has and by one that nobody sets. `released` is
    what letting go of the row writes, `enqueue_on_commit` tells a worker of it.
    """

    row: M
    number: int
    at: datetime
    released: Mapping[str, Any]
    enqueue_on_commit: Callable[[int], None]
    ticks: float = field(default_factory=time.monotonic)

    @property
    def mine(self) -> QuerySet[M]:
        """The row while this is its newest lease; nothing afterwards."""
        rows: QuerySet[M] = type(self.row)._default_manager.filter(
            pk=self.row.pk, lease_no=self.number
        )
        return rows.order_by()

    def write(self, **fields: Any) -> bool:
        """Update the row; False, and nothing changed, when somebody else took over."""
        return bool(self.mine.update(**fields))

    def release(self, **fields: Any) -> bool:
        """Let go of the row and of its slot; False when somebody else took over."""
        return self.write(**self.released, **fields)

    def finish(self, *, requeue_at: datetime, now: datetime, **fields: Any) -> bool:
        """End the work with what came of it; what is wanted otherwise by now is worked on at once.

        False, with nothing changed, when somebody else took over.
        """
        result = {**self.released, **fields}
        if self.mine.filter(self.row.same_desired).update(
            requeue_at=requeue_at, **result
        ):
            return True
        if not self.write(requeue_at=now, **result):
            self.acknowledge()
            return False
        self.enqueue_on_commit(self.row.pk)
        return True

    def acknowledge(self) -> None:
        """Say that the holder lives, though somebody else may have taken over: it was slow, and nothing ended it.

        Where the database cannot be told, nothing happens.
        """
        with suppress(Error):
            rows = type(self.row)._default_manager.filter(
                pk=self.row.pk, unfinished__gt=0
            )
            rows.update(unfinished=0)

    def check(self, *, now: datetime) -> None:
        """Call it before every write to the outside: raises LeaseLost when somebody else took over.

        Within a second of the last answer it is the same; then, and when a clock went back, the database is asked.
        """
        is_sure = timedelta(0) <= now - self.at < timedelta(seconds=SURE_SECONDS)
        if is_sure and time.monotonic() - self.ticks < SURE_SECONDS:
            return
        if not self.renew(now=now):
            raise LeaseLost

    def renew(self, *, now: datetime) -> bool:
        """Hold on for another five seconds; False when somebody else took over."""
        # Before the question: the answer is as old as that.
        self.at, self.ticks = now, time.monotonic()
        return self.write(lease_until=now + timedelta(seconds=SECONDS))

    def extend(self, *, now: datetime) -> bool:
        """Hold on as `renew`, for a thread beside the holder's: it says nothing about what the holder may write.

        What was released is not taken again.
        """
        held = self.mine.filter(lease_until__isnull=False)
        return bool(held.update(lease_until=now + timedelta(seconds=SECONDS)))


@contextmanager
def heartbeat(lease: Lease[Any], *, now: Callable[[], datetime]) -> Iterator[None]:
    """Keep row and slot while the block waits for others, however long: somebody hangs there, and counts.

    Who dies loses both within five seconds all the same.
    """
    over = threading.Event()
    # In the same context: it is that which says whose clock is gone by.
    beating = threading.Thread(
        target=copy_context().run, args=(_beat, lease, over, now), daemon=True
    )
    # Without memory for a thread they are kept for five seconds, as ever.
    with suppress(RuntimeError):
        beating.start()
    try:
        yield
    finally:
        over.set()


def _beat(
    lease: Lease[Any], over: threading.Event, now: Callable[[], datetime]
) -> None:
    """Say that the holder lives until it is over, or until somebody else took over."""
    lives = True
    while lives and not over.wait(BEAT_SECONDS):
        try:
            lives = lease.extend(now=now())
        except Error:
            lives = True
        finally:
            connection.close()

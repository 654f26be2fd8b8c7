"""The right to work on a tenancy: taken by conditional update, numbered, and lost by itself."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import Error, IntegrityError, connection, transaction
from django.db.models import Q

from provisioning import parking, throttle
from provisioning.models import Tenancy
from reconciling import slots

SECONDS = 5
# A holder that has not asked the database for this long asks again before its next write. Nobody takes a lease within
# its five seconds, so four of them are left for clocks that differ.
SURE_SECONDS = 1.0
# Who waits for a cluster or a repository says this often that it lives.
BEAT_SECONDS = 2.0
# As often as others may take the place that was just seen free, before it is left for another time.
TRIES = 12
WITH = ("cluster", "cluster__throttle")
# What letting go of a tenancy and of its place at work writes.
LET_GO: dict[str, Any] = {"lease_until": None, "slot": None, "unfinished": 0}
LONGEST_WAIT = timedelta(minutes=5)


@dataclass
class Lease:
    """A held lease; `number` is the fencing number that every write of its holder carries.

    `at` is when the database last said so, by the clock that everybody has and by one that nobody sets.
    """

    tenancy_id: int
    number: int
    at: datetime
    ticks: float = field(default_factory=time.monotonic)
    # As it was when the lease was taken, with its cluster.
    read: Tenancy | None = None

    def write(self, **fields: Any) -> bool:
        """Update the tenancy if this is still the newest lease; False when somebody else took over."""
        return bool(Tenancy.objects.filter(pk=self.tenancy_id, lease_no=self.number).update(**fields))

    def give_back(self, **fields: Any) -> bool:
        """Let go of the tenancy and of the place at work; False when somebody else took over."""
        return self.write(**LET_GO, **fields)

    def come_back(self) -> None:
        """Say that the holder lives, though somebody else may have taken over: it was slow, and nothing ended it.

        Where the database cannot be told, nothing happens.
        """
        with suppress(Error):
            Tenancy.objects.filter(pk=self.tenancy_id, unfinished__gt=0).update(unfinished=0)

    def hold(self, *, now: datetime) -> bool:
        """Ask before every write to a cluster; False when somebody else took over.

        Within a second of the last answer it is the same; then, and when a clock went back, the database is asked.
        """
        is_sure = timedelta(0) <= now - self.at < timedelta(seconds=SURE_SECONDS)
        if is_sure and time.monotonic() - self.ticks < SURE_SECONDS:
            return True
        return self.renew(now=now)

    def renew(self, *, now: datetime) -> bool:
        """Hold on for another five seconds; False when somebody else took over."""
        # Before the question: the answer is as old as that.
        self.at, self.ticks = now, time.monotonic()
        return self.write(lease_until=now + timedelta(seconds=SECONDS))

    def stay(self, *, now: datetime) -> bool:
        """Hold on as `renew`, for a thread beside the holder's: it says nothing about what the holder may write.

        What was given back is not taken again.
        """
        held = Tenancy.objects.filter(pk=self.tenancy_id, lease_no=self.number, lease_until__isnull=False)
        return bool(held.update(lease_until=now + timedelta(seconds=SECONDS)))


@contextmanager
def kept(held: Lease, *, now: Callable[[], datetime]) -> Iterator[None]:
    """Keep tenancy and place while the block waits for others, however long: somebody hangs there, and counts.

    Who dies loses both within five seconds all the same.
    """
    over = threading.Event()
    # In the same context: it is that which says whose clock is gone by.
    beating = threading.Thread(target=copy_context().run, args=(_beat, held, over, now), daemon=True)
    # Without memory for a thread they are kept for five seconds, as ever.
    with suppress(RuntimeError):
        beating.start()
    try:
        yield
    finally:
        over.set()


def _beat(held: Lease, over: threading.Event, now: Callable[[], datetime]) -> None:
    """Say that the holder lives until it is over, or until somebody else took over."""
    lives = True
    while lives and not over.wait(BEAT_SECONDS):
        try:
            lives = held.stay(now=now())
        except Error:
            lives = True
        finally:
            connection.close()


def take(tenancy_id: int, *, now: datetime) -> Lease | None:
    """Take the lease if nobody holds it, it is not parked and the cluster has a place at work; None otherwise.

    Taking it also books the next try, later with each attempt that left no status, so that a worker that dies loses
    nothing. A tenancy that ends every worker that takes it is parked instead.
    """
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    ticks = time.monotonic()
    for _ in range(TRIES):
        row = (
            Tenancy.objects.select_related(*WITH)
            .filter(free, pk=tenancy_id, parked_at=None)
            .order_by()
            .first()
        )
        if row is None:
            return None
        if row.unfinished >= parking.MOST:
            parking.park(tenancy_id, lease_no=row.lease_no, now=now)
            return None
        same_cluster = Tenancy.objects.filter(cluster=row.cluster_id)
        slot = slots.free_slot(same_cluster, limit=throttle.max_concurrent(row.cluster), now=now)
        if slot is None:
            return None
        wait = min(timedelta(seconds=SECONDS) * 2 ** min(max(row.attempts - 1, 0), 8), LONGEST_WAIT)
        # Taken only if everything is as it was read: what is then made true is what is wanted now.
        mine = Tenancy.objects.filter(free, pk=tenancy_id, lease_no=row.lease_no, generation=row.generation)
        row.lease_no, row.attempts, row.unfinished = row.lease_no + 1, row.attempts + 1, row.unfinished + 1
        with suppress(IntegrityError), _undone_alone():
            # The database refuses the place when another worker took it a moment ago.
            if mine.update(
                lease_no=row.lease_no,
                lease_until=now + timedelta(seconds=SECONDS),
                slot=slot,
                next_look_at=now + wait,
                attempts=row.attempts,
                unfinished=row.unfinished,
            ):
                return Lease(tenancy_id, row.lease_no, now, ticks, row)
    return None


def _undone_alone() -> AbstractContextManager[object]:
    """A savepoint where there is a transaction that a refused statement would spoil; nothing where there is none."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()

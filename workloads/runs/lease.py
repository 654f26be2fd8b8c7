"""The right to work on a run: kept while its worker lives, and lost within seconds after it dies."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import Error, connection
from django.db.models import F

from workloads.runs.models import Run

LENGTH = timedelta(seconds=5)
# Who waits for a cluster says this often that it lives.
BEAT_SECONDS = 1.5


class LeaseLost(Exception):
    """Somebody else may be at the run: whoever learns this does nothing more for it."""


@dataclass
class Lease:
    """A held lease; the moment at which it ends tells its holder from all others."""

    run_id: int
    until: datetime
    now: Callable[[], datetime]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def renew(self) -> bool:
        """Hold on for another five seconds; False when the lease ran out, whoever has it now."""
        with self._lock:
            at = self.now()
            # Two that end at the same microsecond could not be told apart.
            until = max(at + LENGTH, self.until + timedelta(microseconds=1))
            held = Run.objects.filter(pk=self.run_id, lease_until=self.until, lease_until__gt=at)
            if not held.update(lease_until=until):
                return False
            self.until = until
            return True

    def hold(self) -> None:
        """Ask before whatever creates; raises LeaseLost when it ran out."""
        if not self.renew():
            raise LeaseLost

    def give_back(self) -> None:
        """Let go of the run; nothing happens when somebody else has it."""
        with self._lock:
            Run.objects.filter(pk=self.run_id, lease_until=self.until).update(lease_until=None)


def take(run_id: int, *, now: Callable[[], datetime]) -> Lease | None:
    """Take the lease of a run for which something is due; None when nothing is, or another worker is at it."""
    at = now()
    until = at + LENGTH
    if not Run.objects.due(at).filter(pk=run_id).update(lease_until=until, attempts=F("attempts") + 1):
        return None
    return Lease(run_id, until, now)


@contextmanager
def kept(held: Lease) -> Iterator[None]:
    """Keep the lease while the block waits for a cluster, and give it back at the end."""
    over = threading.Event()
    # In the same context: it is that which says whose clock is gone by.
    beating = threading.Thread(target=copy_context().run, args=(_beat, held, over), daemon=True)
    # Without memory for a thread it is kept for five seconds, and by whoever asks before each write.
    with suppress(RuntimeError):
        beating.start()
    try:
        yield
    finally:
        over.set()
        held.give_back()


def _beat(held: Lease, over: threading.Event) -> None:
    lives = True
    while lives and not over.wait(BEAT_SECONDS):
        try:
            lives = held.renew()
        except Error:
            lives = True
        finally:
            connection.close()

"""How the rows of one model are worked on: who may, how a try ends, and when nobody tries any more."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import IntegrityError, OperationalError, connection, transaction

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from reconciling.backoff import Backoff
from reconciling.claims import unclaimed
from reconciling.enqueue import Queue
from reconciling.lease import SECONDS, Lease, LeaseLost, heartbeat
from reconciling.models import Leased, LeasedQuerySet
from reconciling.slots import Slots

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Leased)
# As often as others may take the slot that was just seen free, before the row is left for another time.
TRIES = 12
# When the next try is due of a worker that dies in this one.
RETRIES = Backoff(timedelta(seconds=SECONDS), timedelta(minutes=5))
# Tries in a row that nobody came back from. The next would begin 80 seconds after the first, which is longer than
# a task is given: whoever is merely slow has come back by then, and the row of a slow target is not given up.
MAX_UNFINISHED = 5
OUT_OF_TIME = (
    "It took longer than a worker has for one try: answers come slowly. What was made so far stays, and the next try "
    "goes on from there."
)


class RequeueAfter(Exception):
    """Nothing is wrong with the row: it is only worked on later, as if it had not been tried.

    What is wanted of it anew by then is worked on at once.
    """

    def __init__(self, wait: timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


@dataclass(frozen=True)
class Controller(Generic[M]):
    """The rows of one model and what is particular about working on them.

    `rows` reads a row with whatever its work needs. `park` is told, in the transaction that does it, of a row that is
    tried no more; it returns the further fields that it changed.
    """

    rows: Callable[[], LeasedQuerySet[M]]
    queue: Queue
    park: Callable[[M, datetime], list[str]]
    slots: Slots[M] | None = None

    @property
    def released(self) -> dict[str, Any]:
        """What letting go of a row and of its slot writes."""
        slot = {"slot": None} if self.slots else {}
        return {"lease_until": None, "unfinished": 0, **slot}

    def acquire(
        self, pk: int, *, now: datetime, only_due: bool = False
    ) -> Lease[M] | None:
        """Take the lease of a row if nobody holds it, it is not parked and its target has a free slot; None otherwise.

        Taking it also books the next try, later with each one that did not succeed, so that a worker that dies loses
        nothing. A row that ends every worker that takes it is parked instead. With `only_due` a row is left alone whose
        next try is booked for later, unless something new is wanted of it: of one change there may be many messages.
        """
        free = (
            self.rows()
            .filter(unclaimed("lease_until", now), pk=pk, parked_at=None)
            .order_by()
        )
        free = free.wanted(now) if only_due else free
        ticks = time.monotonic()
        for _ in range(TRIES):
            row = free.first()
            if row is None:
                return None
            if row.unfinished >= MAX_UNFINISHED:
                self._park(row, now=now)
                return None
            slot = {"slot": self.slots.free(row, now=now)} if self.slots else {}
            if None in slot.values():
                return None
            # Taken only if everything is as it was read: what is then made true is what is wanted now.
            same = free.filter(row.same_desired, lease_no=row.lease_no)
            wait = RETRIES.wait(row.attempts)
            row.lease_no, row.attempts, row.unfinished = (
                row.lease_no + 1,
                row.attempts + 1,
                row.unfinished + 1,
            )
            with suppress(IntegrityError), _undone_alone():
                # The database refuses the slot when another worker took it a moment ago.
                if same.update(
                    lease_no=row.lease_no,
                    lease_until=now + timedelta(seconds=SECONDS),
                    requeue_at=now + wait,
                    attempts=row.attempts,
                    unfinished=row.unfinished,
                    **slot,
                ):
                    return Lease(
                        row,
                        row.lease_no,
                        now,
                        self.released,
                        self.queue.enqueue_on_commit,
                        ticks,
                    )
        if self.slots:
            # Others were faster, each time: it waits as one that found no slot.
            self.slots.left_out()
        return None

    @contextmanager
    def work(
        self,
        lease: Lease[M],
        *,
        now: Callable[[], datetime],
        fail: Callable[[ConnectorError], None],
    ) -> Iterator[None]:
        """Keep the lease while the block works under it, and see to whatever ends it otherwise than by itself.

        `fail` writes down what an outside system refused or left unanswered. A row that was held and a database that
        went away are raised again, and so is a lack of memory: the next try was booked when the lease was taken.
        """
        with structlog.contextvars.bound_contextvars(
            **{self.queue.subject: lease.row.pk, "lease": lease.number}
        ):
            try:
                with heartbeat(lease, now=now):
                    yield
            except LeaseLost:
                logger.warning("lease lost")
                lease.acknowledge()
            except RequeueAfter as later:
                ended = now()
                lease.finish(requeue_at=ended + later.wait, now=ended, attempts=0)
            except ConnectorError as error:
                fail(error)
            except OperationalError:
                lease.acknowledge()
                raise
            except SoftTimeLimitExceeded:
                logger.warning("out of time")
                fail(TemporaryError(OUT_OF_TIME))
            except MemoryError:
                # As little is certain after it as after a crash, and it counts as one: the lease ends by itself.
                logger.exception("out of memory")
                raise
            except Exception as error:
                # A bug of ours must be seen on the page too, not only in a log, and must not end the worker.
                logger.exception("reconcile broke")
                fail(
                    PermanentError(
                        f"The portal failed ({type(error).__name__}). Its operators were told."
                    )
                )

    @transaction.atomic
    def _park(self, read: M, *, now: datetime) -> None:
        """Try a row no more, once, however many workers find out.

        It takes the next lease number with it, so that a worker that was only asleep changes nothing any more.
        """
        rows = self.rows().select_for_update(of=("self",), no_key=True)
        row = rows.filter(pk=read.pk, lease_no=read.lease_no, parked_at=None).first()
        if row is None:
            return
        row.lease_no, row.parked_at = row.lease_no + 1, now
        let_go = {
            name: value for name, value in self.released.items() if name != "unfinished"
        }
        for name, value in let_go.items():
            setattr(row, name, value)
        row.save(update_fields=["lease_no", "parked_at", *let_go, *self.park(row, now)])


def _undone_alone() -> AbstractContextManager[object]:
    """A savepoint where there is a transaction that a refused statement would spoil; nothing where there is none."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()

"""B10: from the commit that changes what is wanted until a worker has begun, beside a bare Celery's `delay()`."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain

from celery import Celery
from django.db import transaction
from django.utils import timezone

from audit.actors import PORTAL
from bench import rig, steps, tenancies
from bench.plain_celery import NOTE
from bench.results import Better, Goal, Measured
from provisioning.actions import publish
from provisioning.models import Tenancy
from tests.services.process import wait_until

PER_SECOND, COUNT, PAIRS, LOST = 20, 100, 5, 10
CLUSTERS, PROCESSES = 8, 4
MOST, MOST_AT_WORST, MOST_WHEN_LOST = 15, 100, 5
# Not all at one moment of the sweep, which comes every two seconds.
APART = 0.37


@dataclass(frozen=True)
class Side:
    """Portal or peer: `send` returns when what it sent was on its way, `began` says when the work on each began."""

    send: Callable[[int], float]
    began: Callable[[Sequence[int]], dict[int, float]]
    forget: Callable[[], object]

    def waits(self, numbers: Sequence[int]) -> list[float]:
        """Send these, twenty a second; how many seconds each then waited for its worker."""
        self.forget()
        sent = dict(zip(numbers, map(self.send, _in_time(numbers)), strict=True))
        return self.waited(sent)

    def waited(self, sent: dict[int, float]) -> list[float]:
        """How many seconds each of these waited for its worker."""
        numbers = list(sent)
        wait_until(
            lambda: len(self.began(numbers)) == len(numbers),
            what="a worker to begin with each",
        )
        began = self.began(numbers)
        # Read from the clock by two programs: what begins at once may seem to have begun before.
        return [max(began[number] - at, 1e-6) for number, at in sent.items()]


def measure(on: rig.Rig) -> Measured:
    """Five turns of a hundred, and ten without a message."""
    return measured(on, count=COUNT, pairs=PAIRS, lost=LOST)


def measured(on: rig.Rig, *, count: int, pairs: int, lost: int) -> Measured:
    """Workers of four processes on both sides; beside the portal's its clock, whose sweeps go on meanwhile."""
    rows = put_off(count + lost)
    rig.settle(on)
    with (
        steps.watched(),
        steps.portal(on, processes=PROCESSES) as portal,
        plain(on) as peer,
    ):
        portal.clock("bench.clock")
        ours = Side(change, steps.starts, steps.forget_starts)
        # What a process does for the first time takes it long, on both sides.
        for side, numbers in ((ours, rows), (peer, range(count))):
            side.waits(numbers[:count])
        both = [
            (ours.waits(rows[:count]), peer.waits(range(count))) for _ in range(pairs)
        ]
        slowest = max(ours.waited(dict(map(without_message, rows[count:]))))
    every = list(chain.from_iterable(waits for waits, _ in both))
    return Measured(
        what=f"commit until a worker has the lease, {PER_SECOND} a second; peer: Celery's delay() until the task",
        portal=[1000 * statistics.median(waits) for waits, _ in both],
        peer=[1000 * statistics.median(waits) for _, waits in both],
        unit="ms",
        better=Better.PORTAL_OVER_PEER,
        others=[
            Goal("ms, middle", 1000 * statistics.median(every), most=MOST),
            Goal(
                "ms, 99 of 100",
                1000 * statistics.quantiles(every, n=100)[-1],
                most=MOST_AT_WORST,
            ),
            Goal(
                f"s, slowest of {lost} without a message", slowest, most=MOST_WHEN_LOST
            ),
        ],
    )


def change(tenancy_id: int) -> float:
    """Change what is wanted as whatever is granted does; the moment of the commit."""
    committed = list[float]()
    with transaction.atomic():
        # Before the one that rings.
        transaction.on_commit(lambda: committed.append(time.time()))
        row = Tenancy.objects.locked().get(pk=tenancy_id)
        row.weight = row.generation % 100 + 1
        # The tenancy's, too: what is wanted without it would be put right for all of them within half a minute.
        row.save(update_fields=["weight"])
        spec = replace(row.desired, weight=row.weight)
        publish(row, spec=spec, actor=PORTAL, now=timezone.now())
    return committed[0]


def without_message(tenancy_id: int) -> tuple[int, float]:
    """Make one due as a change does whose message got lost; the moment of it."""
    time.sleep(APART)
    Tenancy.objects.filter(pk=tenancy_id).update(requeue_at=timezone.now())
    return tenancy_id, time.time()


def put_off(count: int) -> list[int]:
    """So many tenancies that nobody looks at before they change; two that follow each other are on two clusters."""
    by, each = tenancies.somebody(), -(-count // CLUSTERS)
    made = [steps.waiting(cluster, by, each) for cluster in steps.clusters(CLUSTERS)]
    Tenancy.objects.update(requeue_at=timezone.now() + timedelta(days=1))
    return list(chain.from_iterable(zip(*made, strict=True)))[:count]


@contextmanager
def plain(on: rig.Rig) -> Iterator[Side]:
    """The bare Celery, as a side."""
    with steps.plain(on, processes=PROCESSES) as peer, peer.sender() as sender:
        yield Side(lambda number: _delay(sender, number), peer.starts, peer.forget)


def _delay(sender: Celery, number: int) -> float:
    at = time.time()
    sender.send_task(NOTE, args=[number])
    return at


def _in_time(numbers: Sequence[int]) -> Iterator[int]:
    began = time.monotonic()
    for turn, number in enumerate(numbers):
        time.sleep(max(0.0, began + turn / PER_SECOND - time.monotonic()))
        yield number

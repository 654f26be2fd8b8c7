"""B11: passes through broker, lease, status and audit log, beside a bare Celery's tasks that do nothing."""

from celery import Celery

from bench import rig, steps, tenancies
from bench.plain_celery import NOTE
from bench.results import Better, Measured
from provisioning.enqueue import enqueue
from tests.services.process import wait_until

COUNT, PAIRS, PROCESSES = 1_000, 5, 2
LEAST = 0.35
LONGEST = 600


def measure(on: rig.Rig) -> Measured:
    """A thousand in each of five turns."""
    return measured(on, count=COUNT, pairs=PAIRS)


def measured(on: rig.Rig, *, count: int, pairs: int) -> Measured:
    """Both sides find all messages in the broker; the time is that from the first's beginning to the last's."""
    cluster, by = steps.clusters(1)[0], tenancies.somebody()
    both = []
    with steps.watched():
        for _ in range(pairs):
            rows = steps.waiting(cluster, by, count)
            rig.settle(on)
            both.append((of_the_portal(on, rows), of_the_peer(on, count)))
    return Measured(
        what="passes with lease, status and audit event, two processes; peer: Celery's tasks without work",
        portal=[ours for ours, _ in both],
        peer=[theirs for _, theirs in both],
        unit="/s",
        better=Better.PORTAL_OVER_PEER,
        least=LEAST,
    )


def of_the_portal(on: rig.Rig, rows: list[int]) -> float:
    """How many tenancies a second a worker begins with, when a message for each waits."""
    for tenancy_id in rows:
        enqueue(tenancy_id)
    with steps.portal(on, processes=PROCESSES):
        wait_until(
            lambda: len(steps.starts(rows)) == len(rows),
            what="every pass to begin",
            seconds=LONGEST,
        )
    return _per_second(steps.starts(rows))


def of_the_peer(on: rig.Rig, count: int) -> float:
    """How many tasks a second a worker begins with."""
    with steps.plain(
        on, processes=PROCESSES, send=lambda sender: _send(sender, count)
    ) as peer:
        numbers = range(count)
        wait_until(
            lambda: len(peer.starts(numbers)) == count,
            what="every task to begin",
            seconds=LONGEST,
        )
        return _per_second(peer.starts(numbers))


def _send(sender: Celery, count: int) -> None:
    for number in range(count):
        sender.send_task(NOTE, args=[number])


def _per_second(starts: dict[int, float]) -> float:
    return (len(starts) - 1) / (max(starts.values()) - min(starts.values()))

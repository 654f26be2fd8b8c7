"""B15: a worker killed with 20 tenancies in hand, until all are true; beside Celery's own redelivery of 20 tasks."""

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from celery import Celery
from django.utils import timezone
from redis import Redis

from bench import rig, tenancies
from bench.plain_celery import DONE, KILLED, RUNNING, TASK
from bench.results import Better, Goal, Measured
from bench.tenancies import Ground
from provisioning.models import Tenancy
from tests.faults.running import QUIET, Portal, Process, environment
from tests.services.process import wait_until

STEPS, CONCURRENCY, PAIRS = 20, 4, 5
LEAST = 8
PREFETCH = 4  # as Celery has it by itself
HANG = 4
# What stands of a tenancy before its RoleBinding: namespace, quota, sizes and the jobs' account.
BEFORE = 4
LONGEST = 300


def measure(on: rig.Rig) -> Measured:
    """Five kills of each; the peers wait at the same time, because they do nothing but wait."""
    with (
        tenancies.ground(on) as ground,
        processes(on, ground) as portal,
        peers(on) as waiting,
    ):
        portal.start(
            "beat", ["celery", "-A", "portal.celery", "beat", "-l", "INFO"], {}
        )
        worker = started(portal, ["-A", "portal.celery"])
        took, starts = list[float](), list[float]()
        for _ in range(PAIRS):
            seconds, start, worker = recovered(ground, portal, worker)
            took.append(seconds)
            starts.append(start)
        slow = [peer.recovered() for peer in waiting]
    return Measured(
        what=f"worker killed with {STEPS} tenancies to do, until all are true; peer: Celery, visibility_timeout=10",
        portal=took,
        peer=slow,
        unit="s",
        better=Better.PEER_OVER_PORTAL,
        least=LEAST,
        others=[
            Goal("slowest recovery, seconds", max(took)),
            # On a busy machine most of it.
            Goal("of it the next worker's start, seconds", statistics.median(starts)),
        ],
    )


def recovered(
    ground: Ground, portal: Portal, worker: Process
) -> tuple[float, float, Process]:
    """Kill the worker with each of its processes in a pass; seconds, those of the next one's start, and that one."""
    match = {"method": "PATCH", "path_regex": "/rolebindings/"}
    ground.world.switch("POST", "faults", match=match, hang=HANG, times=CONCURRENCY)
    before = ground.world.writes()
    wanted = [row.pk for row in ground.wanted(STEPS, now=timezone.now())]
    in_hand = before + BEFORE * CONCURRENCY
    wait_until(
        lambda: ground.world.writes() >= in_hand,
        what="the passes to be under way",
        seconds=60,
    )
    began = time.monotonic()
    worker.kill()
    following = started(portal, ["-A", "portal.celery"])
    start = time.monotonic() - began
    rows = Tenancy.objects.converged().filter(pk__in=wanted)
    wait_until(lambda: rows.count() == STEPS, what="all to be true", seconds=LONGEST)
    return time.monotonic() - began, start, following


@dataclass
class Peer:
    """A plain Celery whose worker was killed, and which has had another one since."""

    redis: Redis
    killed_at: float

    def recovered(self) -> float:
        """Seconds from the kill until the last task was done."""
        wait_until(
            lambda: self.redis.zcard(DONE) == STEPS,
            what="Celery's redelivery",
            seconds=LONGEST,
        )
        done: Any = self.redis.zrange(DONE, -1, -1, withscores=True)
        return float(done[0][1]) - self.killed_at


@contextmanager
def processes(on: rig.Rig, ground: Ground) -> Iterator[Portal]:
    """The portal's processes, ended with the block."""
    portal = Portal(
        on.folder / "recovery",
        environment(on.folder / "recovery", kubeconfigs=ground.world.folder),
    )
    try:
        yield portal
    finally:
        portal.kill()


@contextmanager
def peers(on: rig.Rig) -> Iterator[list[Peer]]:
    """As many plain Celeries as there are pairs, each on a Redis database of its own, killed one after another."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if name != "DJANGO_SETTINGS_MODULE"
    }
    running = [
        Portal(
            on.folder / f"plain-{number}",
            {**plain, "PLAIN_BROKER": _broker(on, number)},
        )
        for number in range(PAIRS)
    ]
    try:
        yield [_killed(each) for each in running]
    finally:
        for each in running:
            each.kill()


def _broker(on: rig.Rig, number: int) -> str:
    return on.redis.url(10 + number)


def _killed(plain: Portal) -> Peer:
    broker = plain.environment["PLAIN_BROKER"]
    redis = Redis.from_url(broker)
    redis.flushdb()
    with Celery("sender", broker=broker, set_as_current=False) as sender:
        for number in range(STEPS):
            sender.send_task(TASK, args=[number])
    worker = started(plain, ["-A", "bench.plain_celery"])
    # A worker that is killed while it takes a message loses it for good: it is killed when it has taken all it wants.
    ready = (CONCURRENCY, PREFETCH * CONCURRENCY)
    wait_until(
        lambda: (redis.scard(RUNNING), redis.hlen("unacked")) == ready,
        what="Celery to be at work",
        seconds=60,
    )
    peer = Peer(redis, time.time())
    worker.kill()
    redis.set(KILLED, 1)
    started(plain, ["-A", "bench.plain_celery"], wait=False)
    return peer


def started(
    where: Portal,
    application: list[str],
    *,
    wait: bool = True,
    processes: int = CONCURRENCY,
) -> Process:
    """A worker of so many processes."""
    name = f"worker-{len(where.running)}"
    options = ["-c", str(processes), "-n", f"{name}@%h", *QUIET]
    worker = where.start(name, ["celery", *application, "worker", *options], {})
    if wait:
        worker.wait_ready()
    return worker

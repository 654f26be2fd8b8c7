"""Redis is a doorbell: emptying, killing, filling and freezing it lose nothing."""

import logging
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import requests
from django.utils import timezone
from redis import Redis as Client

from approvals.models import Request
from portal import celery_app
from provisioning.models import Tenancy
from provisioning.tasks import reconcile_tenancy
from tests import factories
from tests.faults.calling import caller
from tests.faults.running import Portal
from tests.faults.tenancies import are_true, wanted
from tests.faults.world import World
from tests.services.process import wait_until
from tests.services.redis import Redis

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
QUEUED = 12
ASKS = 6


def queue(tenancies: list[Tenancy], redis: Redis) -> None:
    """Ring for each on this Redis."""
    with celery_app.connection_for_write(redis.url()) as broker:
        for tenancy in tenancies:
            reconcile_tenancy.apply_async(args=[tenancy.pk], connection=broker)


def waiting(redis: Redis) -> int:
    """How many messages nobody has taken."""
    with redis.client() as client:
        return int(client.llen("celery"))


def timed(call: Callable[[], requests.Response]) -> float:
    """Make a call that must succeed; how many seconds it took."""
    started = time.monotonic()
    answer = call()
    assert answer.ok, answer.text
    return round(time.monotonic() - started, 2)


def fill(redis: Redis, client: Client) -> None:
    """Leave it no room for anything."""
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1kb")


def make_room(redis: Redis, client: Client) -> None:
    """Give it its memory back."""
    client.config_set("maxmemory", "0")


def follow_nobody(redis: Redis, client: Client) -> None:
    """Make it the copy of a server that is not there: it answers reads and refuses writes."""
    client.replicaof("127.0.0.1", 1)


def lead_again(redis: Redis, client: Client) -> None:
    """Let it take writes again."""
    client.replicaof("NO", "ONE")


TROUBLES: list[
    tuple[str, Callable[[Redis, Client], None], Callable[[Redis, Client], None]]
] = [
    ("full", fill, make_room),
    ("read-only", follow_nobody, lead_again),
    ("frozen", lambda redis, _: redis.freeze(), lambda redis, _: redis.thaw()),
]


def test_flushing_redis_with_work_queued_loses_nothing(
    apart: Portal, world: World, own_redis: Redis
) -> None:
    tenancies = wanted(world, QUEUED)
    queue(tenancies, own_redis)
    assert waiting(own_redis) == QUEUED
    own_redis.flush()
    assert waiting(own_redis) == 0
    started = time.monotonic()
    apart.worker()
    wait_until(lambda: are_true(tenancies), what="all to be true")
    logger.info(
        "%d true %.1f s after the worker's start", QUEUED, time.monotonic() - started
    )
    assert [world.missing(t) for t in tenancies] == [[]] * QUEUED


def test_killing_redis_with_work_queued_loses_nothing_and_needs_no_restart_of_the_worker(
    apart: Portal, world: World, own_redis: Redis
) -> None:
    worker = apart.worker(wait=True)
    worker.signal(signal.SIGSTOP)
    tenancies = wanted(world, QUEUED)
    queue(tenancies, own_redis)
    # One went to the connection on which the stopped worker waits, and is as lost as the others.
    assert waiting(own_redis) >= QUEUED - 1
    own_redis.kill()
    worker.signal(signal.SIGCONT)
    own_redis.start()
    assert waiting(own_redis) == 0
    back = time.monotonic()
    wait_until(lambda: are_true(tenancies), what="all to be true")
    took = time.monotonic() - back
    logger.info("%d true %.1f s after Redis came back", QUEUED, took)
    assert not worker.has_ended
    assert took <= 10, worker.log[-3000:]


def ask(tenancy: Tenancy, world: World) -> dict[str, Any]:
    """A small ask for a day."""
    until = (timezone.now() + timedelta(days=1)).isoformat()
    flavor = f"{world.name}/a100-80gb"
    return {
        "team": tenancy.team.slug,
        "flavor": flavor,
        "gpus": 1,
        "purpose": "notebook",
        "until": until,
    }


def test_a_frozen_full_or_read_only_redis_delays_no_submit_and_no_page_and_loses_nothing(
    apart: Portal, world: World, own_redis: Redis
) -> None:
    tenancies = wanted(world, ASKS)
    worker, _ = apart.worker(wait=True), apart.web(workers=2)
    wait_until(lambda: are_true(tenancies), what="all to be true")
    members = [caller(factories.person(teams=[t.team]), apart.url) for t in tenancies]
    bodies = [ask(t, world) for t in tenancies]
    previews = [
        partial(who.post, "requests/preview/", body)
        for who, body in zip(members, bodies, strict=True)
    ]
    # The first calls of a web process load what later ones have: the second ones are usual.
    _, usual = (max(timed(preview) for preview in previews) for _ in range(2))
    seconds = {}
    with own_redis.client() as client:
        for number, (who, body) in enumerate(zip(members, bodies, strict=True)):
            name, trouble, end = TROUBLES[number // 2]
            if number % 2 == 0:
                trouble(own_redis, client)
            seconds[f"submit, {name} {number}"] = timed(
                partial(who.post, "requests/", body)
            )
            seconds[f"read, {name} {number}"] = timed(partial(who.get, "me/"))
            if number % 2:
                end(own_redis, client)
    logger.info("with Redis in trouble: %s", seconds)
    back = time.monotonic()
    wait_until(
        lambda: worker.has_ended or are_true(tenancies),
        what="the worker to go on or end",
    )
    if worker.has_ended:
        # Celery ends when its broker refuses writes; whoever keeps the worker running starts it again. How long it
        # takes to end is its own: half a minute was seen once.
        back = time.monotonic()
        apart.worker(wait=True)
    wait_until(lambda: are_true(tenancies), what="all to be true")
    took = time.monotonic() - back
    logger.info("%d true %.1f s after Redis and a worker were well", ASKS, took)
    assert Request.objects.count() == ASKS
    assert [world.missing(t) for t in tenancies] == [[]] * ASKS
    # Each web process may learn once, within its cache's time limit of a second, that Redis is away.
    slow = {
        name: each for name, each in seconds.items() if each > 1 and "frozen" in name
    }
    assert len(slow) <= 2, slow
    assert (
        max(each for name, each in seconds.items() if "frozen" not in name)
        < 1 + 2 * usual
    ), seconds
    assert max(seconds.values()) < 2 + 2 * usual, seconds
    assert took <= 15, worker.log[-3000:]

"""Steps of the engine without their cluster: tenancies whose pass ends before the first call, and when each began."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from celery import Celery
from django.db import connection
from django.utils import timezone
from redis import Redis

from accounts.models import User
from bench import rig, tenancies
from bench.plain_celery import STARTED
from bench.recovery import started
from fleet.models import Cluster
from tests.faults.running import Portal, environment

# Such a cluster is refused before it is called: the lease, the status and the audit event are all there is of a pass.
TOO_OLD = "v0.14.0"
TABLE = "bench_started"
WATCH = f"""
CREATE TABLE {TABLE} (tenancy bigint, at double precision);
CREATE FUNCTION bench_note_start() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {TABLE} VALUES (NEW.id, extract(epoch FROM clock_timestamp()));
    RETURN NULL;
END $$;
CREATE TRIGGER bench_note_start AFTER UPDATE OF lease_no ON provisioning_tenancy
FOR EACH ROW WHEN (NEW.lease_no > OLD.lease_no) EXECUTE FUNCTION bench_note_start();
"""
FORGET = f"""
DROP TRIGGER bench_note_start ON provisioning_tenancy; DROP FUNCTION bench_note_start; DROP TABLE {TABLE};
"""

PLAIN_DATABASE = 10


@dataclass(frozen=True)
class Plain:
    """A bare Celery whose tasks write down when they began."""

    broker: str
    redis: Redis

    def sender(self) -> Celery:
        """What sends its tasks; a context manager."""
        return Celery("sender", broker=self.broker, set_as_current=False)

    def starts(self, of: Sequence[int]) -> dict[int, float]:
        """When each of these tasks began, in seconds since 1970; those that wait are missing."""
        found: Any = self.redis.zrange(STARTED, 0, -1, withscores=True)
        noted = {int(number): float(at) for number, at in found}
        return {number: noted[number] for number in of if number in noted}

    def forget(self) -> None:
        """Begin to write down anew."""
        self.redis.delete(STARTED)


@contextmanager
def portal(on: rig.Rig, *, processes: int) -> Iterator[Portal]:
    """The portal's worker, until the block ends; its clock is nobody's yet."""
    folder = on.folder / "steps"
    running = Portal(folder, environment(folder, kubeconfigs=folder))
    try:
        started(running, ["-A", "portal.celery"], processes=processes)
        yield running
    finally:
        running.kill()


@contextmanager
def plain(
    on: rig.Rig,
    *,
    processes: int,
    send: Callable[[Celery], object] = lambda sender: None,
) -> Iterator[Plain]:
    """A bare Celery with a worker, until the block ends; `send` sends what the worker finds when it begins."""
    broker = on.redis.url(PLAIN_DATABASE)
    variables = {
        name: value
        for name, value in os.environ.items()
        if name != "DJANGO_SETTINGS_MODULE"
    }
    running = Portal(on.folder / "plain", {**variables, "PLAIN_BROKER": broker})
    with Redis.from_url(broker) as redis:
        redis.flushdb()
        peer = Plain(broker, redis)
        try:
            with peer.sender() as sender:
                send(sender)
            started(running, ["-A", "bench.plain_celery"], processes=processes)
            yield peer
        finally:
            running.kill()


@contextmanager
def watched() -> Iterator[None]:
    """Have the database write down when a lease is taken, which is when a worker has begun, until the block ends."""
    _execute(WATCH)
    try:
        yield
    finally:
        _execute(FORGET)


def starts(of: Sequence[int]) -> dict[int, float]:
    """When work on each of these tenancies first began, in seconds since 1970; those that wait are missing."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT tenancy, min(at) FROM {TABLE} WHERE tenancy = ANY(%s) GROUP BY 1",
            [[*of]],
        )
        return dict(cursor.fetchall())


def forget_starts() -> None:
    """Begin to write down anew."""
    _execute(f"TRUNCATE {TABLE}")


def clusters(count: int) -> list[Cluster]:
    """So many clusters that no pass calls."""
    return [
        tenancies.cluster_of(
            f"cluster-{number}", kubeconfig="none.yaml", kueue_version=TOO_OLD
        )
        for number in range(count)
    ]


def waiting(on: Cluster, by: User, count: int) -> list[int]:
    """So many tenancies of new teams on a cluster, desired, due and not looked at yet."""
    return [row.pk for row in tenancies.wanted_on(on, by, count, now=timezone.now())]


def _execute(statements: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statements)

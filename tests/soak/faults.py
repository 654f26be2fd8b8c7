"""What goes wrong in a walk, each around one step: a fault that did strike is counted."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection

from fleet.models import Cluster
from provisioning.models import Tenancy
from reconciling import failpoints
from tests.soak.walk import Walk
from tests.soak.walking import FAR, NEAR, Crash

POINTS = {
    "request.submit": 1,
    "allocation.issue": 1,
    "enqueue.committed": 1,
    "provision.write": 11,
    "provision.status": 1,
    "git.push": 1,
}
WRITES = [
    "clusterqueues",
    "resourcequotas",
    "rolebindings",
    "localqueues",
    "namespaces",
    "workloads",
]
Strike = Callable[[], None]


@contextmanager
def no_fault(walk: Walk) -> Iterator[None]:
    """Nothing goes wrong."""
    walk.tally.struck["no fault"] += 1
    yield


@contextmanager
def killed_at_a_point(walk: Walk) -> Iterator[None]:
    """The process ends at a named point."""
    strike = _counted(walk, "killed at a point", lambda: _die(walk))
    with (
        connection.execute_wrapper(_Statements(walk, 0, strike)),
        _at_a_point(walk, strike),
    ):
        yield


@contextmanager
def killed_anywhere(walk: Walk) -> Iterator[None]:
    """The process ends before or after one of its statements."""
    strike = _counted(walk, "killed anywhere", lambda: _die(walk))
    with connection.execute_wrapper(_Statements(walk, _drawn(walk), strike)):
        yield


@contextmanager
def cut_off_at_a_point(walk: Walk) -> Iterator[None]:
    """The database ends the connection at a named point."""
    with _at_a_point(walk, _counted(walk, "cut off at a point", lose_the_database)):
        yield
    # What was cut off after the last query is noticed here, as the next request's health check would.
    connection.close()


@contextmanager
def cut_off_anywhere(walk: Walk) -> Iterator[None]:
    """The database ends the connection before or after a statement."""
    strike = _counted(walk, "cut off anywhere", lose_the_database)
    with connection.execute_wrapper(_Statements(walk, _drawn(walk), strike)):
        yield
    connection.close()


@contextmanager
def bad_network(walk: Walk) -> Iterator[None]:
    """Something between portal and cluster fails, for one exchange or for several."""
    proxy = walk.town.place.proxy
    mode = walk.random.choice(
        ["delay", "reset", "blackhole", "drip", "status", "status"]
    )
    times = 1 if mode in ("blackhole", "drip") else walk.random.choice([1, 1, 3, 30])
    status = walk.random.choice([401, 403, 409, 429, 500, 502, 503, 504])
    proxy.fail(
        mode,
        times=times,
        after=walk.random.randrange(12),
        status=status,
        headers="Retry-After: 1\r\n",
    )
    fault = proxy.faults[-1]
    with _over_the_network(walk):
        yield
    proxy.faults.clear()
    walk.tally.struck[f"bad network: {mode}"] += fault.times < times


@contextmanager
def bad_server(walk: Walk) -> Iterator[None]:
    """The API server itself refuses or cuts one kind of write."""
    how: dict[str, Any] = walk.random.choice(
        [{"status": 500}, {"status": 429}, {"status": 403}, {"drop_after": 9}]
    )
    cluster, times = walk.town.place.kubernetes, walk.random.choice([1, 2])
    cluster.fail(walk.random.choice(WRITES), "PATCH", times=times, **how)
    fault = cluster.cluster.faults._faults[-1]
    with _over_the_network(walk):
        yield
    cluster.cluster.faults.clear()
    walk.tally.struck["bad server"] += fault.times < times


@contextmanager
def broker_flushed(walk: Walk) -> Iterator[None]:
    """Redis forgets everything."""
    yield
    walk.tally.struck["broker flushed"] += bool(walk.town.messages())


@contextmanager
def bad_repository(walk: Walk) -> Iterator[None]:
    """The repository is away, or locked by somebody else's push; a pass meets it."""
    path = walk.town.theirs.path
    rows = Tenancy.objects.present().filter(cluster=walk.town.followed).order_by("pk")
    tenancy_id = rows.values_list("pk", flat=True).first()
    locked, away = path / "refs" / "heads" / "main.lock", path.with_suffix(".away")
    is_locked = walk.random.random() < 0.5
    if is_locked:
        locked.touch()
    else:
        path.rename(away)
    try:
        yield
        wrote = walk.town.work(tenancy_id) if tenancy_id else None
    finally:
        if is_locked:
            locked.unlink()
        else:
            away.rename(path)
    if tenancy_id and wrote is not None:
        failed = Tenancy.objects.get(pk=tenancy_id).ready["status"] == "False"
        walk.tally.struck["bad repository: " + ("locked" if is_locked else "away")] += (
            failed
        )


class _Statements:
    """Counts a step's statements and strikes around one of them; a process that has ended has no more."""

    def __init__(self, walk: Walk, at: int, strike: Strike) -> None:
        self.walk, self.left, self.strike = walk, at, strike
        self.after = walk.random.random() < 0.5

    def __call__(self, execute: Callable[..., Any], *call: Any) -> Any:
        self.walk.town.place.check_alive()
        self.left -= 1
        if self.left == 0 and not self.after:
            self.strike()
        answer = execute(*call)
        if self.left == 0 and self.after:
            self.strike()
        return answer


def _drawn(walk: Walk) -> int:
    """Which statement: the first ones are the likeliest, and some lie beyond the step's last."""
    return int(walk.random.expovariate(1 / 15)) + 1


def _counted(walk: Walk, name: str, strike: Strike) -> Strike:
    def counting() -> None:
        walk.tally.struck[name] += 1
        strike()

    return counting


def _die(walk: Walk) -> None:
    walk.town.place.dead = True
    raise Crash


def lose_the_database() -> None:
    """End this process's connection as a restart of the server does."""
    if connection.connection is None or connection.connection.closed:
        return
    pid = connection.connection.info.backend_pid
    with psycopg.connect(str(connection.connection.info.dsn), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])


@contextmanager
def _at_a_point(walk: Walk, strike: Strike) -> Iterator[None]:
    point = walk.random.choice(list(POINTS))
    failpoints.forget()
    failpoints.strike, before = strike, failpoints.strike
    os.environ["FAILPOINT"] = f"{point}:{walk.random.randint(1, POINTS[point])}"
    try:
        yield
    finally:
        del os.environ["FAILPOINT"]
        failpoints.strike = before


@contextmanager
def _over_the_network(walk: Walk) -> Iterator[None]:
    rows = Cluster.objects.filter(pk=walk.town.cluster.pk)
    rows.update(kubeconfig=FAR)
    yield
    rows.update(kubeconfig=NEAR)


FAULTS = {
    no_fault: 10,
    killed_at_a_point: 4,
    killed_anywhere: 4,
    cut_off_at_a_point: 2,
    cut_off_anywhere: 2,
    bad_network: 5,
    bad_server: 2,
    broker_flushed: 1,
    bad_repository: 1,
}

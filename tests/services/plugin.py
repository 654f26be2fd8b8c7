"""The tests' PostgreSQL and Redis: one pair for a whole run, started by the first test that needs it.

Loaded before pytest-django reads the settings, so that they name ports that nobody else can take.
A run of pure tests starts no server at all.
"""

import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.services import environment
from tests.services.postgres import Postgres
from tests.services.process import Server, port_of, reserve_port
from tests.services.redis import Redis

FOLDER = "QM_TEST_FOLDER"
PORTS = "QM_TEST_PORTS"
S = TypeVar("S", bound=Server)
held: list[socket.socket] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, object, object]:
    """Set the environment before pytest-django reads the settings in the same hook: wrappers come first."""
    take_environment()
    return (yield)


def take_environment() -> None:
    """Choose the run's folder and ports, in its first process only, and point the settings at them."""
    if FOLDER not in os.environ:
        held.extend([reserve_port(), reserve_port()])
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="quartermaster-tests-")
        os.environ[PORTS] = ",".join(str(port_of(each)) for each in held)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    postgres_port, redis_port = map(int, os.environ[PORTS].split(","))
    os.environ.update(environment.harmless())
    os.environ.update(
        environment.addresses(
            postgres_port=postgres_port, redis_port=redis_port, worker=int(worker)
        ),
    )
    data = folder() / f"var-{worker}"
    (data / "static").mkdir(parents=True, exist_ok=True)
    os.environ["QM_DATA_DIR"] = str(data)


def folder() -> Path:
    """Where this run's servers keep their data."""
    return Path(os.environ[FOLDER])


def shared_postgres() -> Postgres:
    """The run's PostgreSQL, running or not."""
    return Postgres(folder() / "postgres", int(os.environ[PORTS].split(",")[0]))


def shared_redis() -> Redis:
    """The run's Redis, running or not."""
    return Redis(folder() / "redis", int(os.environ[PORTS].split(",")[1]))


def start_once(server: Server) -> None:
    """Start a shared server unless a test process of this run has done so."""
    with (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if server.pid is None:
            server.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers when the process that began the run ends."""
    if hasattr(config, "workerinput") or not held:
        return
    for server in (shared_postgres(), shared_redis()):
        server.stop()
    while held:
        held.pop().close()
    shutil.rmtree(folder(), ignore_errors=True)


@contextmanager
def lent(kind: type[S]) -> Iterator[S]:
    """A running server of one test's own, ended afterwards."""
    with reserve_port() as port:
        server = kind(folder() / f"own-{kind.program}-{port_of(port)}", port_of(port))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres() -> Postgres:
    """The run's PostgreSQL. Never kill it: take `own_postgres` for that."""
    server = shared_postgres()
    start_once(server)
    return server


@pytest.fixture(scope="session")
def redis() -> Redis:
    """The run's Redis. Never kill or flush it: take `own_redis` for that."""
    server = shared_redis()
    start_once(server)
    return server


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL of this test's own, to kill, freeze and restart."""
    with lent(Postgres) as server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[Redis]:
    """A Redis of this test's own, to kill, freeze and flush."""
    with lent(Redis) as server:
        yield server

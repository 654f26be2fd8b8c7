"""What fault tests stand on: a cluster, and an installation of the product on the test's own database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.running import Portal, environment
from tests.faults.world import World, served
from tests.services.redis import Redis


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One cluster for all fault tests of a test process; never freeze or kill it."""
    with served("training-eastus", tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture
def portal(transactional_db: None, tmp_path: Path, world: World) -> Iterator[Portal]:
    """An installation on the test's database and the shared Redis; its processes end with the test."""
    installation = Portal(tmp_path / "portal", environment(tmp_path, kubeconfigs=world.folder))
    try:
        yield installation
    finally:
        installation.kill()


@pytest.fixture
def apart(transactional_db: None, tmp_path: Path, world: World, own_redis: Redis) -> Iterator[Portal]:
    """The same on `own_redis`, which may be flushed, frozen and killed."""
    broker, cache = own_redis.url(0), own_redis.url(1)
    installation = Portal(
        tmp_path / "portal", environment(tmp_path, kubeconfigs=world.folder, broker=broker, cache=cache)
    )
    try:
        yield installation
    finally:
        own_redis.thaw()
        installation.kill()

"""What fault tests stand on: a cluster, and an installation of the product on the test's own database."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from checks.invariants import check
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
    with installed(
        tmp_path, world, environment(tmp_path, kubeconfigs=world.folder)
    ) as installation:
        yield installation


@pytest.fixture
def apart(
    transactional_db: None, tmp_path: Path, world: World, own_redis: Redis
) -> Iterator[Portal]:
    """The same on `own_redis`, which may be flushed, frozen and killed."""
    values = environment(
        tmp_path,
        kubeconfigs=world.folder,
        broker=own_redis.url(0),
        cache=own_redis.url(1),
    )
    with installed(tmp_path, world, values) as installation:
        try:
            yield installation
        finally:
            own_redis.thaw()


@contextmanager
def installed(
    folder: Path, world: World, values: Mapping[str, str]
) -> Iterator[Portal]:
    """An installation whose processes end with the test, after which every promise holds, on the cluster too."""
    world.clear()
    installation = Portal(folder / "portal", values)
    try:
        yield installation
    finally:
        installation.kill()
        world.switch("DELETE", "faults")
    assert broken(Path(installation.environment["QM_KUBECONFIG_DIR"])) == []


def broken(kubeconfigs: Path) -> list[str]:
    """Every promise that does not hold now; what is due by now is due because nobody works here any more (I7)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings.ENV, "kubeconfig_dir", kubeconfigs)
        found = check(now=timezone.now()).findings
    return [str(finding) for finding in found if finding.promise != "I7"]

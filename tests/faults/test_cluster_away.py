"""A cluster that does not answer holds up nobody but its own tenancies."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from fleet.models import Cluster
from provisioning import throttle
from provisioning.models import Tenancy
from reconciling import breaker
from tests import factories
from tests.faults.running import Portal, environment
from tests.faults.tenancies import are_true, cluster_of, wanted
from tests.faults.world import World, served
from tests.remotes import Silent, silent
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
AWAY, WELL = 16, 6
# Longer than a lease: whoever hangs for longer than that must not be taken for dead.
WATCHED = 8.0


@pytest.fixture
def away(tmp_path: Path) -> Iterator[World]:
    """A second cluster, to freeze."""
    with served("dev-eastus", tmp_path / "away") as running:
        yield running


def both(portal: Portal, world: World, away: World, folder: Path) -> None:
    """Give the portal the kubeconfig files of both clusters."""
    for each in (world, away):
        (folder / each.kubeconfig).write_bytes(
            (each.folder / each.kubeconfig).read_bytes()
        )
    portal.environment = environment(folder, kubeconfigs=folder)


def test_tenancies_of_other_clusters_converge_while_one_cluster_hangs(
    portal: Portal, world: World, away: World, tmp_path: Path
) -> None:
    both(portal, world, away, tmp_path)
    frozen, well = cluster_of(away), cluster_of(world)
    waiting = wanted(away, AWAY, on=frozen)
    away.freeze()
    portal.worker(wait=True)
    rows = Tenancy.objects.filter(cluster=frozen)
    wait_until(
        lambda: rows.filter(is_true=False, last_looked_at__isnull=False).exists(),
        what="the first to fail",
    )
    asked = time.monotonic()
    wanted_now = wanted(world, WELL, on=well)
    wait_until(lambda: are_true(wanted_now), what="the others to be true")
    took = time.monotonic() - asked
    logger.info(
        "%d true %.1f s after they were wanted, beside %d on a cluster that hangs",
        WELL,
        took,
        AWAY,
    )
    assert took <= 10
    away.thaw()
    back = time.monotonic()
    wait_until(lambda: are_true(waiting), what="the cluster's own")
    logger.info(
        "%d true %.1f s after their cluster came back", AWAY, time.monotonic() - back
    )


@pytest.fixture
def unheard(portal: Portal, world: World) -> Iterator[Silent]:
    """A Git host that takes connections and says nothing, and a cluster full of teams that follows it."""
    with silent() as host:
        portal.environment = {
            **portal.environment,
            "QM_GIT_HOSTS_ALLOWED": f'["{host.host}"]',
        }
        url = f"https://{host.host}/platform/fleet.git"
        factories.cluster("edge", delivery="git", git_url=url, most_at_once=16)
        yield host


def seconds_to_be_true(world: World, *, on: Cluster) -> float:
    """How long it takes from wanting one more tenancy until it stands."""
    asked = time.monotonic()
    made = wanted(world, 1, on=on)
    wait_until(lambda: are_true(made), what="one more to be true")
    return time.monotonic() - asked


@pytest.mark.parametrize("known", [True, False])
def test_others_are_granted_theirs_at_once_while_a_git_host_is_silent(
    portal: Portal, world: World, unheard: Silent, known: bool
) -> None:
    edge, well = Cluster.objects.get(name="edge"), cluster_of(world)
    if known:
        breaker.open_everywhere(throttle.of(edge), seconds=0, now=timezone.now())
    else:
        Cluster.objects.filter(pk=edge.pk).update(most_at_once=1)
    wanted(world, AWAY, on=edge)
    portal.worker(wait=True)
    wait_until(lambda: unheard.calls > 0, what="a worker to hang")
    began, slowest = time.monotonic(), 0.0
    while time.monotonic() - began < WATCHED:
        slowest = max(slowest, seconds_to_be_true(world, on=well))
    logger.info(
        "the slowest grant took %.1f s; %d hung at once at most", slowest, unheard.most
    )
    assert (slowest <= 5, unheard.most) == (True, 1)


def test_a_cluster_that_is_gone_says_so_and_is_found_again(
    portal: Portal, world: World, away: World, tmp_path: Path
) -> None:
    both(portal, world, away, tmp_path)
    gone = cluster_of(away)
    [tenancy] = wanted(away, 1, on=gone)
    away.popen.kill()
    away.popen.wait()
    portal.worker()
    row = Tenancy.objects.filter(pk=tenancy.pk)
    wait_until(
        lambda: row.filter(is_true=False, last_looked_at__isnull=False).exists(),
        what="it to fail",
    )
    assert row.get().ready["reason"] == "WillTryAgain"
    with served(away.name, away.folder) as back:
        since = time.monotonic()
        both(portal, world, back, tmp_path)  # it has another port now
        wait_until(lambda: are_true([tenancy]), what="the tenancy to be true")
        logger.info("true %.1f s after its cluster came back", time.monotonic() - since)
        assert back.missing(tenancy) == []

"""The pool's worker of production: a process of its pool dies, and the whole of it is told to end by a deployment."""

import logging
import os
import signal
import time

import pytest

from provisioning.models import Tenancy
from tests.faults.running import Portal, Process
from tests.faults.tenancies import are_true, look_at_all, wanted
from tests.faults.world import World
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
AGAIN_SECONDS = 10.0
# The soft window of three seconds, and what ending costs on a busy machine; the pass itself would take 40 s.
END_SECONDS = 10.0


def in_mid_pass(
    portal: Portal, world: World, *, pool: int, hang: float
) -> tuple[Process, Tenancy]:
    """A worker whose pool has begun a pass, of which every further write takes that long."""
    [tenancy] = wanted(world, 1)
    match = {"method": "PATCH", "path_regex": f"/namespaces/{tenancy.namespace}/"}
    before = world.writes()
    world.switch("POST", "faults", match=match, hang=hang, times=100)
    worker = portal.worker(pool=pool)
    portal.clock()
    wait_until(lambda: world.writes() > before, what="the first write")
    return worker, tenancy


def test_a_child_of_the_pool_killed_in_mid_pass_costs_ten_seconds_and_the_worker_goes_on(
    portal: Portal, world: World
) -> None:
    worker, tenancy = in_mid_pass(portal, world, pool=1, hang=3)
    [child] = worker.children()
    os.kill(child, signal.SIGKILL)
    killed = time.monotonic()
    world.switch("DELETE", "faults")
    wait_until(lambda: are_true([tenancy]), what="the pass to be done again")
    took = time.monotonic() - killed
    logger.info("done again %.1f s after the kill", took)
    assert not worker.has_ended
    assert child not in worker.children()
    assert world.missing(tenancy) == []
    after = world.writes()
    look_at_all([tenancy])
    assert world.writes() == after
    assert took <= AGAIN_SECONDS


def test_a_worker_told_to_end_in_a_long_pass_ends_and_another_one_goes_on(
    portal: Portal, world: World
) -> None:
    worker, tenancy = in_mid_pass(portal, world, pool=2, hang=3)
    other = portal.worker(pool=1, wait=True)
    told = time.monotonic()
    worker.stop()
    wait_until(lambda: worker.has_ended, what="the worker to end")
    ended = time.monotonic()
    world.switch("DELETE", "faults")
    wait_until(lambda: are_true([tenancy]), what="the other to finish the pass")
    took = time.monotonic() - ended
    logger.info("ended in %.1f s, true %.1f s later", ended - told, took)
    assert not other.has_ended
    assert world.missing(tenancy) == []
    assert ended - told <= END_SECONDS
    assert took <= AGAIN_SECONDS

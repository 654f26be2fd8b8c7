"""Two workers, a message twice, a message nobody knows: each has one effect or none."""

import logging
import time
from datetime import timedelta
from pathlib import Path

import pytest
from celery import Celery
from django.utils import timezone

from allocations.models import Allocation
from audit.events import Kind
from audit.models import Event
from portal import celery_app
from provisioning.desired.manifests import tenancy_objects
from provisioning.models import Tenancy
from provisioning.tasks import reconcile_tenancy
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.faults.running import Portal
from tests.faults.tenancies import are_true, cluster_of, hide, wanted
from tests.faults.world import World
from tests.planting import Planted
from tests.services.process import wait_until
from tests.services.redis import Redis

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)


def test_one_message_delivered_to_two_workers_is_one_pass(
    portal: Portal, world: World
) -> None:
    workers = [portal.worker(queue=f"copy-{copy}", clock=False) for copy in (1, 2)]
    for worker in workers:
        worker.wait_ready()
    tenancies = wanted(world, 8)
    before = world.writes()
    for tenancy in tenancies:
        for copy in (1, 2):
            reconcile_tenancy.apply_async(args=[tenancy.pk], queue=f"copy-{copy}")
    wait_until(lambda: are_true(tenancies), what="all to be true")
    assert world.writes() - before == sum(
        len(tenancy_objects(t.desired)) for t in tenancies
    )
    assert [world.missing(t) for t in tenancies] == [[]] * len(tenancies)
    told = Event.objects.filter(kind=Kind.TENANCY_CONVERGED).values_list(
        "subject_id", flat=True
    )
    assert sorted(told) == sorted(str(t.pk) for t in tenancies)


def test_a_message_while_another_worker_holds_the_lease_does_nothing(
    portal: Portal, world: World
) -> None:
    [held, other] = wanted(world, 2)
    number = 7
    hide([held, other])
    until = timezone.now() + timedelta(hours=1)
    Tenancy.objects.filter(pk=held.pk).update(lease_no=number, lease_until=until)
    portal.worker(clock=False)
    for tenancy in (held, other):
        reconcile_tenancy.apply_async(args=[tenancy.pk])
    wait_until(lambda: are_true([other]), what="the tenancy behind it")
    held.refresh_from_db()
    assert (held.lease_no, held.lease_until, held.observed_generation) == (
        number,
        until,
        0,
    )
    assert len(world.missing(held)) == len(tenancy_objects(held.desired))
    # No worker holds one for so long: it is given back, so that every promise holds after the test.
    Tenancy.objects.filter(pk=held.pk).update(lease_until=None)


def test_a_worker_that_loses_its_lease_half_way_writes_no_more(
    portal: Portal, world: World
) -> None:
    [tenancy] = wanted(world, 1)
    hide([tenancy])
    match = {
        "method": "PATCH",
        "path_regex": f"/namespaces/{tenancy.namespace}/resourcequotas/",
    }
    world.switch("POST", "faults", match=match, hang=1.5, times=1)
    before = world.writes()
    worker = portal.worker(clock=False)
    reconcile_tenancy.apply_async(args=[tenancy.pk])
    wait_until(lambda: world.writes() >= before + 1, what="the first write")
    rows = Tenancy.objects.filter(pk=tenancy.pk)
    rows.update(lease_no=100)  # as a worker does that takes over
    wait_until(lambda: "lease lost" in worker.log, what="the worker to notice")
    assert world.writes() - before == 2, "the write that hung, and none after it"
    assert rows.values_list("lease_no", "observed_generation", "is_true").get() == (
        100,
        0,
        False,
    )


def test_messages_of_an_unknown_task_or_shape_are_dropped_and_the_worker_goes_on(
    portal: Portal, world: World, redis: Redis, tmp_path: Path
) -> None:
    [tenancy] = wanted(world, 1)
    hide([tenancy])
    stranger = Celery(broker=celery_app.conf.broker_url, set_as_current=False)
    name = reconcile_tenancy.name
    stranger.send_task("provisioning.tasks.removed_last_year", args=[1], queue="odd")
    stranger.send_task(
        name,
        args=[Planted(tmp_path / "code was run")],
        queue="odd",
        serializer="pickle",
    )
    stranger.send_task(name, args=[], queue="odd")
    stranger.send_task(name, args=[tenancy.pk, "of an older version"], queue="odd")
    stranger.send_task(name, kwargs={"tenancy": {"not": "known"}}, queue="odd")
    stranger.send_task(name, args=["no number"], queue="odd")
    stranger.send_task(name, args=[10**9], queue="odd")
    stranger.send_task(name, args=[tenancy.pk], queue="odd")
    stranger.close()
    worker = portal.worker(queue="odd", clock=False)
    wait_until(
        lambda: are_true([tenancy]) or worker.has_ended, what="the message behind them"
    )
    assert not worker.has_ended, worker.log[-3000:]
    with redis.client(int(celery_app.conf.broker_url.rpartition("/")[2])) as client:
        wait_until(
            lambda: not client.hlen("unacked"), what="every message to be done with"
        )
        assert client.llen("odd") == 0
    assert not (tmp_path / "code was run").exists()


def test_two_expiries_at_once_end_an_allocation_once(
    portal: Portal, world: World
) -> None:
    cluster = cluster_of(world)
    [flavor] = cluster.flavors.all()
    [tenancy] = wanted(world, 1, on=cluster)
    member = factories.person(teams=[tenancy.team])
    for _ in range(3):
        factories.allocation(member, tenancy, flavor, days=1)
    now = timezone.now()
    Allocation.objects.update(
        starts_at=now - timedelta(hours=1), until=now, kept_until=now, remind_at=None
    )
    workers = [portal.worker(queue=f"copy-{copy}", clock=False) for copy in (1, 2)]
    for worker in workers:
        worker.wait_ready()
    started = time.monotonic()
    for copy in (1, 2, 1, 2):
        celery_app.send_task("allocations.tasks.expire", queue=f"copy-{copy}")
    wait_until(lambda: not Allocation.objects.live().exists(), what="all to end")
    logger.info("ended in %.2f s", time.monotonic() - started)
    for worker in workers:
        worker.kill()
    assert Event.objects.filter(kind=Kind.ALLOCATION_EXPIRED).count() == 3
    flavor.refresh_from_db()
    assert flavor.allocated == 0
    assert wrong_in_the_books() == []

"""Workers and clocks whose time is wrong, twice there, or gone for a while: nothing ends early, twice or never."""

import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from allocations.models import Allocation, Brake
from audit.events import Kind
from audit.models import Event
from fleet.models import Cluster
from notices.models import Notice
from portal import celery_app
from provisioning.models import Tenancy
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.faults.running import Portal
from tests.faults.tenancies import are_true, cluster_of
from tests.faults.world import World
from tests.services.faketime import wrong_clock
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
# More than may end at once without anybody's looking.
MANY = 12
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def held(world: World, number: int) -> tuple[list[Allocation], list[Tenancy]]:
    """So many teams that hold one GPU each."""
    cluster = cluster_of(world)
    flavor, rows, tenancies = cluster.flavors.get(), [], []
    for _ in range(number):
        tenancy = factories.tenancy(on=cluster)
        rows.append(
            factories.allocation(
                factories.person(teams=[tenancy.team]), tenancy, flavor, days=3
            )
        )
        tenancies.append(tenancy)
    return rows, tenancies


def end(rows: list[Allocation], *, after: timedelta) -> None:
    """Put the end of these so far from now, without a reminder."""
    at = timezone.now() + after
    Allocation.objects.filter(pk__in=[row.pk for row in rows]).update(
        starts_at=at - 100 * HOUR, until=at, kept_until=at, remind_at=None
    )


@pytest.mark.parametrize(
    ("time", "number", "left"),
    [
        ("+10m", 2, 5 * MINUTE),
        ("-10m", 2, 5 * MINUTE),
        ("+1d", MANY, 12 * HOUR),
        # The night in which two o'clock comes twice; so far back that all days are other days.
        ("@2026-10-25 02:59:50", 2, 12 * HOUR),
    ],
)
def test_a_worker_and_a_clock_that_go_wrong_end_what_is_due_and_nothing_else(
    portal: Portal, world: World, time: str, number: int, left: timedelta
) -> None:
    [due, *later], tenancies = held(world, number + 1)
    end(later, after=left)
    end([due], after=-MINUTE)
    began = timezone.now()
    portal.worker(wait=True, wrong={**wrong_clock(time), "TZ": "Europe/Berlin"})
    ended = Allocation.objects.filter(pk=due.pk, ended_at__isnull=False)
    wait_until(
        lambda: ended.exists() and are_true(tenancies),
        what="the one that is due to end",
    )
    assert Allocation.objects.live().count() == number, (
        "nothing else is due by the database's clock"
    )
    assert not Brake.objects.exists()
    done = timezone.now()
    moments = [
        ended.get().ended_at,
        *Event.objects.filter(at__gt=done).values_list("at", flat=True),
    ]
    moments += Tenancy.objects.values_list("last_looked_at", flat=True)
    moments += Event.objects.filter(kind=Kind.ALLOCATION_EXPIRED).values_list(
        "at", flat=True
    )
    assert [
        at
        for at in moments
        if at is None or not began - 2 * MINUTE < at < done + MINUTE
    ] == []
    assert wrong_in_the_books() == []


def test_two_clocks_end_and_tell_everything_once(portal: Portal, world: World) -> None:
    rows, tenancies = held(world, 3)
    Allocation.objects.update(remind_at=timezone.now() - MINUTE)
    due = rows[0]
    end([due], after=-MINUTE)
    clocks = [portal.clock(), portal.clock()]
    portal.worker(pool=2)
    live = Allocation.objects.live()
    wait_until(lambda: live.count() == 2 and are_true(tenancies), what="the end")
    wait_until(
        lambda: all("Sending due task" in clock.log for clock in clocks),
        what="both clocks to ring",
    )
    for _ in range(3):
        for name in (
            "allocations.tasks.expire",
            "allocations.tasks.remind",
            "provisioning.tasks.sweep",
        ):
            celery_app.send_task(name)
    wait_until(
        lambda: not live.filter(remind_at__lte=timezone.now()).exists(),
        what="the reminders",
    )
    assert Event.objects.filter(kind=Kind.ALLOCATION_EXPIRED).count() == 1
    assert due.flavor is not None
    due.flavor.refresh_from_db()
    assert due.flavor.allocated == 2
    told = list(
        Notice.objects.values_list(
            "kind", "subject_type", "subject_id", "person", "channel"
        )
    )
    assert len(told) == len(set(told))
    assert wrong_in_the_books() == []


def wait_for_a_look_at_the_cluster(what: str) -> None:
    """Send the worker a task, and wait until it is done: so are those that it had before."""
    seen = timezone.now()
    celery_app.send_task("provisioning.tasks.look_at_clusters")
    wait_until(Cluster.objects.filter(looked_at__gt=seen).exists, what=what)


def test_what_fell_due_while_no_clock_ran_is_done_once_when_one_runs_again(
    portal: Portal, world: World
) -> None:
    factories.person("Priya", Role.PLATFORM_LEAD)
    rows, tenancies = held(world, 3)
    worker, clock = portal.worker(pool=2), portal.clock()
    wait_until(lambda: are_true(tenancies), what="all to be true")
    clock.kill()
    # What the clock rang for before its death may still wait for the worker.
    wait_for_a_look_at_the_cluster("what was sent before to be done")
    end(rows, after=-MINUTE)
    wait_for_a_look_at_the_cluster("the worker to be at work")
    assert Allocation.objects.live().count() == 3, "nobody rang"
    portal.clock()
    wait_until(
        lambda: not Allocation.objects.live().exists(), what="what fell due to end"
    )
    assert not worker.has_ended
    assert Event.objects.filter(kind=Kind.ALLOCATION_EXPIRED).count() == 3
    wait_until(lambda: are_true(tenancies), what="the cluster to follow")
    assert wrong_in_the_books() == []

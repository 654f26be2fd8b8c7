"""A tenancy that ends or fills every process that works on it: given up after some tries, and nobody else waits."""

import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.db.models import Q
from django.utils import timezone

from accounts.roles import Role
from audit.models import Event
from notices.models import Notice
from provisioning.actions import look_again
from provisioning.enqueue import enqueue
from provisioning.models import Tenancy
from reconciling.controller import MAX_UNFINISHED
from tests import factories
from tests.faults.running import Portal, Process
from tests.faults.tenancies import are_true, cluster_of, hide, wanted
from tests.faults.world import World
from tests.services.process import is_alive, wait_until

pytestmark = pytest.mark.slow

# What a pool's process may have beyond what it has when it is counted: ample for all but one thing. The answer is 12 MB
# to read and 260 MB once it is understood, which happens in one call that lets no other thread run. What the process
# has just then, and frees a moment later, is room as well: half as large an answer fitted once.
ROOM = 96 * 2**20
# Seconds after which a sweep would ring again.
AGAIN = 5.0
HUGE = f"[{'[],' * 4_000_000}[]]"


def given_up(poison: Tenancy, ended: Callable[[int], None]) -> None:
    """Try it as often as it is tried, `ended` waiting for the end of each try; no time is spent between them."""
    rows = Tenancy.objects.filter(pk=poison.pk)
    rung = 0.0

    def has_begun(number: int) -> bool:
        nonlocal rung
        # Nobody sweeps here: a try that is over may still have said that it lives, after its lease was taken from it,
        # and who has no memory may lose a message.
        held = rows.filter(unfinished=number - 1, lease_until__gt=timezone.now())
        if held.update(lease_until=timezone.now()) or time.monotonic() - rung > AGAIN:
            enqueue(poison.pk)
            rung = time.monotonic()
        return rows.filter(Q(unfinished=number) | Q(parked_at__isnull=False)).exists()

    for number in range(1, MAX_UNFINISHED + 2):
        rung = 0.0
        wait_until(partial(has_begun, number), what=f"try {number}")
        if rows.get().parked_at is not None:
            return
        ended(number)
        rows.update(lease_until=timezone.now(), requeue_at=timezone.now())


def is_told_once(poison: Tenancy, lead: int) -> None:
    """One event, and one notice to each platform lead."""
    assert (
        Event.objects.filter(kind="tenancy.parked", subject_id=str(poison.pk)).count()
        == 1
    )
    assert list(
        Notice.objects.filter(kind="tenancy_parked").values_list("person", flat=True)
    ) == [lead]


def test_what_ends_every_worker_is_parked_and_the_queue_moves_on(
    portal: Portal, world: World
) -> None:
    lead = factories.person("", Role.PLATFORM_LEAD)
    [poison, *others] = wanted(world, 4)
    hide([poison])
    worker = portal.worker(
        pool=1, failpoint=f"provision.write/{poison.pk}:always", wait=True
    )
    portal.clock()
    dead = list[int]()

    def ended(number: int) -> None:
        wait_until(
            lambda: worker.log.count("exited with 'exitcode 137'") == number,
            what=f"the end of process {number}",
        )
        dead.append(number)

    given_up(poison, ended)
    assert len(dead) == MAX_UNFINISHED
    is_told_once(poison, lead.pk)
    wait_until(lambda: are_true(others), what="the others to be true")
    assert not worker.has_ended
    worker.kill()
    portal.worker(pool=1, wait=True)
    look_again(poison, by=lead, now=timezone.now())
    wait_until(
        lambda: are_true([poison]),
        what="the parked one to be true once the cause is gone",
    )
    assert world.missing(poison) == []


def make_true(tenancies: list[Tenancy]) -> None:
    """Have the running worker do its work."""
    for tenancy in tenancies:
        enqueue(tenancy.pk)
    wait_until(lambda: are_true(tenancies), what="a tenancy to be true")


def only_child(worker: Process) -> int:
    """The one process of its pool."""
    wait_until(lambda: len(worker.children()) == 1, what="one process in the pool")
    return worker.children()[0]


def give_little_memory(child: int) -> None:
    """Let a process have no more memory than it has, and some room."""
    pages = int(Path(f"/proc/{child}/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.prlimit(child, resource.RLIMIT_AS, (most, most))


def test_what_exhausts_the_memory_is_parked_and_the_same_process_serves_the_others(
    portal: Portal, world: World
) -> None:
    lead, cluster = factories.person("", Role.PLATFORM_LEAD), cluster_of(world)
    [poison] = wanted(world, 1, on=cluster)
    hide([poison])
    worker = portal.worker(pool=1, wait=True)
    child = only_child(worker)
    # Its threads and connections are there before its memory is counted.
    make_true(wanted(world, 1, on=cluster))
    give_little_memory(child)
    # Of the poison alone: another tenancy's pass would use up an answer, and one try would end well.
    where = {"method": "GET", "path_regex": f"^/api/v1/namespaces/{poison.namespace}"}
    world.switch(
        "POST", "faults", match=where, status=200, body=HUGE, times=MAX_UNFINISHED
    )
    given_up(
        poison,
        lambda number: wait_until(
            lambda: worker.log.count('"event": "out of memory"') == number,
            what=f"memory to be out {number} times",
        ),
    )
    world.switch("DELETE", "faults")
    is_told_once(poison, lead.pk)
    make_true(wanted(world, 1, on=cluster))
    assert is_alive(child)
    assert worker.children() == [child]
    look_again(poison, by=lead, now=timezone.now())
    wait_until(
        lambda: are_true([poison]),
        what="the parked one to be true once the cause is gone",
    )

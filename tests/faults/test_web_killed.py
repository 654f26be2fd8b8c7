"""A web process that dies around its commit: the client repeats its call elsewhere, and has asked once."""

import logging
import time
from datetime import timedelta
from typing import Any

import pytest
import requests
from django.utils import timezone

from accounts.models import User
from allocations.models import Allocation, LedgerEntry
from approvals.models import Request
from audit.models import Event
from provisioning.models import Tenancy
from tests import factories
from tests.faults.calling import Caller, caller
from tests.faults.running import Portal
from tests.faults.tenancies import are_true, wanted
from tests.faults.world import World
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
PICKED_UP_SECONDS = 5.0
KEY = "once"


def two_doors(portal: Portal, person: User, failpoint: str) -> tuple[Caller, Caller]:
    """The same person at a web server whose processes die at a point, and at one that is well."""
    portal.web(workers=1, failpoint=failpoint)
    dying = caller(person, portal.url)
    portal.web(workers=1)
    return dying, Caller(portal.url, dying.secret)


def member_of(tenancy: Tenancy) -> User:
    """Somebody who may ask for the team."""
    person = factories.person()
    factories.join(tenancy.team, person)
    return person


def ask(by: Caller, tenancy: Tenancy) -> requests.Response:
    """Ask for a GPU as a script does, always with the same key and body."""
    until = timezone.now().replace(
        hour=0, minute=0, second=0, microsecond=0
    ) + timedelta(days=3)
    flavor = tenancy.cluster.flavors.get()
    body: dict[str, Any] = {
        "team": tenancy.team.slug,
        "flavor": f"{tenancy.cluster.name}/{flavor.name}",
        "gpus": 1,
        "purpose": "training",
        "until": until.isoformat(),
    }
    return by.post("requests/", body, key=KEY)


def counts() -> dict[str, int]:
    """How much there is of what an ask leaves."""
    return {
        table.__name__: table._default_manager.count()
        for table in (Request, Allocation, LedgerEntry, Event)
    }


@pytest.mark.parametrize("point", ["request.submit", "allocation.issue"])
def test_a_web_process_killed_before_its_commit_leaves_nothing_and_the_same_call_is_done_elsewhere(
    portal: Portal, world: World, point: str
) -> None:
    [tenancy] = wanted(world, 1)
    dying, well = two_doors(portal, member_of(tenancy), f"{point}:always")
    before = counts()
    with pytest.raises(requests.ConnectionError):
        ask(dying, tenancy)
    assert counts() == before
    answer = ask(well, tenancy)
    assert (answer.status_code, "Idempotency-Replayed" in answer.headers) == (
        201,
        False,
    )
    assert (Request.objects.count(), Allocation.objects.count()) == (1, 1)


def test_a_web_process_killed_between_commit_and_ring_has_done_it_and_the_sweep_picks_it_up(
    portal: Portal, world: World
) -> None:
    [tenancy] = wanted(world, 1)
    portal.worker(pool=1, wait=True)
    portal.clock()
    dying, well = two_doors(portal, member_of(tenancy), "enqueue.committed:always")
    wait_until(lambda: are_true([tenancy]), what="the team to be on the cluster")
    with pytest.raises(requests.ConnectionError):
        ask(dying, tenancy)
    killed = time.monotonic()
    left = counts()
    assert (left["Request"], left["Allocation"]) == (1, 1)
    answer = ask(well, tenancy)
    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (201, "true")
    assert answer.json()["id"] == Request.objects.get().pk
    rows = Tenancy.objects.filter(pk=tenancy.pk)
    wait_until(lambda: rows.get().lease_no > 1, what="the sweep to pick it up")
    took = time.monotonic() - killed
    wait_until(lambda: are_true([tenancy]), what="it to be true")
    logger.info(
        "picked up %.1f s after the kill, true after %.1f s",
        took,
        time.monotonic() - killed,
    )
    assert (Request.objects.count(), Allocation.objects.count()) == (1, 1)
    assert world.missing(tenancy) == []
    assert took <= PICKED_UP_SECONDS

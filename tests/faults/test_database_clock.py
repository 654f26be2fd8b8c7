"""The one clock that everybody goes by jumps a day ahead: nothing ends before a platform lead has looked."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts.roles import Role
from allocations.models import Allocation, Brake
from notices.kinds import NoticeKind
from notices.models import Notice
from portal import celery_app
from tests import factories
from tests.faults.databases import broken_books, hurt, let_go
from tests.faults.running import Portal, environment
from tests.services.faketime import wrong_clock
from tests.services.postgres import Postgres
from tests.services.process import wait_until

NAME = "jumped"
# More than may end at once without anybody's looking.
MANY = 12

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def _django_db_helper(django_db_setup: None) -> None:
    """In the place of pytest-django's own, which would empty tables of another database."""


@pytest.fixture
def server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Postgres]:
    """A PostgreSQL of this test's own with the portal's tables."""
    with django_db_blocker.unblock(), hurt(NAME) as own:
        yield own


@pytest.fixture
def portal(server: Postgres, tmp_path: Path) -> Iterator[Portal]:
    """An installation on it, whose clusters nobody can reach."""
    installation = Portal(
        tmp_path / "portal", environment(tmp_path, kubeconfigs=tmp_path)
    )
    try:
        yield installation
    finally:
        installation.kill()


def set_clock(server: Postgres, time: str) -> None:
    """Start the database anew with its clock off by this much; empty is right."""
    let_go()
    server.stop()
    server.environment = wrong_clock(time) if time else {}
    server.start()


def expire(portal: Portal) -> None:
    """Have a worker end what is due, and wait until it has looked."""
    worker = portal.worker(clock=False, queue=f"bell-{len(portal.running)}")
    worker.wait_ready()
    celery_app.send_task(
        "allocations.tasks.expire", queue=f"bell-{len(portal.running) - 1}"
    )
    wait_until(
        lambda: "allocations.tasks.expire" in worker.log and "succeeded" in worker.log,
        what="a sweep",
    )
    worker.kill()


def test_a_jump_of_the_databases_clock_ends_nothing_before_a_lead_has_looked(
    server: Postgres, portal: Portal
) -> None:
    lead = factories.person("Priya", Role.PLATFORM_LEAD)
    flavor = factories.flavor(factories.cluster())
    for _ in range(MANY):
        tenancy = factories.tenancy(on=flavor.cluster)
        factories.allocation(
            factories.person(teams=[tenancy.team]), tenancy, flavor, days=3
        )
    at = timezone.now() + timedelta(hours=12)
    Allocation.objects.update(until=at, kept_until=at, remind_at=None)
    set_clock(server, "+1d")
    expire(portal)
    assert Allocation.objects.live().count() == MANY
    assert Brake.objects.open().get().due == MANY
    assert (
        Notice.objects.get(kind=NoticeKind.ENDS_HELD_BACK, person=lead).subject_type
        == "brake"
    )
    set_clock(server, "")
    expire(portal)
    assert Allocation.objects.live().count() == MANY
    assert broken_books() == []

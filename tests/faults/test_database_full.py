"""A database whose disk is full: nothing is half granted, everybody is told, reads go on, and so does all with room."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from allocations.models import Allocation
from approvals.models import Request
from audit.models import Event
from tests.calling import Caller
from tests.faults.databases import address, broken_books, moved
from tests.faults.small_disk import SmallDisk, why_not
from tests.faults.test_database_away import _django_db_helper, ask, caller, is_told
from tests.services.plugin import lent

__all__ = ["_django_db_helper", "caller"]

NAME = "full"
MOST = 400

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SmallDisk]:
    """A PostgreSQL whose tables lie on a disk of a few megabytes."""
    if because := why_not(tmp_path_factory.mktemp("disk")):
        pytest.skip(f"A small disk for the database cannot be mounted here: {because}")
    with django_db_blocker.unblock(), lent(SmallDisk) as own:
        own.execute(f"CREATE TABLESPACE small LOCATION '{own.disk}'")
        own.copy(address(), NAME, tablespace="small")
        with moved(own, NAME):
            yield own


def test_a_full_disk_refuses_changes_in_whole_and_lets_everybody_read(
    server: SmallDisk, caller: Caller
) -> None:
    granted = 0
    server.fill()
    try:
        # Pages that have room take a few more.
        while (answer := ask(caller)).status_code == 201 and granted < MOST:
            granted += 1
        assert is_told(answer, "database_full"), answer.content
        assert answer["Retry-After"] == "30"
        before = Event.objects.count()
        assert is_told(ask(caller, "waits"), "database_full")
        assert (Request.objects.count(), Event.objects.count()) == (granted, before)
        assert caller.get("me/").status_code == 200
        assert len(caller.get("requests/").json()["results"]) == min(granted, 50)
    finally:
        server.make_room()
    assert ask(caller, "waits").status_code == 201
    assert Request.objects.count() == granted + 1
    assert Allocation.objects.count() <= granted + 1
    assert broken_books() == []

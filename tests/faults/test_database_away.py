"""What is answered while a database is away or has no place left, and how soon all goes on, in this process."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from approvals.models import Request
from tests import factories
from tests.calling import Caller
from tests.faults.databases import (
    broken_books,
    ended_backends,
    fall_over,
    hurt,
    let_go,
    no_slot_left,
)
from tests.services.postgres import Postgres
from tests.services.process import wait_until

NAME = "away"
IDLE = 6
SOON = 0.8

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def _django_db_helper(django_db_setup: None) -> None:
    """In the place of pytest-django's own, which would empty tables of another database."""


@pytest.fixture(scope="module")
def server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Postgres]:
    """A PostgreSQL of this module's own with the portal's tables."""
    with django_db_blocker.unblock(), hurt(NAME) as own:
        yield own


@pytest.fixture
def caller(server: Postgres) -> Caller:
    """Somebody who may ask for GPUs."""
    flavor = factories.flavor(factories.cluster())
    team = factories.team()
    factories.join(team, team.created_by)
    factories.tenancy(team, flavor.cluster)
    return Caller(team.created_by)


@pytest.fixture
def impatient(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody waits long for a connection."""
    options: Any = connection.settings_dict["OPTIONS"]
    monkeypatch.setitem(options["pool"], "timeout", SOON)
    let_go()
    yield
    let_go()


def ask(caller: Caller, key: str = "") -> Any:
    """Ask for a GPU as a script does."""
    assert caller.user is not None
    tenancy = caller.user.teams[0].tenancies.get()
    flavor = tenancy.cluster.flavors.get()
    until = timezone.now().replace(
        hour=0, minute=0, second=0, microsecond=0
    ) + timedelta(days=3)
    body = {
        "team": tenancy.team.slug,
        "flavor": f"{tenancy.cluster.name}/{flavor.name}",
        "gpus": 1,
        "purpose": "training",
        "reason": "Find out whether this is kept.",
        "until": until.isoformat(),
    }
    return caller.post("requests/", body, key=key)


def is_told(answer: Any, code: str) -> bool:
    """Whether an answer is a problem of this kind, with a time to come back."""
    is_problem = (
        answer["Content-Type"] == "application/problem+json"
        and answer.json()["status"] == 503
    )
    return (
        answer.status_code == 503
        and is_problem
        and answer.json()["code"] == code
        and int(answer["Retry-After"]) > 0
    )


@pytest.mark.usefixtures("impatient")
def test_a_database_that_fell_over_is_used_at_once_when_it_is_back(
    server: Postgres, caller: Caller
) -> None:
    assert caller.get("me/").status_code == 200
    let_go()
    server.stop_at_once()
    try:
        assert is_told(caller.get("me/"), "busy")
    finally:
        server.start()
    wait_until(lambda: caller.get("me/").status_code == 200, what="a read")
    assert ask(caller).status_code == 201
    assert broken_books() == []


def test_a_read_whose_connection_was_ended_is_answered_all_the_same(
    server: Postgres, caller: Caller
) -> None:
    assert caller.get("me/").status_code == 200
    ended_backends(server, database=NAME)
    assert caller.get("me/").status_code == 200


def test_many_dead_connections_cost_no_more_than_one(
    server: Postgres, caller: Caller
) -> None:
    together = threading.Barrier(IDLE)

    def use() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            together.wait(10)
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(IDLE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fall_over(server)
    began = time.monotonic()
    assert caller.get("me/").status_code == 200
    assert time.monotonic() - began < 1


@pytest.mark.usefixtures("impatient")
def test_without_a_connection_left_everybody_is_told_so(
    server: Postgres, caller: Caller
) -> None:
    with no_slot_left(server, NAME):
        assert is_told(caller.get("me/"), "busy")
        assert is_told(caller.post("requests/", {}, key="once"), "busy")
        caller.client.cookies["qm_session"] = "somebody"
        page = caller.client.get("/")
        assert (page.status_code, page["Retry-After"]) == (503, "2")
        assert "Not possible just now" in page.content.decode()
        assert caller.client.get("/healthz").status_code == 200
        assert caller.client.get("/readyz").status_code == 503
    wait_until(lambda: caller.get("me/").status_code == 200, what="a read")
    before = Request.objects.count()
    assert ask(caller, "once").status_code == 201
    assert Request.objects.count() == before + 1
    assert broken_books() == []

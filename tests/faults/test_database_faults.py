"""What a database does to a portal that works: it ends connections, falls over, has no place left, and holds rows."""

import json
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from provisioning.models import Tenancy
from tests import factories
from tests.faults.calling import at_once
from tests.faults.databases import (
    Answer,
    Person,
    asked_by,
    broken_books,
    ended_backends,
    fall_over,
    hurt,
    no_slot_left,
    under_load,
)
from tests.faults.running import Portal, environment
from tests.faults.tenancies import are_true, cluster_of
from tests.faults.world import World
from tests.services.postgres import Postgres
from tests.services.process import wait_until

NAME = "hurt"
READS = ("me/", "requests/", "allocations/")
PAGES = ("/", "/requests/")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture
def _django_db_helper(django_db_setup: None) -> None:
    """In the place of pytest-django's own: a working portal's tables are not emptied between tests."""


@pytest.fixture(scope="module")
def server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Postgres]:
    """A PostgreSQL of this module's own with few connections, and the portal's tables in it."""
    with django_db_blocker.unblock(), hurt(NAME) as own:
        yield own


@pytest.fixture(scope="module")
def portal(
    server: Postgres, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Portal]:
    """Two web processes and a worker with its clock on that server: the same ones live through every fault."""
    world.clear()
    folder = tmp_path_factory.mktemp("portal")
    installation = Portal(folder, environment(folder, kubeconfigs=world.folder))
    try:
        worker = installation.worker()
        installation.web(workers=2)
        worker.wait_ready()
        yield installation
    finally:
        installation.kill()


@pytest.fixture(scope="module")
def place(portal: Portal, world: World) -> Person:
    """The first person, of the team that brought the cluster."""
    cluster = cluster_of(world)
    return Person(portal.url, factories.tenancy(on=cluster), cluster.flavors.get())


@pytest.fixture
def person(place: Person, portal: Portal) -> Person:
    """Somebody new, of a team of their own."""
    return Person(portal.url, factories.tenancy(on=place.flavor.cluster), place.flavor)


def comes_true(person: Person, *, seconds: float = 30) -> None:
    """Wait until a worker has made true what the team holds."""
    wait_until(
        lambda: are_true([person.tenancy]),
        what="the tenancy to come true",
        seconds=seconds,
    )


def is_a_problem(answer: Answer, *codes: str) -> bool:
    """Whether it is a problem of one of these codes, with a time to come back."""
    problem = json.loads(answer.body)
    named = answer.headers["Content-Type"] == "application/problem+json"
    return (
        answer.is_told
        and named
        and problem["status"] == 503
        and problem["code"] in codes
    )


def test_connections_that_the_server_ends_cost_no_reader_anything_and_no_change_half_of_it(
    server: Postgres, person: Person
) -> None:
    keys: dict[str, Answer] = {}

    def ask() -> Answer:
        key = f"key-{len(keys)}"
        keys[key] = person.ask(key)
        return keys[key]

    reads = [lambda path=path: person.api(path) for path in READS]
    pages = [lambda path=path: person.page(path) for path in PAGES]
    with under_load([*reads, *pages]) as reading, under_load([ask]) as writing:
        for _ in range(5):
            reading.more(15)
            assert ended_backends(server, database=NAME)
        reading.more(20)
    connection.close()
    assert (reading.broken, writing.broken) == ([], [])
    assert reading.other_than(200) == []
    assert set(writing.statuses) <= {201, 503}
    refused = [answer for answer in writing.answers if answer.status == 503]
    assert all(is_a_problem(answer, "database_away", "busy") for answer in refused)
    for key in keys:
        assert person.ask(key).status == 201
    assert asked_by(person) == len(keys)
    comes_true(person)
    assert broken_books() == []


def test_a_server_that_falls_over_is_used_again_as_soon_as_it_is_back(
    server: Postgres, person: Person
) -> None:
    reads = [lambda path=path: person.api(path) for path in READS]
    with (
        under_load([*reads, lambda: person.page("/")]) as reading,
        under_load([person.ask]) as writing,
    ):
        reading.more(10)
        back = fall_over(server)
        wait_until(
            lambda: any(a.began > back and a.status == 201 for a in writing.answers),
            what="a change",
            seconds=5,
        )
        reading.more(20)
    assert (reading.broken, writing.broken) == ([], [])
    assert {answer.status for answer in reading.answers if answer.began > back} == {200}
    assert all(answer.status == 200 or answer.is_told for answer in reading.answers)
    assert all(answer.status == 201 or answer.is_told for answer in writing.answers)
    answered = [
        answer.ended
        for answer in reading.answers
        if answer.ended > back and answer.status == 200
    ]
    assert min(answered) - back < 5
    assert asked_by(person) >= writing.statuses[201]
    comes_true(person)
    assert broken_books() == []


def test_quiet_processes_answer_at_once_after_a_restart_however_many_connections_died(
    server: Postgres, person: Person
) -> None:
    with under_load([lambda: person.page("/")] * 8) as reading:
        reading.more(40)
    fall_over(server)
    answers = [person.api("me/") for _ in range(6)] + [person.ask()]
    assert [answer.status for answer in answers] == [200] * 6 + [201]
    assert max(answer.ended - answer.began for answer in answers) < 3


def test_without_a_connection_left_everybody_is_told_and_all_goes_on_once_there_are_some(
    server: Postgres, person: Person
) -> None:
    with no_slot_left(server, NAME):
        answers = at_once(
            [
                lambda: person.api("me/"),
                lambda: person.ask("late"),
                lambda: person.page("/"),
            ]
        )
        assert is_a_problem(answers[0], "busy", "database_away")
        assert is_a_problem(answers[1], "busy", "database_away")
        assert answers[2].is_told
        assert "Not possible just now" in answers[2].body
        assert max(answer.ended - answer.began for answer in answers) < 15
    wait_until(lambda: person.api("me/").status == 200, what="a read")
    assert person.ask("late").status == 201
    assert asked_by(person) == 1
    comes_true(person)
    assert broken_books() == []


def test_a_row_that_somebody_holds_makes_nobody_wait_long_and_no_queue(
    server: Postgres, person: Person
) -> None:
    comes_true(person)
    with psycopg.connect(server.dsn(NAME)) as other:
        other.execute("SELECT 1 FROM fleet_flavor FOR UPDATE")
        with (
            under_load([person.ask] * 6) as asking,
            under_load([lambda: person.page("/")]) as reading,
        ):
            asking.more(6)
            reading.more(10)
        other.rollback()
    assert all(is_a_problem(answer, "busy") for answer in asking.answers)
    # Several rows may be waited for, one after the other, when those before have given up; never as long as it is held.
    assert max(answer.ended - answer.began for answer in asking.answers) < 20
    assert reading.other_than(200) == []
    assert asked_by(person) == 0
    assert person.ask().status == 201
    comes_true(person)
    assert Tenancy.objects.get(pk=person.tenancy.pk).generation > 1
    assert broken_books() == []

"""A web process that dies around its commit, a database that goes away, and a row that somebody holds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from allocations.models import Allocation, LedgerEntry
from approvals.models import Request
from audit.models import Event
from checks.invariants import check
from provisioning.models import Tenancy
from reconciling import failpoints
from tests import factories
from tests.calling import Caller
from tests.concurrency.together import waiting_no_longer

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """The process is gone: nothing catches this, and nothing tidies up after it."""


def die() -> None:
    """End the process as far as it can tell: its connection is cut, and nothing of it goes on."""
    connection.close()
    raise Killed


@pytest.fixture
def caller() -> Caller:
    """Somebody who may ask for GPUs."""
    flavor = factories.flavor(factories.cluster("training"), "a100")
    team = factories.team("Vision")
    factories.join(team, team.created_by)
    factories.tenancy(team, flavor.cluster)
    return Caller(team.created_by)


@pytest.fixture
def strike_at(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Do something at the first pass of a named point."""

    def strike(point: str, what: Callable[[], None]) -> None:
        failpoints.forget()
        monkeypatch.setenv("FAILPOINT", point)
        monkeypatch.setattr(failpoints, "strike", what)

    yield strike
    failpoints.forget()


def ask(caller: Caller, key: str) -> Any:
    """Ask for a GPU as a script does."""
    until = timezone.now().replace(
        hour=0, minute=0, second=0, microsecond=0
    ) + timedelta(days=3)
    body = {
        "team": "vision",
        "flavor": "training/a100",
        "gpus": 1,
        "purpose": "training",
    }
    return caller.post("requests/", body | {"until": until.isoformat()}, key=key)


def counts() -> dict[str, int]:
    """How much there is of what an ask leaves."""
    tables = (Request, Allocation, LedgerEntry, Event)
    return {table.__name__: table._default_manager.count() for table in tables}


def broken() -> list[str]:
    """Every promise of the books that does not hold; what is due by now is due because nobody works here."""
    found = check(now=timezone.now(), clusters=False).findings
    return [str(finding) for finding in found if finding.promise != "I7"]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["request.submit", "allocation.issue"])
def test_a_web_process_that_dies_before_its_commit_leaves_nothing_and_the_call_may_be_repeated(
    caller: Caller, strike_at: Callable[..., None], point: str
) -> None:
    before = counts()
    strike_at(point, die)
    with pytest.raises(Killed):
        ask(caller, "once")
    assert counts() == before
    assert ask(caller, "once").status_code == 201
    assert (Request.objects.count(), Allocation.objects.count()) == (1, 1)
    assert broken() == []


def test_a_web_process_that_dies_after_its_commit_has_done_it_and_the_same_call_is_answered(
    caller: Caller, strike_at: Callable[..., None]
) -> None:
    strike_at("enqueue.committed", die)
    with pytest.raises(Killed):
        ask(caller, "once")
    again = ask(caller, "once")
    assert (again.status_code, again["Idempotency-Replayed"]) == (201, "true")
    assert (Request.objects.count(), Allocation.objects.count()) == (1, 1)
    # Nobody was rung; the next sweep finds it without.
    assert (
        Tenancy.objects.due(timezone.now()).filter(allocations__isnull=False).exists()
    )
    assert broken() == []


def test_a_database_that_ends_the_connection_half_way_leaves_nothing_and_is_asked_again(
    caller: Caller, strike_at: Callable[..., None]
) -> None:
    def cut_off() -> None:
        raw: Any = connection.connection
        with psycopg.connect(raw.info.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [raw.info.backend_pid])

    before = counts()
    strike_at("request.submit", cut_off)
    answer = ask(caller, "once")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    connection.close()
    assert counts() == before
    assert ask(caller, "once").status_code == 201
    assert caller.get("me/").status_code == 200
    assert broken() == []


@contextmanager
def holding(table: str) -> Iterator[None]:
    """Another session has every row of a table and does not let go."""
    raw: Any = connection.connection
    with psycopg.connect(raw.info.dsn) as other:
        other.execute(f"SELECT 1 FROM {table} FOR UPDATE".encode())
        yield
        other.rollback()


@pytest.mark.slow
@pytest.mark.parametrize(
    "table", ["fleet_flavor", "provisioning_tenancy", "audit_head"]
)
def test_a_row_that_somebody_holds_is_answered_with_busy_and_holds_up_no_read(
    caller: Caller, table: str
) -> None:
    before = counts()
    with waiting_no_longer("100ms"), holding(table):
        answer = ask(caller, "once")
        assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (
            503,
            "busy",
            "2",
        )
        assert caller.get("me/").status_code == 200
        assert counts() == before
    assert ask(caller, "once").status_code == 201
    assert broken() == []

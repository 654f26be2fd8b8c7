"""Every "never", "always" and "only one" is held by the database itself, whoever writes and on either database."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from audit.models import Event
from tests import constraints
from tests.constraints import ALSO, ATTACKS, NAMED, UNIQUE, World, refusal, world
from tests.shared_rows import shared

ROOT = Path(__file__).parents[2]
# Two people with one object id break the narrower rule first.
OTHER_NAMES = {"one_account_per_person": "accounts_user_oid"}


made = shared(world)


def test_every_named_constraint_and_unique_field_is_attacked() -> None:
    assert constraints.named_constraints() == set(NAMED)
    assert constraints.unique_fields() == set(UNIQUE)


@pytest.mark.parametrize("name", NAMED)
def test_postgres_holds(made: World, name: str) -> None:
    said = refusal(name, made)
    assert f'constraint "{name}"' in said or OTHER_NAMES.get(name, name) in said


@pytest.mark.parametrize("name", [*UNIQUE, *ALSO])
def test_postgres_refuses(made: World, name: str) -> None:
    assert refusal(name, made)


def test_sqlite_runs_the_same_migrations_and_holds_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.constraints"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["vendor"] == "sqlite"
    assert set(found["answers"]) == set(ATTACKS)
    assert [name for name, said in found["answers"].items() if not said] == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_event SET actor_name = 'x'",
        "DELETE FROM audit_event",
        "TRUNCATE audit_event",
        "TRUNCATE audit_event CASCADE",
        "UPDATE audit_event SET seq = seq + 1000",
    ],
)
def test_postgres_never_changes_an_event(made: World, statement: str) -> None:
    before = list(Event.objects.values())
    with (
        pytest.raises(DatabaseError, match="audit events are never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert list(Event.objects.values()) == before


@pytest.mark.parametrize(
    "table",
    [
        "approvals_decision",
        "approvals_evaluation",
        "policy_policyversion",
        "approvals_revision",
        "approvals_comment",
        "allocations_hold",
    ],
)
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_records_of_decisions_and_money_are_never_changed(made: World, table: str, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        assert cursor.fetchone() != (0,)
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE"
        )  # a table with checks still to come cannot be truncated
        with pytest.raises(DatabaseError, match="are never changed"), transaction.atomic():
            cursor.execute(statement.format(table))


def test_the_model_refuses_too(made: World) -> None:
    event = Event.objects.latest("seq")
    with pytest.raises(TypeError, match="never changed"):
        event.save()
    with pytest.raises(TypeError, match="never deleted"):
        event.delete()

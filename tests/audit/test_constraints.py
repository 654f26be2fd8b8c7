"""Every "never", "always" and "only one" is held by the database itself, whoever writes and on either database."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

from audit.models import Event
from tests import constraints
from tests.constraints import ALSO, ATTACKS, NAMED, UNIQUE, held_in_turn, refusal, world

ROOT = Path(__file__).parents[2]
TO_THE_CENT = ["0.70", "0.80", "0.10", "0.00"]
# Two people with one object id break the narrower rule first.
OTHER_NAMES = {"one_account_per_person": "accounts_user_oid"}


def test_every_named_constraint_and_unique_field_is_attacked() -> None:
    assert constraints.named_constraints() == set(NAMED)
    assert constraints.unique_fields() == set(UNIQUE)


@pytest.mark.slow
@pytest.mark.django_db
def test_postgres_holds() -> None:
    made = world()
    said = {name: refusal(name, made) for name in ATTACKS}
    # A field or a rule without a name of its own is refused in words of its own.
    assert [name for name in [*UNIQUE, *ALSO] if not said[name]] == []
    other = {
        name: said[name] for name in NAMED if f'constraint "{name}"' not in said[name]
    }
    assert set(other) <= set(OTHER_NAMES)
    assert [name for name in other if OTHER_NAMES[name] not in other[name]] == []


@pytest.mark.slow
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
    assert found["held"] == TO_THE_CENT


@pytest.mark.django_db
def test_postgres_adds_money_to_the_cent() -> None:
    assert held_in_turn(world()) == TO_THE_CENT


@contextmanager
def refused(because: str) -> Iterator[CursorWrapper]:
    """A cursor whose statement the database refuses for a reason, and takes back."""
    with (
        pytest.raises(DatabaseError, match=because),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        yield cursor


@pytest.mark.django_db
def test_postgres_never_changes_an_event() -> None:
    world()
    before = list(Event.objects.values())
    assert before
    for statement in (
        "UPDATE audit_event SET actor_name = 'x'",
        "DELETE FROM audit_event",
        "TRUNCATE audit_event",
        "TRUNCATE audit_event CASCADE",
        "UPDATE audit_event SET seq = seq + 1000",
    ):
        with refused("audit events are never changed") as cursor:
            cursor.execute(statement)
    assert list(Event.objects.values()) == before


@pytest.mark.django_db
def test_records_of_decisions_and_money_are_never_changed() -> None:
    world()
    # A table with checks still to come cannot be truncated.
    connection.check_constraints()
    for table in (
        "approvals_decision",
        "approvals_evaluation",
        "policy_policyversion",
        "approvals_revision",
        "approvals_comment",
        "allocations_ledgerentry",
    ):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone() != (0,), table
        for statement in (
            "UPDATE {} SET id = id",
            "DELETE FROM {}",
            "TRUNCATE {} CASCADE",
        ):
            with refused("are never changed") as cursor:
                cursor.execute(statement.format(table))


@pytest.mark.django_db
def test_the_model_refuses_too() -> None:
    world()
    event = Event.objects.latest("seq")
    with pytest.raises(TypeError, match="never changed"):
        event.save()
    with pytest.raises(TypeError, match="never deleted"):
        event.delete()

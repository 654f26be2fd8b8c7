"""Each constraint and each trigger of the database, when dropped, lets through what the tests attack it with."""

import pytest
from django.db import connection, transaction

from tests.constraints import NAMED, UNIQUE, refusal, world

pytestmark = pytest.mark.slow

TRIGGERED = (
    "audit_event",
    "approvals_decision",
    "approvals_evaluation",
    "policy_policyversion",
    "allocations_ledgerentry",
)


def drop(name: str) -> bool:
    """Drop a constraint, or the unique index that Django makes for one with a condition; whether there was one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text FROM pg_constraint WHERE conname = %s",
            [name],
        )
        if (found := cursor.fetchone()) is not None:
            cursor.execute(f'ALTER TABLE {found[0]} DROP CONSTRAINT "{name}"')
            return True
        cursor.execute("SELECT 1 FROM pg_indexes WHERE indexname = %s", [name])
        if cursor.fetchone() is not None:
            cursor.execute(f'DROP INDEX "{name}"')
            return True
    return False


@pytest.mark.django_db
def test_without_it_the_attack_is_not_refused_by_it() -> None:
    made, unnoticed = world(), []
    for name in NAMED:
        assert name not in UNIQUE
        with transaction.atomic():
            # Checks that wait for the end of the transaction hold the table until then.
            connection.check_constraints()
            assert drop(name), name
            if f'"{name}"' in refusal(name, made):
                unnoticed.append(name)
            transaction.set_rollback(True)
    assert unnoticed == []


@pytest.mark.django_db
def test_without_its_trigger_a_record_can_be_changed() -> None:
    world()
    # A table with checks still to come cannot be altered.
    connection.check_constraints()
    for table in TRIGGERED:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            key = "seq" if table == "audit_event" else "id"
            cursor.execute(f"UPDATE {table} SET {key} = {key}")
            assert cursor.rowcount >= 1, table
            transaction.set_rollback(True)

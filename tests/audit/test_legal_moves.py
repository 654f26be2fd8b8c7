"""The database keeps every state machine to its table of moves, whoever writes."""

from importlib import import_module
from itertools import product

import pytest
from django.db import DatabaseError, connection, transaction

from approvals.states import LEGAL
from audit.legal_moves import once_only, only_moves
from provisioning.stages import NEXT

MOVES = {"open": ["taken", "done"], "taken": ["open", "done"], "done": []}
LEGAL_PAIRS = {
    ("open", "taken"),
    ("open", "done"),
    ("taken", "open"),
    ("taken", "done"),
}
WORDS = "what is done stays done"


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def machine(db: None) -> None:
    """A table with one row, gone when the test's transaction is."""
    run('CREATE TABLE machine (state text, ended timestamptz, "end" text)')
    run("INSERT INTO machine VALUES ('open', NULL, '')")


def keep(step: object) -> None:
    with connection.schema_editor() as editor:
        step.code(None, editor)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("before", "after"), list(product(MOVES, MOVES)))
def test_only_the_moves_of_the_table_are_made(
    machine: None, before: str, after: str
) -> None:
    run(f"UPDATE machine SET state = '{before}'")
    keep(only_moves("machine", "state", MOVES, words=WORDS))
    if before == after or (before, after) in LEGAL_PAIRS:
        run(f"UPDATE machine SET state = '{after}'")
        return
    with pytest.raises(DatabaseError, match=WORDS), transaction.atomic():
        run(f"UPDATE machine SET state = '{after}'")


def test_a_state_that_the_table_does_not_have_is_refused(machine: None) -> None:
    keep(only_moves("machine", "state", MOVES, words=WORDS))
    with pytest.raises(DatabaseError, match=WORDS), transaction.atomic():
        run("UPDATE machine SET state = 'elsewhere'")


@pytest.mark.parametrize(
    "change", ["ended = NULL", "ended = now() + interval '1 day'", "\"end\" = 'other'"]
)
def test_what_is_set_once_stays_as_it_is(machine: None, change: str) -> None:
    keep(once_only("machine", ["ended", "end"], words=WORDS))
    run("UPDATE machine SET \"end\" = 'not yet'")
    run("UPDATE machine SET ended = now(), \"end\" = 'expired'")
    run("UPDATE machine SET ended = ended")
    with pytest.raises(DatabaseError, match=WORDS), transaction.atomic():
        run(f"UPDATE machine SET {change}")


def test_the_way_back_takes_the_trigger_away(machine: None) -> None:
    step = only_moves("machine", "state", MOVES, words=WORDS)
    keep(step)
    with connection.schema_editor() as editor:
        step.reverse_code(None, editor)  # type: ignore[misc, arg-type]
    run("UPDATE machine SET state = 'done'")
    run("UPDATE machine SET state = 'open'")


def test_the_database_has_the_tables_that_the_code_has() -> None:
    approvals = import_module("approvals.migrations.0001_initial")
    provisioning = import_module("provisioning.migrations.0001_initial")
    assert {state: set(after) - {state} for state, after in LEGAL.items()} == {
        state: set(after) for state, after in approvals.REQUESTS.items()
    }
    assert {stage: set(after) for stage, after in NEXT.items()} == {
        stage: set(after) for stage, after in provisioning.STAGES.items()
    }

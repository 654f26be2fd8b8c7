"""What no constraint of Django can say about people, said by the database itself."""

from typing import Any

from django.db.migrations import RunPython

POSTGRES = """
ALTER TABLE accounts_delegation ADD CONSTRAINT one_stand_in_at_a_time EXCLUDE USING gist (
    int8range(giver_id, giver_id, '[]') WITH &&, tstzrange(starts_at, until) WITH &&
) WHERE (ended_at IS NULL)
"""
# SQLite has no such constraint. A migration that makes the table anew has `one_stand_in_at_a_time()` as its last step.
SQLITE = """CREATE TRIGGER one_stand_in_at_a_time_{what} BEFORE {what} ON accounts_delegation
WHEN NEW.ended_at IS NULL AND EXISTS (
    SELECT 1 FROM accounts_delegation WHERE giver_id = NEW.giver_id AND ended_at IS NULL
    AND id IS NOT NEW.id AND starts_at < NEW.until AND until > NEW.starts_at
) BEGIN SELECT RAISE(ABORT, 'one_stand_in_at_a_time'); END"""


def one_stand_in_at_a_time() -> RunPython:
    """The migration step: nobody lends their seat twice for the same moment, unless the first of the two was ended."""
    return RunPython(_add, _remove)


def _add(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES)
        return
    for what in ("insert", "update"):
        schema_editor.execute(SQLITE.format(what=what))


def _remove(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER TABLE accounts_delegation DROP CONSTRAINT one_stand_in_at_a_time"
        )
        return
    for what in ("insert", "update"):
        schema_editor.execute(f"DROP TRIGGER one_stand_in_at_a_time_{what}")

"""Tables that are only ever added to: a trigger refuses UPDATE, DELETE and TRUNCATE, whoever asks."""

from typing import Any

from django.db.migrations import RunPython

POSTGRES = """
CREATE FUNCTION {table}_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{words} are never changed' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION {table}_is_final();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {table}_is_final();
"""
POSTGRES_BACK = """
DROP TRIGGER {table}_no_truncate ON {table};
DROP TRIGGER {table}_no_change ON {table};
DROP FUNCTION {table}_is_final();
"""
SQLITE = """CREATE TRIGGER {table}_no_{what} BEFORE {what} ON {table}
BEGIN SELECT RAISE(ABORT, '{words} are never changed'); END"""


def append_only(table: str, *, words: str) -> RunPython:
    """The migration step that makes a table append-only, and its way back; `words` names its rows in the refusal."""

    def guard(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRES.format(table=table, words=words))
            return
        for what in ("update", "delete"):
            schema_editor.execute(SQLITE.format(table=table, words=words, what=what))

    def unguard(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRES_BACK.format(table=table))
            return
        for what in ("update", "delete"):
            schema_editor.execute(f"DROP TRIGGER {table}_no_{what}")

    return RunPython(guard, unguard)

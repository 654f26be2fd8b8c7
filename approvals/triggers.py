"""What no constraint of Django can say about requests, said by the database itself."""

from typing import Any

from django.db.migrations import RunPython

WORDS = "a decided request is never decided again"
POSTGRES = f"""
CREATE FUNCTION approvals_request_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> NEW.state AND OLD.state <> 'waiting' THEN
        RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_request_legal_move BEFORE UPDATE OF state ON approvals_request
    FOR EACH ROW EXECUTE FUNCTION approvals_request_moves();
"""
POSTGRES_BACK = """
DROP TRIGGER approvals_request_legal_move ON approvals_request;
DROP FUNCTION approvals_request_moves();
"""
# SQLite loses triggers when a migration makes the table anew: such a one has `only_legal_moves()` as its last step.
SQLITE = f"""
CREATE TRIGGER approvals_request_legal_move BEFORE UPDATE OF state ON approvals_request
WHEN OLD.state <> NEW.state AND OLD.state <> 'waiting'
BEGIN SELECT RAISE(ABORT, '{WORDS}'); END
"""


def only_legal_moves() -> RunPython:
    """The migration step: a request that was decided stays decided, as `approvals.states` has it."""
    return RunPython(_guard, _unguard)


def _guard(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(POSTGRES if schema_editor.connection.vendor == "postgresql" else SQLITE)


def _unguard(apps: Any, schema_editor: Any) -> None:
    is_postgres = schema_editor.connection.vendor == "postgresql"
    schema_editor.execute(POSTGRES_BACK if is_postgres else "DROP TRIGGER approvals_request_legal_move")

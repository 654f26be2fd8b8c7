"""A decided request stays decided: a trigger refuses every move that the table of states does not have.

SQLite loses triggers when a later migration makes the table anew: such a migration has `guard` as its last step.
"""

from typing import Any

from django.db import migrations

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
SQLITE = f"""
CREATE TRIGGER approvals_request_legal_move BEFORE UPDATE OF state ON approvals_request
WHEN OLD.state <> NEW.state AND OLD.state <> 'waiting'
BEGIN SELECT RAISE(ABORT, '{WORDS}'); END
"""


def guard(apps: Any, schema_editor: Any) -> None:
    """Refuse to move what is decided."""
    schema_editor.execute(POSTGRES if schema_editor.connection.vendor == "postgresql" else SQLITE)


def unguard(apps: Any, schema_editor: Any) -> None:
    """Let everything move again."""
    is_postgres = schema_editor.connection.vendor == "postgresql"
    schema_editor.execute(POSTGRES_BACK if is_postgres else "DROP TRIGGER approvals_request_legal_move")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_people_decide_beyond_the_soft_stage")]

    operations = [migrations.RunPython(guard, unguard)]

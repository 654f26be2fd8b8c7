"""That a run begins after one of its own team, which no constraint of Django can say, said by the database itself."""

from typing import Any

from django.db.migrations import RunPython

POSTGRES = """
CREATE FUNCTION workloads_run_same_team() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM workloads_run WHERE id = NEW.after_id AND team_id <> NEW.team_id)
        OR EXISTS (SELECT 1 FROM workloads_run WHERE after_id = NEW.id AND team_id <> NEW.team_id)
    THEN
        RAISE EXCEPTION 'a run begins after one of its team' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER workloads_run_same_team_insert BEFORE INSERT ON workloads_run
    FOR EACH ROW WHEN (NEW.after_id IS NOT NULL) EXECUTE FUNCTION workloads_run_same_team();
CREATE TRIGGER workloads_run_same_team_update BEFORE UPDATE OF after_id, team_id ON workloads_run
    FOR EACH ROW EXECUTE FUNCTION workloads_run_same_team();
"""
# A migration that makes the table anew on SQLite has `after_one_of_its_team()` as its last step.
SQLITE = (
    """CREATE TRIGGER workloads_run_same_team_insert BEFORE INSERT ON workloads_run
WHEN EXISTS (SELECT 1 FROM workloads_run WHERE id = NEW.after_id AND team_id <> NEW.team_id)
BEGIN SELECT RAISE(ABORT, 'a run begins after one of its team'); END""",
    """CREATE TRIGGER workloads_run_same_team_update BEFORE UPDATE OF after_id, team_id ON workloads_run
WHEN EXISTS (SELECT 1 FROM workloads_run WHERE id = NEW.after_id AND team_id <> NEW.team_id)
    OR EXISTS (SELECT 1 FROM workloads_run WHERE after_id = NEW.id AND team_id <> NEW.team_id)
BEGIN SELECT RAISE(ABORT, 'a run begins after one of its team'); END""",
)
POSTGRES_BACK = """
DROP TRIGGER workloads_run_same_team_insert ON workloads_run;
DROP TRIGGER workloads_run_same_team_update ON workloads_run;
DROP FUNCTION workloads_run_same_team();
"""
SQLITE_BACK = (
    "DROP TRIGGER workloads_run_same_team_insert",
    "DROP TRIGGER workloads_run_same_team_update",
)


def after_one_of_its_team() -> RunPython:
    """The migration step after which no run begins after one of another team, nor moves away from those beside it."""
    return RunPython(_add, _remove)


def _add(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES)
        return
    for one in SQLITE:
        schema_editor.execute(one)


def _remove(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES_BACK)
        return
    for one in SQLITE_BACK:
        schema_editor.execute(one)

"""State machines that the database keeps: a trigger refuses every move that a table of moves does not have."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.migrations import RunPython

Moves = Mapping[str, Iterable[str]]

POSTGRES = """
CREATE FUNCTION {table}_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF {illegal} THEN
        RAISE EXCEPTION '{words}' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER {table}_legal_move BEFORE UPDATE OF {columns} ON {table}
    FOR EACH ROW EXECUTE FUNCTION {table}_moves();
"""
POSTGRES_BACK = (
    "DROP TRIGGER {table}_legal_move ON {table}; DROP FUNCTION {table}_moves();"
)
# SQLite loses triggers when a migration makes the table anew: such a one has this step as its last.
SQLITE = """CREATE TRIGGER {table}_legal_move BEFORE UPDATE OF {columns} ON {table}
WHEN {illegal} BEGIN SELECT RAISE(ABORT, '{words}'); END"""


def only_moves(table: str, column: str, moves: Moves, *, words: str) -> RunPython:
    """The migration step that keeps a column to a table of moves (state: those that may follow); staying is no move."""
    old, new = f'OLD."{column}"', f'NEW."{column}"'
    known = [
        f"({old} = '{before}' AND {new} IN ({_texts(after)}))"
        for before, after in moves.items()
        if after
    ]
    legal = " OR ".join([f"{old} = {new}", *known])
    return _refusing(table, [column], f"NOT ({legal})", words)


def once_only(table: str, columns: Iterable[str], *, words: str) -> RunPython:
    """The migration step after which these columns never change again once the first of them is set."""
    first, *_ = names = list(columns)
    is_other = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}
    illegal = {}
    for vendor, differs in is_other.items():
        changed = " OR ".join(f'NEW."{name}" {differs} OLD."{name}"' for name in names)
        illegal[vendor] = f'OLD."{first}" IS NOT NULL AND ({changed})'
    return _refusing(table, names, illegal, words)


def _refusing(
    table: str, columns: list[str], illegal: str | Mapping[str, str], words: str
) -> RunPython:
    def guard(apps: Any, schema_editor: Any) -> None:
        vendor = schema_editor.connection.vendor
        said = illegal if isinstance(illegal, str) else illegal[vendor]
        text = POSTGRES if vendor == "postgresql" else SQLITE
        schema_editor.execute(
            text.format(
                table=table,
                columns=", ".join(f'"{name}"' for name in columns),
                illegal=said,
                words=words,
            )
        )

    def unguard(apps: Any, schema_editor: Any) -> None:
        back = (
            POSTGRES_BACK
            if schema_editor.connection.vendor == "postgresql"
            else "DROP TRIGGER {table}_legal_move"
        )
        schema_editor.execute(back.format(table=table))

    return RunPython(guard, unguard)


def _texts(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(values))

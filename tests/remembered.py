"""Rows that many tests start from: made by the portal's own actions once in a process, and put back after that."""

import copy
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TypeVar

from django.db import connection
from django.db.backends.utils import CursorWrapper

from tests.services import pristine

T = TypeVar("T")


def remembered(make: Callable[[], T]) -> Callable[[], T]:
    """A maker of rows that makes them the first time only; later tests find them as they were then, and their age.

    They are made each time where a test commits, because things follow on a commit, and where rows lie already.
    """
    kept: list[tuple[str, T]] = []

    @wraps(make)
    def made() -> T:
        if not _nothing_was_written():
            return make()
        if not kept:
            assert pristine.is_restored(), (
                "a test before this one has left rows in the database"
            )
            first = make()
            kept.append((written(), copy.deepcopy(first)))
            return first
        statements, known = kept[0]
        with connection.cursor() as cursor:
            cursor.execute(statements)
        return copy.deepcopy(known)

    return made


def _nothing_was_written() -> bool:
    """Whether this is a test's transaction, on PostgreSQL, and nothing was written in it or all of it taken back."""
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NULL")
        return bool(cursor.fetchone() == (True,)) or pristine.is_restored()


def written() -> str:
    """The statements that make a migrated database hold what this one does.

    The rows are inserted as any are: while a session plays a replica, past all triggers, it would be quicker, but the
    change of roles and back makes PostgreSQL plan anew whatever the connection has prepared.
    """
    return "; ".join(_statements())


def _statements() -> Iterator[str]:
    with connection.cursor() as cursor:
        of_migrations = set(pristine.tables(cursor, "pristine"))
        for table in pristine.tables(cursor, "public"):
            here, before = f'TABLE public."{table}"', f'TABLE pristine."{table}"'
            new = here
            if table in of_migrations:
                if _rows(cursor, f"{before} EXCEPT {here}"):
                    yield f'DELETE FROM "{table}"'
                else:
                    new = f"{here} EXCEPT {before}"
            if rows := _rows(cursor, new):
                yield f'INSERT INTO "{table}" SELECT * FROM unnest({rows}::"{table}"[])'


def _rows(cursor: CursorWrapper, query: str) -> str:
    """All rows of a query as one literal; empty when there are none."""
    cursor.execute(
        f"SELECT quote_literal(array_agg(held)::text) FROM ({query}) AS held"
    )
    [literal] = cursor.fetchone()
    return literal or ""

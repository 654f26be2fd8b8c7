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
            first = make()
            kept.append(("; ".join(_statements()), copy.deepcopy(first)))
            return first
        statements, known = kept[0]
        with connection.cursor() as cursor:
            cursor.execute(statements)
        return copy.deepcopy(known)

    return made


def _nothing_was_written() -> bool:
    """Whether this is a test's transaction, on PostgreSQL, and nothing was written in it."""
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NULL")
        return bool(cursor.fetchone() == (True,))


def _statements() -> Iterator[str]:
    """What makes a migrated database hold what this one does."""
    with connection.cursor() as cursor:
        # Neither triggers nor foreign keys speak while this session plays a replica: the rows were right when made.
        yield "SET LOCAL session_replication_role = replica"
        for table in pristine.tables(cursor, "public"):
            rows = _rows(cursor, f'public."{table}"')
            if rows:
                yield f'DELETE FROM "{table}"'
                yield f'INSERT INTO "{table}" SELECT * FROM unnest({rows}::"{table}"[])'
        yield "SET LOCAL session_replication_role = DEFAULT"


def _rows(cursor: CursorWrapper, table: str) -> str:
    """All rows of a table as one literal; empty when there are none."""
    cursor.execute(f"SELECT quote_literal(array_agg(held)::text) FROM {table} AS held")
    [literal] = cursor.fetchone()
    return literal or ""

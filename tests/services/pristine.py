"""Brings a test database back to what the migrations left, quickly and past the triggers that guard its records."""

from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

KEPT = {"django_migrations"}


def remember() -> None:
    """Copy the rows that the migrations made, such as the first policy, into a schema of their own."""
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS pristine CASCADE; CREATE SCHEMA pristine")
        for table in tables(cursor, "public"):
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')
            if cursor.fetchone() == (True,):
                cursor.execute(f'CREATE TABLE pristine."{table}" AS TABLE public."{table}"')


def restore(*_: Any) -> None:
    """Empty every table and put the remembered rows back. Stands in for Django's flush, which a trigger refuses."""
    with connection.cursor() as cursor:
        # Neither the audit log's triggers nor foreign keys speak while this session plays a replica.
        statements = ["SET session_replication_role = replica"]
        statements += [f'DELETE FROM "{table}"' for table in tables(cursor, "public")]
        statements += [f'INSERT INTO "{name}" TABLE pristine."{name}"' for name in tables(cursor, "pristine")]
        statements += ["SET session_replication_role = DEFAULT"]
        cursor.execute("; ".join(statements))


def tables(cursor: CursorWrapper, schema: str) -> list[str]:
    """The names of a schema's tables, but for the record of migrations."""
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])
    return sorted({name for (name,) in cursor.fetchall()} - KEPT)

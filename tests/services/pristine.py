"""Brings a test database back to what the migrations left, quickly and past the triggers that guard its records."""

from functools import cache
from typing import Any

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper

KEPT = {"django_migrations"}
# Most tests touch none of the rows that the migrations made: only those that differ are written.
PUT_BACK = """
DELETE FROM public."{table}" AS held WHERE held::text NOT IN (SELECT made::text FROM pristine."{table}" AS made);
INSERT INTO public."{table}" TABLE pristine."{table}" EXCEPT TABLE public."{table}";
"""
DIFFERS = """
EXISTS (TABLE public."{table}" EXCEPT TABLE pristine."{table}") OR
EXISTS (TABLE pristine."{table}" EXCEPT TABLE public."{table}")
"""


def remember() -> None:
    """Copy the rows that the migrations made, such as the first policy, into a schema of their own."""
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS pristine CASCADE; CREATE SCHEMA pristine")
        statements, differs = [], []
        for table in tables(cursor, "public"):
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')
            if cursor.fetchone() == (True,):
                cursor.execute(
                    f'CREATE TABLE pristine."{table}" AS TABLE public."{table}"'
                )
                statements.append(PUT_BACK.format(table=table))
                differs.append(DIFFERS.format(table=table))
            else:
                statements.append(f'DELETE FROM public."{table}";')
                differs.append(f'EXISTS (SELECT FROM public."{table}")')
        # A function has its statements planned once: there are a hundred, and each finds hardly anything to do.
        functions = {
            "restore() RETURNS void": "".join(statements),
            "is_restored() RETURNS boolean": f"RETURN NOT ({' OR '.join(differs)});",
        }
        for name, body in functions.items():
            cursor.execute(
                f"CREATE FUNCTION pristine.{name} LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
            )


def is_restored() -> bool:
    """Whether every table holds what the migrations left, as after a part that was taken back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pristine.is_restored()")
        return bool(cursor.fetchone() == (True,))


def restore(*_: Any) -> None:
    """Empty every table and put the remembered rows back. Stands in for Django's flush, which a trigger refuses."""
    try:
        _restorer(*_address()).execute("SELECT pristine.restore()")
    except (
        psycopg.OperationalError
    ):  # the test has ended all connections, or the server
        let_go()
        _restorer(*_address()).execute("SELECT pristine.restore()")


def let_go() -> None:
    """End the connection that restores, so that the database can be dropped."""
    _restorer(*_address()).close()
    _restorer.cache_clear()


def _address() -> tuple[str, str, str]:
    server = connection.settings_dict
    return server["HOST"], server["PORT"], server["NAME"]


@cache
def _restorer(host: str, port: str, database: str) -> "psycopg.Connection[Any]":
    """A connection on which neither the audit log's triggers nor foreign keys speak: it plays a replica.

    Were it the portal's own, the change of roles and back would make PostgreSQL plan anew whatever it has prepared.
    """
    return psycopg.connect(
        host=host,
        port=port,
        user=connection.settings_dict["USER"],
        password=connection.settings_dict["PASSWORD"],
        dbname=database,
        options="-c session_replication_role=replica",
        autocommit=True,
    )


def tables(cursor: CursorWrapper, schema: str) -> list[str]:
    """The names of a schema's tables, but for the record of migrations."""
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])
    return sorted({name for (name,) in cursor.fetchall()} - KEPT)

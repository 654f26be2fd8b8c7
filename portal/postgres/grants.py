"""What the portal's own login may do with the tables that another login owns."""

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

# `append_only` (audit/append_only.py) names its triggers so.
APPEND_ONLY = """
SELECT pg_class.relname
FROM pg_trigger JOIN pg_class ON pg_class.oid = pg_trigger.tgrelid
WHERE pg_trigger.tgname = pg_class.relname || '_no_change' AND pg_class.relnamespace = 'public'::regnamespace
"""
POWERS = """
SELECT rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls OR pg_has_role(oid, current_user, 'MEMBER')
FROM pg_roles WHERE rolname = %s
"""
# Tables that later migrations make are covered too: what the owner makes from now on has the same grants.
GRANTS = """
GRANT USAGE ON SCHEMA public TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role};
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role};
"""
# PostgreSQL lets nobody lock a row who may update no column of it. Version 1 of the policy puts writers of versions in
# line; its trigger refuses the update itself.
LOCKED = {"policy_policyversion": "number"}


class TooPowerful(Exception):
    """The login does not exist, or could take more rights than it is given."""


def grant(connection: BaseDatabaseWrapper, role: str) -> list[str]:
    """Let a login read and write rows, and only add to append-only tables; returns those.

    Called by the login that owns the tables, inside a transaction. Raises TooPowerful.
    """
    with connection.cursor() as cursor:
        _check(cursor, role)
        name = connection.ops.quote_name(role)
        cursor.execute(GRANTS.format(role=name))
        cursor.execute(APPEND_ONLY)
        tables = sorted(table for (table,) in cursor.fetchall())
        for table in tables:
            quoted = connection.ops.quote_name(table)
            cursor.execute(f"REVOKE UPDATE, DELETE, TRUNCATE ON {quoted} FROM {name}")
            if table in LOCKED:
                cursor.execute(
                    f"GRANT UPDATE ({connection.ops.quote_name(LOCKED[table])}) ON {quoted} TO {name}"
                )
    return tables


def _check(cursor: CursorWrapper, role: str) -> None:
    cursor.execute(POWERS, [role])
    match cursor.fetchone():
        case None:
            raise TooPowerful(
                f"PostgreSQL has no login {role}: run deploy/postgres/roles.sql."
            )
        case (True,):
            raise TooPowerful(
                f"The login {role} of QM_DATABASE_URL is a superuser, may make roles or may act as the owner of the "
                "tables. Give the portal another login: deploy/postgres/roles.sql makes one."
            )

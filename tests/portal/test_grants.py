"""The portal's login at PostgreSQL reads and writes rows, and has no way to rewrite what is only added to."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from portal.management.commands.migrate import LOCK
from scripts.packages import ROOT
from tests.services.plugin import lent
from tests.services.postgres import Postgres, program
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

DATABASE = "quartermaster"
OWNER, APP = "quartermaster_owner", "quartermaster_app"
ROLES = ROOT / "deploy" / "postgres" / "roles.sql"


def address(server: Postgres, login: str) -> str:
    """The address of the portal's database for one login."""
    return f"postgresql://{login}@127.0.0.1:{server.port}/{DATABASE}"


def make_roles(
    server: Postgres, administrator: str = ""
) -> subprocess.CompletedProcess[str]:
    """What an administrator does once; a superuser unless another address is given."""
    secrets = {"POSTGRES_OWNER_PASSWORD": "it's", "POSTGRES_APP_PASSWORD": "second"}
    command = [
        program("psql"),
        "--quiet",
        "--dbname",
        administrator or server.dsn(DATABASE),
        "--file",
        str(ROLES),
    ]
    return subprocess.run(
        command,
        env={**os.environ, **secrets},
        capture_output=True,
        text=True,
        check=True,
    )


def manage(
    server: Postgres, *command: str, login: str = APP, owner: str = OWNER
) -> tuple[int, str]:
    """Run a command as the compose file does; how it ended and what it printed."""
    process = started(
        *command,
        QM_DATABASE_URL=address(server, login),
        QM_MIGRATE_DATABASE_URL=owner and address(server, owner),
    )
    said, _ = process.communicate()
    return process.returncode, said


def started(*command: str, **env: str) -> subprocess.Popen[str]:
    """A command that goes on by itself."""
    return subprocess.Popen(
        [".venv/bin/python", "manage.py", *command],
        cwd=ROOT,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL on which an administrator made the roles and the owner has migrated."""
    with lent(Postgres) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        make_roles(server)
        ended, said = manage(server, "migrate", "--noinput")
        assert ended == 0, said
        assert "only adds to" in said
        assert "audit_event" in said
        yield server


def test_an_administrator_who_is_no_superuser_makes_the_logins() -> None:
    """As the one of a hosted PostgreSQL: it may make logins, and owns the database."""
    with lent(Postgres) as hosted:
        hosted.execute("CREATE ROLE administrator LOGIN CREATEROLE CREATEDB")
        hosted.execute(f"CREATE DATABASE {DATABASE} OWNER administrator")
        make_roles(hosted, address(hosted, "administrator"))
        make_roles(hosted, address(hosted, "administrator"))
        ended, said = manage(hosted, "migrate", "--noinput")
        assert ended == 0, said


@contextmanager
def signed_in(server: Postgres, login: str = APP) -> Iterator[psycopg.Connection]:
    """A connection of one login."""
    with psycopg.connect(address(server, login), autocommit=True) as connection:
        yield connection


ATTACKS = (
    "ALTER TABLE audit_event DISABLE TRIGGER USER",
    "ALTER TABLE audit_event DISABLE TRIGGER audit_event_no_change",
    "DROP TRIGGER audit_event_no_change ON audit_event",
    "DROP FUNCTION audit_event_is_final CASCADE",
    "CREATE OR REPLACE FUNCTION audit_event_is_final() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "SET session_replication_role = replica",
    "UPDATE audit_event SET actor_name = 'nobody'",
    "DELETE FROM audit_event",
    "TRUNCATE audit_event CASCADE",
    "DROP TABLE audit_event",
    "ALTER TABLE audit_event DROP CONSTRAINT an_event_has_a_kind",
    "CREATE RULE gone AS ON INSERT TO audit_event DO INSTEAD NOTHING",
    "DELETE FROM approvals_decision",
    "UPDATE allocations_ledgerentry SET usd = 0",
    "DELETE FROM django_migrations",
    "CREATE TABLE public.audit_copy (seq bigint)",
    f"SET ROLE {OWNER}",
    f"GRANT {OWNER} TO {APP}",
    f"ALTER ROLE {APP} SUPERUSER",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_portals_login_cannot_get_past_what_guards_the_log(
    server: Postgres, attack: str
) -> None:
    with signed_in(server) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(attack.encode())


@pytest.mark.parametrize(
    "table", ["audit_event", "allocations_ledgerentry", "approvals_decision"]
)
def test_it_is_refused_by_its_rights_even_where_the_trigger_is_off(
    server: Postgres, table: str
) -> None:
    with signed_in(server, OWNER) as owner, signed_in(server) as app:
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER".encode())
        try:
            for attack in (
                f"DELETE FROM {table}",
                f"UPDATE {table} SET {first_column(owner, table)} = DEFAULT",
            ):
                with pytest.raises(InsufficientPrivilege, match="permission denied"):
                    app.execute(attack.encode())
        finally:
            owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER".encode())


def test_a_version_of_the_policy_can_be_locked_and_not_changed(
    server: Postgres,
) -> None:
    with signed_in(server) as app:
        app.execute(
            "SELECT number FROM policy_policyversion WHERE number = 1 FOR NO KEY UPDATE"
        )
        for attack in ("number = 7", "number = number", "document = '{}'"):
            with pytest.raises(InsufficientPrivilege):
                app.execute(f"UPDATE policy_policyversion SET {attack}".encode())


def first_column(connection: psycopg.Connection, table: str) -> str:
    """Any column of a table."""
    description = connection.execute(
        f"SELECT * FROM {table} LIMIT 0".encode()
    ).description
    assert description
    return description[0].name


def test_a_table_that_a_later_migration_makes_is_usable_at_once(
    server: Postgres,
) -> None:
    with signed_in(server, OWNER) as owner, signed_in(server) as app:
        owner.execute("CREATE TABLE later (id bigserial PRIMARY KEY)")
        app.execute("INSERT INTO later DEFAULT VALUES")
        app.execute("DELETE FROM later")
        owner.execute("DROP TABLE later")


def test_the_portal_works_with_it(server: Postgres) -> None:
    """`tests/faults/test_app_login.py` asks, decides and gives back with it."""
    for command in (
        ["check", "--database", "default"],
        ["declare_fleet"],
        ["check_invariants"],
    ):
        ended, said = manage(server, *command, owner="")
        assert ended == 0, said


def test_making_the_roles_and_migrating_again_changes_nothing(server: Postgres) -> None:
    make_roles(server)
    assert manage(server, "migrate", "--noinput")[0] == 0
    with signed_in(server) as app, pytest.raises(InsufficientPrivilege):
        app.execute("DELETE FROM audit_event")


def test_the_owner_brings_a_dump_back_and_migrating_grants_anew(
    server: Postgres, tmp_path: Path
) -> None:
    """As docs/how-to/back-up.md has it where nobody is a superuser."""
    dump, owner = str(tmp_path / "quartermaster.dump"), address(server, OWNER)
    made = [program("pg_dump"), "--format", "custom", "--file", dump, owner]
    subprocess.run(made, check=True)
    back = ["--no-owner", "--no-privileges", "--clean", "--if-exists"]
    restored = [program("pg_restore"), *back, "--dbname", owner, dump]
    subprocess.run(restored, check=True)
    ended, said = manage(server, "migrate", "--noinput")
    assert ended == 0, said
    with signed_in(server) as app:
        app.execute("SELECT FROM policy_policyversion")
        with pytest.raises(InsufficientPrivilege):
            app.execute("DELETE FROM audit_event")


def test_who_migrates_second_waits_for_the_first_for_longer_than_a_page_may(
    server: Postgres,
) -> None:
    limits = quote("-c lock_timeout=200 -c statement_timeout=200")
    waits = """
        SELECT EXISTS (
            SELECT FROM pg_stat_activity
            WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > interval '600 ms'
        )
    """
    with signed_in(server, OWNER) as first:
        first.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        second = started(
            "migrate",
            "--noinput",
            QM_DATABASE_URL=address(server, APP),
            QM_MIGRATE_DATABASE_URL=f"{address(server, OWNER)}?options={limits}",
        )
        wait_until(
            lambda: (
                second.poll() is not None or first.execute(waits).fetchone() == (True,)
            ),
            what="the second to wait, or to end",
        )
        assert second.poll() is None, second.communicate()[0]
    said, _ = second.communicate()
    assert second.returncode == 0, said


def test_a_login_that_may_too_much_or_is_not_there_is_refused(server: Postgres) -> None:
    ended, said = manage(server, "migrate", "--noinput", login="quartermaster")
    assert ended == 1
    assert "is a superuser" in said
    ended, said = manage(server, "migrate", "--noinput", login=OWNER)
    assert ended == 1
    assert "may act as the owner" in said
    ended, said = manage(server, "migrate", "--noinput", login="nobody")
    assert ended == 1
    assert "PostgreSQL has no login nobody" in said


def test_the_portals_login_cannot_migrate(server: Postgres) -> None:
    with signed_in(server, OWNER) as owner:
        newest = "SELECT max(name) FROM django_migrations WHERE app = 'audit'"
        taken = f"DELETE FROM django_migrations WHERE app = 'audit' AND name = ({newest}) RETURNING name"
        row = owner.execute(taken.encode()).fetchone()
        assert row is not None
        try:
            ended, said = manage(server, "migrate", "--noinput", "audit", owner="")
        finally:
            owner.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('audit', %s, now())",
                row,
            )
    assert ended == 1, said
    assert "must be owner of" in said or "permission denied" in said, said

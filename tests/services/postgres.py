"""A PostgreSQL of the tests' own, run by an unprivileged user: survives a kill, not a power cut."""

import os
import pwd
import signal
import subprocess
from pathlib import Path

import psycopg

from tests.services.environment import POSTGRES_USER
from tests.services.process import Server, find_program

QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "jit": "off",
    # The name of a process is written anew for each statement, and the log is copied to nobody.
    "update_process_title": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


class Postgres(Server):
    """A server whose only user is `quartermaster`, trusted on loopback."""

    name = "PostgreSQL"
    program = "postgres"
    stop_signal = signal.SIGINT  # "fast": clients are cut off, data is written

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(folder, port)
        # Settings that differ from QUICK, from the next start on.
        self.options: dict[str, str] = {}

    def dsn(self, database: str = "postgres") -> str:
        """The address of one database, as `QM_DATABASE_URL` takes it."""
        return f"postgresql://{POSTGRES_USER}@127.0.0.1:{self.port}/{database}"

    def prepare(self) -> None:
        """Create the cluster on the first start."""
        data = self._data
        if (data / "PG_VERSION").exists():
            return
        data.mkdir(mode=0o700)
        if account := self.account():
            # The folders above it belong to the tests and must let the server's user pass.
            for folder in (self.folder, self.folder.parent):
                folder.chmod(folder.stat().st_mode | 0o011)
            os.chown(data, account.pw_uid, account.pw_gid)
        command = [
            program("initdb"),
            "--pgdata",
            str(data),
            "--username",
            POSTGRES_USER,
            "--auth",
            "trust",
        ]
        options = [
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--no-sync",
            "--no-instructions",
        ]
        with (self.folder / "log").open("ab") as log:
            if self.popen([*command, *options], log).wait() != 0:
                raise RuntimeError(f"initdb failed:\n{self.log}")

    def argv(self) -> list[str]:
        """Loopback only, no Unix socket, nothing synced."""
        options = (
            QUICK
            | self.options
            | {
                "listen_addresses": "127.0.0.1",
                "port": str(self.port),
                "unix_socket_directories": "",
            }
        )
        return [
            program("postgres"),
            "-D",
            str(self._data),
            *[f"--{name}={value}" for name, value in options.items()],
        ]

    def answers(self) -> bool:
        """Whether it takes a connection."""
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        """Run one statement outside any transaction, as the server's owner."""
        with psycopg.connect(
            self.dsn(database), autocommit=True, connect_timeout=5
        ) as connection:
            connection.execute(statement.encode())

    def stop_at_once(self) -> None:
        """What `pg_ctl stop -m immediate` does: everybody is cut off, nothing is written, the next start recovers."""
        self._end(signal.SIGQUIT)

    def copy(
        self, source: str, database: str, *, tablespace: str = "pg_default"
    ) -> None:
        """Make a database with the tables and rows of another server's, named by its address."""
        self.execute(f'CREATE DATABASE "{database}" TABLESPACE {tablespace}')
        dump = [
            program("pg_dump"),
            "--schema=public",
            "--no-owner",
            # Logins belong to a server: the other has none of those that something was granted to.
            "--no-privileges",
            "--clean",
            "--if-exists",
            "--dbname",
            source,
        ]
        load = [
            program("psql"),
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            "--output=/dev/null",
            "--dbname",
            self.dsn(database),
        ]
        with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
            subprocess.run(load, stdin=dumping.stdout, check=True)
        if dumping.returncode:
            raise RuntimeError(f"pg_dump ended with {dumping.returncode}")

    def account(self) -> pwd.struct_passwd | None:
        """PostgreSQL refuses to run as root."""
        return unprivileged()

    @property
    def _data(self) -> Path:
        return self.folder / "data"


def unprivileged() -> pwd.struct_passwd | None:
    """The account a root user runs PostgreSQL under; None for everybody else."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError(
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody."
    )


def program(name: str) -> str:
    """A program of the newest PostgreSQL installed."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: int(path.parent.name),
        reverse=True,
    )
    return find_program(name, *versions)

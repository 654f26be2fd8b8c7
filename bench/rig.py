"""The servers of a run: a PostgreSQL and a Redis of its own, and the portal as it runs in production."""

import http.client
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.services import environment
from tests.services.postgres import Postgres
from tests.services.process import Server, find_program, port_of, reserve_port
from tests.services.redis import Redis

CACHE = Path(__file__).resolve().parent.parent / "var" / "bench"
WORKERS = 2


@dataclass(frozen=True)
class Rig:
    """Where this run's servers are; `folder` is theirs and goes with them."""

    folder: Path
    postgres: Postgres
    redis: Redis


class Gunicorn(Server):
    """A web application behind gunicorn, with an environment of its own."""

    program = "gunicorn"

    def __init__(
        self,
        name: str,
        folder: Path,
        port: int,
        command: list[str],
        variables: Mapping[str, str],
    ) -> None:
        """`command` begins with the program and ends with the application."""
        super().__init__(folder, port)
        self.name, self.command, self.variables = name, command, variables

    def argv(self) -> list[str]:
        """As many processes for each, on loopback."""
        program, *rest = self.command
        options = [
            "--workers",
            str(WORKERS),
            "--bind",
            f"127.0.0.1:{self.port}",
            "--graceful-timeout",
            "3",
        ]
        return [program, *options, "--timeout", "120", "--no-control-socket", *rest]

    def answers(self) -> bool:
        """Whether it answers at all."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def popen(self, argv: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start it where its data is."""
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self.folder,
            env=os.environ | dict(self.variables),
            start_new_session=True,
        )


@contextmanager
def started() -> Iterator[Rig]:
    """A rig whose database is migrated and empty, with this process's Django on it, until the block ends."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="quartermaster-bench-")
            )
        )
        ports = [port_of(stack.enter_context(reserve_port())) for _ in range(2)]
        rig = Rig(
            folder,
            Postgres(folder / "postgres", ports[0]),
            Redis(folder / "redis", ports[1]),
        )
        for server in (rig.postgres, rig.redis):
            server.start()
            stack.callback(server.stop)
        _set_up(rig)
        yield rig


@contextmanager
def portal(rig: Rig) -> Iterator[int]:
    """The portal as its container starts it, and its port."""
    gunicorn = str(Path(sys.executable).parent / "gunicorn")
    command = [
        gunicorn,
        "-k",
        "portal.web_worker.BoundedWorker",
        "portal.asgi:application",
    ]
    with serving("the portal", rig, command, {}) as port:
        yield port


@contextmanager
def serving(
    name: str, rig: Rig, command: list[str], variables: Mapping[str, str]
) -> Iterator[int]:
    """A web application until the block ends, and its port; raises RuntimeError with its log when it does not start."""
    with reserve_port() as held:
        port = port_of(held)
        server = Gunicorn(name, rig.folder / f"web-{port}", port, command, variables)
        try:
            server.start()
            yield port
        finally:
            server.stop()


def empty_database(rig: Rig) -> None:
    """Bring the portal's database back to what the migrations left."""
    from django.core.cache import cache

    from tests.services import pristine

    pristine.restore()
    cache.clear()
    rig.postgres.execute("VACUUM FULL", database="portal")


def settle(rig: Rig, database: str = "portal") -> None:
    """What autovacuum, which is off here, would have done after so many new rows."""
    rig.postgres.execute("VACUUM ANALYZE", database=database)


def program(name: str, folder: Path) -> str:
    """A program of an environment of packages."""
    return find_program(name, folder / "bin")


def _set_up(rig: Rig) -> None:
    os.environ.update(environment.harmless())
    os.environ.update(
        environment.addresses(
            postgres_port=rig.postgres.port, redis_port=rig.redis.port, worker=0
        )
    )
    os.environ |= {
        "QM_DEMO": "false",  # as in production: static files are collected and named by their content
        "QM_DATA_DIR": str(rig.folder / "data"),
        "QM_READ_RATE": "10000000/min",
        "QM_WRITE_RATE": "10000000/min",
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    (rig.folder / "data" / "static").mkdir(parents=True)
    rig.postgres.execute("CREATE DATABASE portal")
    import django

    django.setup()
    from django.core.management import call_command

    from tests.services import pristine

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    pristine.remember()

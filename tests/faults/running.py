"""The product's own processes for one test: workers and web servers, each in a group of its own, killed by its id."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import requests
from django.db import connection

from tests.faults import forks
from tests.services.process import is_alive, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
QUIET = ("--without-mingle", "--without-gossip", "--without-heartbeat", "-l", "INFO")


@dataclass
class Process:
    """One started program with its log."""

    name: str
    popen: forks.Child | subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        """Everything it wrote."""
        return self.log_file.read_text(errors="replace")

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself or by a signal."""
        return self.popen.poll() is not None

    def wait_ready(self) -> None:
        """Wait until a worker listens; raises AssertionError with its log when it ends instead."""
        wait_until(
            lambda: " ready." in self.log or self.has_ended,
            what=f"{self.name} to be ready",
        )
        assert not self.has_ended, self.log[-3000:]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and all its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, number)

    def stop(self) -> None:
        """Ask it to end as a deployment does: the first process alone gets the signal."""
        os.kill(self.popen.pid, signal.SIGTERM)

    def children(self) -> list[int]:
        """The living processes that it started: of a pool's worker without a clock, its pool."""
        return [pid for pid in members(self.popen.pid) if pid != self.popen.pid]

    def kill(self) -> None:
        """End it and its children at once, as a power cut would, and wait until they are gone."""
        self.signal(signal.SIGKILL)
        self.popen.wait()
        wait_until(
            lambda: not members(self.popen.pid), what=f"the group of {self.name} to end"
        )


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_alive(int(entry.name)):
            with suppress(OSError):
                if os.getpgid(int(entry.name)) == group:
                    found.append(int(entry.name))
    return found


@dataclass
class Portal:
    """One installation on the test's own database: start its processes in any order, any number of times."""

    folder: Path
    environment: Mapping[str, str]
    running: list[Process] = field(default_factory=list)
    url: str = ""

    def worker(
        self,
        *,
        queue: str = "celery",
        clock: bool = True,
        pool: int = 0,
        failpoint: str = "",
        wait: bool = False,
        wrong: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a worker with its clock; one that has a failpoint ends where that says, one may go by a `wrong` clock.

        Without a clock it is one process alone, so that its death is the death of the whole worker. With `pool` it is
        the worker of production: that many processes, and the clock is somebody else's (see `clock`).
        """
        kind = (
            ["-c", str(pool)]
            if pool
            else ["-B", "-c", "2"]
            if clock
            else ["-P", "solo"]
        )
        name = f"worker-{len(self.running)}"
        command = [
            "celery",
            "-A",
            "portal.celery",
            "worker",
            *kind,
            "-Q",
            queue,
            "-n",
            f"{name}@%h",
            *QUIET,
        ]
        extra = {"FAILPOINT": failpoint} if failpoint else {}
        started = (
            self.start_anew(name, command, wrong)
            if wrong
            else self.start(name, command, extra)
        )
        if wait:
            started.wait_ready()
        return started

    def clock(self, application: str = "portal.celery") -> Process:
        """Start the clock as production does, in a process of its own."""
        schedule = [
            "--schedule",
            str(self.folder / f"beat-{len(self.running)}"),
            "--pidfile",
            "",
        ]
        command = ["celery", "-A", application, "beat", "-l", "INFO", *schedule]
        return self.start("clock", command, {})

    def web(self, *, workers: int = 2, failpoint: str = "") -> Process:
        """Start the web server and wait until it is ready; `url` is then its address.

        A process of it that has a failpoint ends where that says, and the server starts another one that has it, too.
        """
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [
            "gunicorn",
            "-k",
            "portal.web_worker.BoundedWorker",
            "-w",
            str(workers),
        ]
        command += [
            "-b",
            f"127.0.0.1:{port}",
            "--graceful-timeout",
            "3",
            "--no-control-socket",
        ]
        command += ["portal.asgi:application"]
        started = self.start(
            "web", command, {"FAILPOINT": failpoint} if failpoint else {}
        )
        try:
            wait_until(self._is_ready, what="the web server to be ready")
        except TimeoutError as error:
            raise RuntimeError(
                f"The web server is not ready:\n{started.log[-3000:]}"
            ) from error
        return started

    def start(self, name: str, module: list[str], extra: Mapping[str, str]) -> Process:
        """Start `python -m module…` with the installation's environment."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log_file = self.folder / f"{name}-{len(self.running)}.log"
        with log_file.open("wb") as log:
            log.truncate()
        child = forks.start(
            module, environment={**self.environment, **extra}, log=log_file, folder=ROOT
        )
        self.running.append(Process(name, child, log_file))
        return self.running[-1]

    def start_anew(
        self, name: str, module: list[str], extra: Mapping[str, str]
    ) -> Process:
        """The same in a program of its own: what is preloaded, and what time it is, is settled when one starts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log_file = self.folder / f"{name}-{len(self.running)}.log"
        with log_file.open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.preloaded", *module],
                env={**self.environment, **extra},
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.running.append(Process(name, child, log_file))
        return self.running[-1]

    def kill(self) -> None:
        """End every process that still runs, and write what each said last: who looks at a failure wants to know."""
        for process in self.running:
            process.signal(signal.SIGCONT)
            process.kill()
            sys.stdout.write(f"--- {process.name}\n{process.log[-3000:]}\n")

    def _is_ready(self) -> bool:
        with suppress(requests.RequestException):
            return requests.get(f"{self.url}/readyz", timeout=2).ok
        return False


def environment(
    folder: Path, *, kubeconfigs: Path, broker: str = "", cache: str = ""
) -> dict[str, str]:
    """This test process's environment, pointed at its test database and at a cluster's kubeconfig files."""
    base = connection.settings_dict
    values = {
        "QM_DATABASE_URL": f"postgresql://{base['USER']}@{base['HOST']}:{base['PORT']}/{base['NAME']}",
        "QM_DATA_DIR": str(folder),
        "QM_KUBECONFIG_DIR": str(kubeconfigs),
        "QM_WRITE_RATE": "100000/min",
        "QM_READ_RATE": "100000/min",
    }
    values |= {"QM_BROKER_URL": broker} if broker else {}
    values |= {"QM_CACHE_URL": cache} if cache else {}
    return {**os.environ, **values}

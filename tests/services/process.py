"""A real server on a loopback port, started, killed and stopped by its own process id."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

# A condition that comes true is noticed at once: only a failure waits so long, however busy the machine is.
DEADLINE_SECONDS = 120.0


def wait_until(
    true: Callable[[], bool], *, what: str, seconds: float = DEADLINE_SECONDS
) -> None:
    """Return as soon as `true()` holds; raises TimeoutError saying `what` was awaited."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def reserve_port() -> socket.socket:
    """A bound socket that never listens: nobody is given its port, and a server may still listen there."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def port_of(held: socket.socket) -> int:
    """The number of a reserved port."""
    return int(held.getsockname()[1])


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_ended(pid: int) -> bool:
    """Whether a process is gone with all its threads; reaps it when it is ours."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not is_alive(pid)


class Server(ABC):
    """One server with its data under `folder`; any process that knows the folder can stop it."""

    name: str
    program: str
    stop_signal = signal.SIGTERM

    def __init__(self, folder: Path, port: int) -> None:
        """Nothing is started yet. `port` must be free or held by `reserve_port`."""
        self.folder = folder
        self.port = port
        # What its environment has besides that of the tests, from the next start on.
        self.environment: Mapping[str, str] = {}

    @abstractmethod
    def argv(self) -> list[str]:
        """The command that runs the server in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server does what it is asked."""

    def prepare(self) -> None:  # noqa: B027
        """Create what the server needs before its first start."""

    @property
    def pid(self) -> int | None:
        """The process id of the running server, or None."""
        try:
            pid = int((self.folder / "pid").read_text())
        except FileNotFoundError:
            return None
        return pid if is_alive(pid) else None

    @property
    def log(self) -> str:
        """The last 4,000 characters the server wrote."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def start(self) -> None:
        """Start, and return when the server answers; raises RuntimeError with the server's own words."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()
        wait_until(self._port_is_free, what=f"port {self.port} to be free")
        with (self.folder / "log").open("ab") as log:
            process = self.popen(self.argv(), log)
        (self.folder / "pid").write_text(str(process.pid))
        # The process outlives the object on purpose: its id is in the file, and `stop` reaps it.
        process.returncode = 0
        wait_until(
            lambda: self._started(process.pid), what=f"{self.name} on port {self.port}"
        )

    def stop(self) -> None:
        """End the server in its own orderly way; does nothing when it is not running."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """End the server as a power cut would: SIGKILL, and nothing is flushed."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the server in its tracks: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        self._signal(signal.SIGCONT)

    def account(self) -> pwd.struct_passwd | None:
        """Who runs the server; None for whoever runs the tests."""
        return None

    def popen(self, argv: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program under the server's account, in a session of its own."""
        account = self.account()
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            env={**os.environ, **self.environment},
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=[] if account else None,
        )

    def _started(self, pid: int) -> bool:
        if has_ended(pid):
            raise RuntimeError(f"{self.name} did not start:\n{self.log}")
        return self.answers()

    def _signal(self, number: signal.Signals) -> None:
        if pid := self.pid:
            os.kill(pid, number)

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            return
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: has_ended(pid), what=f"{self.name} to end")

    def _port_is_free(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0


def find_program(name: str, *folders: Path) -> str:
    """The path of a server's program; raises FileNotFoundError saying what installs it."""
    path = shutil.which(
        name,
        path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)]),
    )
    if path is None:
        raise FileNotFoundError(f"{name} is not installed: run scripts/services.sh")
    return path

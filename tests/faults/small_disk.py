"""A PostgreSQL with a disk of a few megabytes that nobody else sees: a tmpfs in a mount namespace of its own."""

import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

import psycopg

from tests.services.postgres import Postgres

MEGABYTES = 48


class SmallDisk(Postgres):
    """A server with a tablespace `small`; what lies there is gone when the server ends."""

    name = "PostgreSQL on a small disk"

    @property
    def disk(self) -> Path:
        """Where the disk lies, as the server sees it."""
        return self.folder / "disk"

    def popen(self, argv: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the server on its disk; the programs that prepare it run as always."""
        if Path(argv[0]).name != "postgres":
            return super().popen(argv, log)
        self.disk.mkdir(exist_ok=True)
        command = [*confined(self.disk, *self._owner()), *argv]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )

    def fill(self) -> None:
        """Leave no room on the disk."""
        with suppress(psycopg.errors.DiskFull):
            self._write(
                f"SELECT repeat('x', 8191) FROM generate_series(1, {MEGABYTES * 128})"
            )

    def make_room(self) -> None:
        """Take away what fills it."""
        self._write("SELECT 1")

    def _write(self, rows: str) -> None:
        self.execute(f"COPY ({rows}) TO '{self.disk}/ballast'")

    def _owner(self) -> tuple[int, int]:
        account = self.account()
        return (
            (account.pw_uid, account.pw_gid) if account else (os.getuid(), os.getgid())
        )


def confined(disk: Path, uid: int, gid: int) -> list[str]:
    """What runs a command as this user, with the disk that only the command sees."""
    if os.geteuid() == 0:
        apart, owner = ["unshare", "--mount"], f",uid={uid},gid={gid}"
        become = f"setpriv --reuid={uid} --regid={gid} --clear-groups"
    else:
        apart, owner = ["unshare", "--user", "--map-root-user", "--mount"], ""
        become = f"unshare --user --map-user={uid} --map-group={gid}"
    mount = f"mount -t tmpfs -o size={MEGABYTES}m,mode=0700{owner} disk {shlex.quote(str(disk))}"
    return [*apart, "sh", "-c", f'{mount} && exec {become} "$@"', "sh"]


def why_not(folder: Path) -> str:
    """Why no disk can be mounted here; empty where one can."""
    disk = folder / "probe"
    disk.mkdir()
    done = subprocess.run(
        [*confined(disk, os.getuid(), os.getgid()), "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""

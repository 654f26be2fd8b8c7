"""The standing peer: ColdFront from PyPI in an environment of its own, on the run's PostgreSQL."""

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.calls import Page
from bench.rig import CACHE, Rig, program, serving, settle

VERSION = "1.1.10"
PACKAGES = [f"coldfront=={VERSION}", "gunicorn==27.0.1", "psycopg2-binary==2.9.13"]
ENVIRONMENT = CACHE / f"coldfront-{VERSION}"
SEED = Path(__file__).parent / "coldfront_seed.py"
ROW, ROWS = re.compile(r'href="/allocation/[0-9]+/"'), 25


@dataclass(frozen=True)
class ColdFront:
    """A ColdFront that answers, with somebody signed in who may review requests, and the numbers of its allocations."""

    port: int
    cookie: str
    allocations: Sequence[int]

    def queue(self, *, waiting: int) -> Page:
        """Its list of allocation requests, which counts only with every one of them on it.

        Its session cookie is for HTTPS alone, so it is sent by hand: without it every page is a small sign-in page.
        """
        return Page(
            self.port,
            "/allocation/request-list",
            {"Cookie": self.cookie},
            lambda body: body.count('value="auto-approve"') == waiting,
        )

    def list(self) -> Page:
        """The first page of all allocations, which counts only with its 25 rows."""
        return Page(
            self.port,
            "/allocation/?show_all_allocations=on",
            {"Cookie": self.cookie},
            lambda body: len(ROW.findall(body)) == ROWS,
        )

    def detail(self, number: int) -> Page:
        """The page of one allocation."""
        path = f"/allocation/{number}/"
        return Page(
            self.port,
            path,
            {"Cookie": self.cookie},
            lambda body: "Allocation Information" in body,
        )


@contextmanager
def started(rig: Rig, *, requests: int, waiting: int) -> Iterator[ColdFront]:
    """ColdFront with so many allocations until the block ends; raises RuntimeError when it cannot be set up."""
    install()
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(TemporaryDirectory(prefix="coldfront-", dir=rig.folder))
        )
        rig.postgres.execute("CREATE DATABASE coldfront")
        stack.callback(rig.postgres.execute, "DROP DATABASE coldfront WITH (FORCE)")
        yield stack.enter_context(
            _serving(rig, folder, requests=requests, waiting=waiting)
        )


@contextmanager
def _serving(
    rig: Rig, folder: Path, *, requests: int, waiting: int
) -> Iterator[ColdFront]:
    (folder / "static").mkdir()
    variables = {
        "DB_URL": f"psql://quartermaster:x@127.0.0.1:{rig.postgres.port}/coldfront",
        "SECRET_KEY": secrets.token_urlsafe(32),
        "DEBUG": "False",
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "STATIC_ROOT": str(folder / "static"),
        "PLUGIN_API": "True",
        "SEED_REQUESTS": str(requests),
        "SEED_WAITING": str(waiting),
    }
    _manage(folder, variables, "initial_setup", "-f")
    _manage(folder, variables, "load_test_data")
    _manage(folder, variables, "collectstatic", "--noinput")
    said = _manage(folder, variables, "shell", words=SEED.read_text())
    settle(rig, "coldfront")
    made = json.loads(said.splitlines()[-1])
    command = [program("gunicorn", ENVIRONMENT), "coldfront.config.wsgi"]
    with serving("ColdFront", rig, command, _clean(variables)) as port:
        yield ColdFront(port, f"{made['name']}={made['key']}", made["allocations"])


def install() -> None:
    """Put its packages into the cache folder, once; raises RuntimeError with pip's last words."""
    stamp = ENVIRONMENT / ".installed"
    if stamp.exists() and stamp.read_text() == "\n".join(PACKAGES):
        return
    print(f"bench: installing ColdFront {VERSION} into {ENVIRONMENT}", flush=True)
    ENVIRONMENT.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], CACHE, {})
    pip = [
        str(ENVIRONMENT / "bin" / "pip"),
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-input",
    ]
    _run([*pip, *PACKAGES], CACHE, {})
    stamp.write_text("\n".join(PACKAGES))


def _manage(
    folder: Path, variables: Mapping[str, str], *command: str, words: str = "yes\n" * 9
) -> str:
    return _run(
        [program("coldfront", ENVIRONMENT), *command], folder, _clean(variables), words
    )


def _clean(variables: Mapping[str, str]) -> dict[str, str]:
    # The portal's settings module must not become ColdFront's.
    return {**variables, "DJANGO_SETTINGS_MODULE": "coldfront.config.settings"}


def _run(
    command: list[str], folder: Path, variables: Mapping[str, str], words: str = ""
) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | dict(variables),
        input=words,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command[:3])} failed:\n{(done.stdout + done.stderr)[-2000:]}"
        )
    return done.stdout

"""One process with the libraries loaded, from which the product's processes are forked: each starts in half the time.

Nothing of the product is loaded before the fork: a child runs `python -m …` with an environment, a session and a log of
its own, and is killed by its own id.
"""

import atexit
import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

LIBRARIES = (
    "celery.bin.celery",
    "celery.apps.worker",
    "celery.apps.beat",
    "celery.concurrency.solo",
    "celery.concurrency.prefork",
    "celery.worker.strategy",
    "celery.fixups.django",
    "kombu.transport.redis",
    "kombu.transport.virtual.exchange",
    "redis",
    "psycopg",
    "psycopg_pool",
    "django.db.backends.postgresql.features",
    "django.core.handlers.asgi",
    "django.db.models",
    "django.forms",
    "django.template",
    "django.views",
    "kubernetes.client",
    "kubernetes.config",
    "msal",
    "requests",
    "jwt",
    "yaml",
    "structlog",
    "pydantic_settings",
    "gunicorn.app.wsgiapp",
    "email.mime.text",
    "smtplib",
)


class Child:
    """A forked process, as far as tests ask a `subprocess.Popen` about one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended, None while it runs; negative for a signal."""
        if self.returncode is None:
            self.returncode = _server().ask({"poll": self.pid})
        return self.returncode

    def wait(self) -> int:
        """Wait until it has ended."""
        if self.returncode is None:
            self.returncode = _server().ask({"wait": self.pid})
        assert self.returncode is not None
        return self.returncode


def start(
    module: Sequence[str], *, environment: Mapping[str, str], log: Path, folder: Path
) -> Child:
    """Run `python -m module…` in a new session."""
    asked = {
        "run": list(module),
        "env": dict(environment),
        "log": str(log),
        "cwd": str(folder),
    }
    return Child(_server().ask(asked))


class Server:
    """The process that forks, from its parent's side."""

    def __init__(self) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
        )

    def ask(self, what: Mapping[str, Any]) -> Any:
        """One question, one answer."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write(json.dumps(what) + "\n")
        self.popen.stdin.flush()
        return json.loads(self.popen.stdout.readline())

    def close(self) -> None:
        """End it; children have been ended by whoever started them."""
        self.popen.communicate()


@cache
def _server() -> Server:
    server = Server()
    atexit.register(server.close)
    return server


def _serve() -> None:
    for name in LIBRARIES:
        import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        if "run" in asked:
            answer: int | None = os.fork()
            if answer == 0:
                _become(asked)
        else:
            pid = asked.get("poll", asked.get("wait"))
            done, status = os.waitpid(pid, os.WNOHANG if "poll" in asked else 0)
            answer = os.waitstatus_to_exitcode(status) if done else None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _become(asked: Mapping[str, Any]) -> None:
    """Be the program, from here to the end of the process."""
    os.setsid()
    os.chdir(asked["cwd"])
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv, sys.path[0] = asked["run"], asked["cwd"]
    code: Any = 0
    try:
        runpy.run_module(asked["run"][0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


if __name__ == "__main__":
    _serve()

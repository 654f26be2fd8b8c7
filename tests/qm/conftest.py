"""The client in a terminal of its own, before a portal that is served or before a server that misbehaves."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from django.utils import timezone

from accounts.models import User
from portal.http.handler import OneThreadHandler
from qm import awaiting, calls, following, workers
from qm.commands import qm
from sandbox.serving import Served, listen, port_of
from tests.calling import token_of
from tests.directory import directory, entra_server
from tests.qm.misbehaving import Misbehaving, misbehaving
from tests.services.process import wait_until
from tests.serving import serving
from tests.workloads.conftest import (
    Watched,
    is_read,
    is_seen,
    kubernetes,
    kubernetes_server,
    watched,
    watching,
    worker_pass,
)
from workloads.models import ClusterAbility, Run

__all__ = ["directory", "entra_server", "kubernetes", "kubernetes_server", "watched"]


@dataclass
class Terminal:
    """Where commands are typed; its home is empty, and its environment says which portal and token."""

    home: Path
    environment: dict[str, str | None] = field(default_factory=dict)

    def __call__(
        self, *typed: str, given: str | None = None, **environment: str | None
    ) -> Result:
        """Run a command; what is no orderly end of a command is raised."""
        whole = {
            "XDG_CONFIG_HOME": str(self.home),
            "HOME": str(self.home),
            "TZ": "UTC",
            **self.environment,
        }
        return CliRunner().invoke(
            qm, typed, input=given, env=whole | environment, catch_exceptions=False
        )

    def json(self, *typed: str) -> Any:
        """What a command prints on stdout, as JSON."""
        done = self(*typed, "--json")
        if done.exit_code:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """One whose person has not signed in."""
    return Terminal(
        tmp_path / "home", {"QM_URL": None, "QM_TOKEN": None, "NO_COLOR": None}
    )


@dataclass
class Signed:
    """A person who is signed in to a portal with a team on a served cluster, and the worker's passes."""

    watched: Watched
    url: str
    terminal: Terminal

    def of(self, user: User) -> Terminal:
        """The terminal of somebody else."""
        environment = {**self.terminal.environment, "QM_TOKEN": token_of(user)}
        return Terminal(self.terminal.home, environment)

    def step(self, *_: object) -> None:
        """What worker and clock do meanwhile: send what is to be sent, and read what became of it."""
        worker_pass()

    def until(self, state: str) -> None:
        """Until every run is in this state."""

        def reached() -> bool:
            self.step()
            return all(is_seen(run, state) for run in Run.objects.all())

        wait_until(reached, what=f"the runs to be {state}")


@pytest.fixture
def signed(watched: Watched, terminal: Terminal) -> Iterator[Signed]:
    """Ada, whose team has 2 A100, before a portal that is served as in production."""
    bound = listen(0)
    url = f"http://127.0.0.1:{port_of(bound)}"
    terminal.environment |= {"QM_URL": url, "QM_TOKEN": token_of(watched.ada)}
    portal: Any = OneThreadHandler()
    ClusterAbility.objects.create(
        cluster=watched.cluster,
        kinds=["Job.batch/v1"],
        integrations=None,
        seen_at=timezone.now(),
    )
    with serving(Served(portal, bound, None)):
        yield Signed(watched, url, terminal)


@pytest.fixture
def busy(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Signed]:
    """The same while its cluster is watched; whoever waits lets the worker do a pass."""
    monkeypatch.setattr(following, "sleep", signed.step)
    monkeypatch.setattr(workers, "sleep", signed.step)
    monkeypatch.setattr(awaiting, "sleep", signed.step)
    with watching(signed.watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        yield signed


@pytest.fixture
def server(terminal: Terminal) -> Iterator[Misbehaving]:
    """A server that answers as a test says, to whoever is signed in to it."""
    with misbehaving() as running:
        terminal.environment |= {"QM_URL": running.url, "QM_TOKEN": "qm_secret"}
        yield running


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have slept each time; it does not."""
    slept: list[float] = []
    note: Callable[[float], None] = slept.append
    monkeypatch.setattr(calls, "sleep", note)
    monkeypatch.setattr(following, "sleep", note)
    monkeypatch.setattr(workers, "sleep", note)
    monkeypatch.setattr(awaiting, "sleep", note)
    return slept

"""A Git host beside a demo: one repository over HTTPS, whose changes go through pull requests, and what opens it."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import certificates
from tests.pull_requests import Hub
from tests.remotes import Served, bare, over_https

ROBOT = "fleet-robot"


@dataclass(frozen=True)
class GitHost:
    """The host, with the settings of a portal that may call it."""

    hub: Hub
    served: Served
    credentials: Path

    @property
    def repository(self) -> str:
        """The address of its repository."""
        return f"https://{self.served.host}/platform/fleet.git"

    @property
    def settings(self) -> dict[str, str]:
        """As a demo takes them."""
        return {
            "GIT_HOSTS_ALLOWED": json.dumps([self.served.host]),
            "GIT_CREDENTIALS_DIR": str(self.credentials),
        }


@contextmanager
def git_host(data: Path) -> Iterator[GitHost]:
    """Served while the block lasts, by the certificate of the demo whose data this is."""
    folder, credentials, token = (
        data / "git-host",
        data / "git-credentials",
        secrets.token_urlsafe(16),
    )
    theirs = bare(folder, "platform/fleet.git")
    theirs.push({"README.md": b"The fleet.\n"})
    credentials.mkdir(mode=0o700)
    (credentials / ROBOT).touch(mode=0o600)
    (credentials / ROBOT).write_text(f"{token}\n")
    hub, shown = Hub(theirs), certificates.ensure(data / "sandbox")
    with over_https(folder, folder, token=token, api=hub, shown=shown) as served:
        yield GitHost(hub, served, credentials)

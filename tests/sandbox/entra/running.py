"""Entra and Graph served over TLS for one test module, and a browser to sign in with."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from connectors.entra import Entra, EntraSettings
from sandbox import certificates, world
from sandbox.entra import EntraSandbox
from sandbox.serving import Served, listen, port_of
from tests.serving import serving

CALLBACK = "http://127.0.0.1:8000/accounts/callback"
DEADLINE = 20.0


@dataclass(frozen=True)
class Running:
    """A served sandbox and ways to reach it as its users do."""

    sandbox: EntraSandbox
    ca: Path

    @property
    def tenant(self) -> str:
        return self.sandbox.authority

    @property
    def graph_url(self) -> str:
        return f"{self.sandbox.base}/v1.0"

    def client(self) -> httpx.Client:
        """A client that trusts the sandbox alone and follows nothing by itself."""
        context = ssl.create_default_context(cafile=self.ca)
        return httpx.Client(
            verify=context,
            trust_env=False,
            timeout=DEADLINE,
            base_url=self.sandbox.base,
        )

    def admin(self, method: str, path: str, /, **body: Any) -> httpx.Response:
        """Call as the sandbox's administrator."""
        headers = {"Authorization": f"Bearer {self.sandbox.admin_secret}"}
        with self.client() as client:
            answer = client.request(method, path, headers=headers, json=body)
        assert answer.is_success, answer.text
        return answer

    def token(self, **wishes: Any) -> str:
        """A token signed to any wish."""
        return str(self.admin("POST", "/sandbox/tokens", **wishes).json()["token"])

    def entra(self, **changes: Any) -> Entra:
        """A new connector."""
        return Entra(EntraSettings(**(self._settings() | changes)))

    def sign_in(self, auth_uri: str, person: str) -> dict[str, str]:
        """Choose a person on the page, as a browser would, and return the query of the callback."""
        with self.client() as client:
            page = client.get(auth_uri)
            assert page.status_code == 200, page.text
            assert f'value="{person}"' in page.text
            answer = client.post(auth_uri, data={"person": person})
        assert answer.status_code == 302, answer.text
        return callback_query(answer)

    def _settings(self) -> dict[str, Any]:
        return {
            "authority": self.tenant,
            "tenant_id": self.sandbox.world.tenant_id,
            "client_id": self.sandbox.world.client_id,
            "client_secret": self.sandbox.client_secret,
            "ca_file": str(self.ca),
        }


def callback_query(answer: httpx.Response) -> dict[str, str]:
    """The query a browser brings to the callback."""
    location = answer.headers["location"]
    assert location.startswith(CALLBACK)
    return dict(parse_qsl(urlsplit(location).query))


@contextmanager
def running(directory: Path, page_size: int = 100) -> Iterator[Running]:
    """Serve a fresh sandbox in a thread of its own."""
    shown = certificates.ensure(directory)
    socket = listen(0)
    sandbox = EntraSandbox(
        world.sample(), f"https://localhost:{port_of(socket)}", page_size=page_size
    )
    with serving(Served(sandbox.app, socket, shown)):
        yield Running(sandbox, shown.ca)


@contextmanager
def as_it_was(server: Running) -> Iterator[Running]:
    """The server in its first state, without faults, and put back in order afterwards."""
    sandbox, first = server.sandbox, server.sandbox.snapshot()
    yield server
    sandbox.restore(first)
    sandbox.issuer.wishes = {}
    sandbox.issuer.api_version = 2
    server.admin("DELETE", "/sandbox/faults")

"""Azure Resource Manager served over TLS, with Entra ID and two small clusters, and Microsoft's clients for it."""

import json
import ssl
from asyncio import AbstractEventLoop
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import ClientSecretCredential

from connectors.azure.session import AzureSession, AzureSettings
from sandbox import azure_world, certificates, clusters, world
from sandbox.azure import AzureSandbox
from sandbox.credentials import Credentials
from sandbox.entra import EntraSandbox
from sandbox.kubernetes import Cluster
from sandbox.serving import Served, listen, port_of
from tests.serving import in_loop, serving

SUBSCRIPTION = azure_world.SUBSCRIPTION_ID
GROUP = azure_world.RESOURCE_GROUP
HERE = f"/subscriptions/{SUBSCRIPTION}"
INSIDE = f"{HERE}/resourceGroups/{GROUP}/providers"
DEADLINE = 20.0


@dataclass(frozen=True)
class Running:
    """A served subscription and ways to reach it as its users do."""

    azure: AzureSandbox
    ca: Path
    clusters: dict[str, Cluster]
    loop: AbstractEventLoop
    first: dict[str, str] = field(default_factory=dict)
    opened: list[Any] = field(default_factory=list)

    def begin_anew(self) -> None:
        """Take everything back to how it was at first."""
        for name, cluster in self.clusters.items():
            if cluster.dirty:
                cluster.restore(json.loads(self.first[name]))
        self.azure.restore(json.loads(self.first["azure"]))
        self.azure.asked.clear()

    @property
    def settings(self) -> AzureSettings:
        """What the portal's connectors take: the application with its secret."""
        daemon = self.azure.entra.daemon
        assert daemon is not None
        return AzureSettings(
            subscription_id=SUBSCRIPTION,
            tenant_id=self.azure.entra.world.tenant_id,
            client_id=self.azure.spec.client_id,
            credential="client_secret",
            client_secret=daemon.secret,
            arm_url=self.azure.base,
            authority=self.azure.entra.base,
            ca_file=str(self.ca),
        )

    def session(self, **changes: Any) -> AzureSession:
        """A session of the portal's connectors, closed after the test."""
        made = AzureSession(replace(self.settings, **changes))
        self.opened.append(made)
        return made

    def transport(self) -> RequestsTransport:
        """A way to send that trusts the sandbox alone."""
        made = RequestsTransport(
            connection_verify=str(self.ca),
            use_env_settings=False,
            read_timeout=DEADLINE,
        )
        self.opened.append(made)
        return made

    def credential(self, **changes: Any) -> ClientSecretCredential:
        """The application's credential."""
        given = self.settings
        options = {
            "tenant_id": given.tenant_id,
            "client_id": given.client_id,
            "client_secret": given.client_secret,
            "authority": given.authority,
            **changes,
        }
        return ClientSecretCredential(
            **options,
            disable_instance_discovery=True,
            transport=self.transport(),
            retry_total=0,
        )

    def client(self, kind: Any, **changes: Any) -> Any:
        """A client of Microsoft's that has no long patience."""
        options = {
            "credential": self.credential(),
            "subscription_id": SUBSCRIPTION,
            "base_url": self.azure.base,
            "transport": self.transport(),
            "polling_interval": 0,
            "retry_total": 0,
            **changes,
        }
        return kind(**options)

    def http(self) -> httpx.Client:
        """A plain client that trusts the sandbox alone."""
        context = ssl.create_default_context(cafile=self.ca)
        return httpx.Client(
            verify=context, trust_env=False, timeout=DEADLINE, base_url=self.azure.base
        )

    def admin(self, method: str, path: str, /, **body: Any) -> httpx.Response:
        """Call as the sandbox's administrator."""
        return self._admin(method, path, self.azure.admin_secret, body)

    def entra(self, method: str, path: str, /, **body: Any) -> httpx.Response:
        """Call Entra ID as its administrator."""
        entra = self.azure.entra
        return self._admin(method, f"{entra.base}{path}", entra.admin_secret, body)

    def _admin(
        self, method: str, url: str, secret: str, body: dict[str, Any]
    ) -> httpx.Response:
        with self.http() as client:
            answer = client.request(
                method, url, headers={"Authorization": f"Bearer {secret}"}, json=body
            )
        assert answer.is_success, answer.text
        return answer

    def fault(self, method: str, path: str, /, **what: Any) -> None:
        """Have the next call of a method whose path matches go wrong."""
        self.admin(
            "POST",
            "/sandbox/faults",
            match={"method": method, "path_regex": path},
            **what,
        )

    def pace(self, seconds: float) -> None:
        """Say how long operations take."""
        self.admin("POST", "/sandbox/operations", seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Set Azure's clock forward."""
        self.admin("POST", "/sandbox/clock", advance=seconds)

    def nodes(self, cluster: str, pool: str) -> list[str]:
        """The nodes of a pool, as the Kubernetes cluster itself has them."""
        return [machine.name for machine in self.azure.fleet.machines(cluster, pool)]


@contextmanager
def running(directory: Path) -> Iterator[Running]:
    """Serve a fresh sandbox in a thread of its own; operations are over at once until a test says otherwise."""
    shown = certificates.ensure(directory)
    sample, credentials = (
        world.sample(),
        Credentials.open(directory / "credentials.json"),
    )
    assert sample.azure is not None
    entra_socket, azure_socket = listen(0), listen(0)
    entra = EntraSandbox(sample, f"https://localhost:{port_of(entra_socket)}")
    made = {
        spec.name: clusters.build(spec, entra.directory, credentials, "", None)
        for spec in sample.clusters
    }
    base = f"https://localhost:{port_of(azure_socket)}"
    azure = AzureSandbox(
        sample.azure, base, entra, made, sample.clusters, admin_secret="admin-secret"
    )
    azure.operations.seconds = 0
    first = {
        "azure": json.dumps(azure.snapshot()),
        **{name: json.dumps(cluster.snapshot()) for name, cluster in made.items()},
    }
    with serving(
        Served(entra.app, entra_socket, shown), Served(azure.app, azure_socket, shown)
    ) as loop:
        yield Running(azure, shown.ca, made, loop, first)


@contextmanager
def as_it_was(server: Running) -> Iterator[Running]:
    """The server in its first state, without faults, and put back in order afterwards."""
    yield server
    while server.opened:
        server.opened.pop().close()
    server.admin("DELETE", "/sandbox/faults")
    server.entra("DELETE", "/sandbox/faults")
    server.pace(0)
    in_loop(server.loop, server.begin_anew)

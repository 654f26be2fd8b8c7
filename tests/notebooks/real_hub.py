"""A real JupyterHub with its proxy and KubeSpawner beside a sandbox, and a portal that answers as a test says."""

import asyncio
import json
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urljoin

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from connectors.jupyterhub import HubServer, JupyterHub
from notebooks.profiles.document import Document
from notebooks.profiles.spawning import profile_list
from sandbox import certificates
from sandbox.jupyterhub.environment import install
from sandbox.jupyterhub.fronting import front
from sandbox.jupyterhub.processes import Hub
from sandbox.jupyterhub.rights import Rights
from sandbox.serving import Served, listen, port_of
from sandbox.world import person_id
from tests.notebooks.documents import a100, cpu, place
from tests.services.process import wait_until
from tests.serving import serving

ROOT = Path(__file__).parents[2]
CLUSTER = "training-eastus"
TEAM, OTHER = "qm-vision-main-1a2b3c", "qm-vision-other-4d5e6f"
ADA, BEN = person_id(1), person_id(2)
KEY = "qmh_0123456789_secret"
DEADLINE = 60.0
SILENT_SECONDS = 5.0


@dataclass
class PortalOfTests:
    """What the portal answers: profiles by username, nothing at all while it is away; `asked` are the queries."""

    profiles: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    away: Response | None = None
    is_silent: bool = False
    # The address of a real portal, which is asked in place of answering here.
    forwarded_to: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)

    def go_away(self, how: str) -> None:
        """Answer as a portal does not that is there."""
        self.away = {
            "errors": PlainTextResponse("bad gateway", 502),
            "another answer": JSONResponse(
                {"username": "somebody else", "profiles": []}
            ),
            "no answer in time": None,
        }[how]
        self.is_silent = self.away is None

    def come_back(self) -> None:
        """Answer again."""
        self.away, self.is_silent = None, False

    def offer(self, username: str, *documents: Document, namespace: str = TEAM) -> None:
        """Offer somebody these profiles in a namespace, as the portal makes a list of them."""
        made = profile_list(documents, place(namespace=namespace))
        self.profiles[username] = [
            {**one, "slug": f"{one['slug']}--{namespace}"} for one in made
        ]

    @property
    def app(self) -> Starlette:
        """The application."""
        return Starlette(routes=[Route("/api/v1/hub/profiles/", self._answer)])

    async def _answer(self, request: Request) -> Response:
        self.asked.append(dict(request.query_params))
        if self.is_silent:
            await asyncio.sleep(SILENT_SECONDS)
        if self.away is not None:
            return self.away
        if self.forwarded_to:
            return await self._forward(request)
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return JSONResponse({"code": "not_authenticated"}, 401)
        username = request.query_params["username"]
        if username not in self.profiles:
            return JSONResponse(
                {
                    "username": username,
                    "profiles": [],
                    "reason": "You have left the team.",
                }
            )
        return JSONResponse({"username": username, "profiles": self.profiles[username]})

    async def _forward(self, request: Request) -> Response:
        url = f"{self.forwarded_to}{request.url.path}?{request.url.query}"
        async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE) as client:
            answer = await client.get(
                url, headers={"Authorization": request.headers["authorization"]}
            )
        return Response(
            answer.content, answer.status_code, media_type="application/json"
        )


@dataclass
class RealHub:
    """One of each; `told` is what the sandbox wrote down."""

    portal: PortalOfTests
    hub: Hub
    told: dict[str, Any]
    address: str

    @property
    def cluster(self) -> dict[str, Any]:
        """The cluster's part of it."""
        found: dict[str, Any] = self.told["kubernetes"][CLUSTER]
        return found

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """Trust in the sandbox's authority alone."""
        return ssl.create_default_context(cafile=self.told["ca"])

    def api(self, *, token: str = "") -> JupyterHub:
        """The portal's connector for it."""
        allowed = (self.address.removeprefix("https://"),)
        return JupyterHub(
            self.address,
            token or self.hub.token,
            allowed=allowed,
            ca_file=self.told["ca"],
        )

    def kubernetes(self, method: str, path: str, body: Any = None) -> Any:
        """Call the cluster as its administrator; None where there is nothing."""
        headers = {"Authorization": f"Bearer {self.cluster['tokens']['admin']}"}
        with httpx.Client(
            verify=self.trust, trust_env=False, timeout=DEADLINE
        ) as client:
            answer = client.request(
                method, f"{self.cluster['server']}{path}", headers=headers, json=body
            )
        if answer.status_code == 404:
            return None
        assert answer.is_success or answer.status_code == 409, answer.text
        return answer.json()

    @contextmanager
    def asking(self, portal: str, key: str) -> Iterator[None]:
        """Have the hub ask a real portal with this key, while the block lasts."""
        file = self.hub.data / "key"
        self.portal.forwarded_to = portal
        file.write_text(key)
        try:
            yield
        finally:
            self.portal.forwarded_to = ""
            file.write_text(KEY)

    def namespace(self, name: str) -> None:
        """Make a team's namespace, in which the hub gets its rights."""
        # Stricter than the portal's: what it warns of is refused.
        labels = {
            "quartermaster.io/group": "0",
            "pod-security.kubernetes.io/enforce": "restricted",
        }
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        }
        self.kubernetes("POST", "/api/v1/namespaces", body)
        self._queue(name)
        Rights(self.cluster, self.told["ca"]).follow()

    def _queue(self, name: str) -> None:
        """The queue of a namespace, with room for everything: pods that name it wait for it."""
        api = "kueue.x-k8s.io/v1beta2"
        resources = ["cpu", "memory", "nvidia.com/gpu"]
        quotas = [{"name": one, "nominalQuota": "1000Gi"} for one in resources]
        flavors = [{"name": name, "resources": quotas}]
        groups = [{"coveredResources": resources, "flavors": flavors}]
        made = {
            "resourceflavors": ("ResourceFlavor", name, {}),
            "clusterqueues": (
                "ClusterQueue",
                name,
                {"namespaceSelector": {}, "resourceGroups": groups},
            ),
            f"namespaces/{name}/localqueues": (
                "LocalQueue",
                "default",
                {"clusterQueue": name},
            ),
        }
        for path, (kind, called, spec) in made.items():
            body = {
                "apiVersion": api,
                "kind": kind,
                "metadata": {"name": called},
                "spec": spec,
            }
            self.kubernetes("POST", f"/apis/{api}/{path}", body)

    def pods(self, namespace: str = TEAM) -> list[dict[str, Any]]:
        """The pods of notebooks in a namespace."""
        query = "labelSelector=component%3Dsingleuser-server"
        found: list[dict[str, Any]] = self.kubernetes(
            "GET", f"/api/v1/namespaces/{namespace}/pods?{query}"
        )["items"]
        return found

    def wait_ready(self, name: str, username: str = ADA) -> HubServer:
        """Wait until a server of somebody is ready."""
        wait_until(
            lambda: self.server(name, username).is_ready, what=f"{name} to be ready"
        )
        return self.server(name, username)

    def server(self, name: str, username: str = ADA) -> HubServer:
        """A server that there is; a failure of its start is the test's."""
        found = self.api().server(username, name)
        assert found is not None
        assert not found.is_stopped, self.api().failure(username, name)
        return found

    def person(self, oid: str) -> "PersonAtHub":
        """Somebody who signs in at the hub with a browser."""
        return PersonAtHub(self.hub.browser, oid, self.told["ca"])


class PersonAtHub:
    """A browser without JavaScript, signed in at the hub over the sandbox's Entra ID."""

    def __init__(self, address: str, oid: str, ca: str) -> None:
        self._address = address
        context = ssl.create_default_context(cafile=ca)
        self.client = httpx.Client(
            verify=context, trust_env=False, timeout=DEADLINE, follow_redirects=True
        )
        page = self.client.get(f"{address}/hub/oauth_login")
        assert "authorize" in str(page.url), page.text
        self.client.post(str(page.url), data={"person": oid}).raise_for_status()

    def close(self) -> None:
        """Close it."""
        self.client.close()

    def get(self, path: str) -> httpx.Response:
        """Open a page."""
        return self.client.get(urljoin(self._address, path))

    def spawn(self, name: str, form: dict[str, str]) -> httpx.Response:
        """Post the hub's own form for a server, whatever it showed."""
        path = f"/hub/spawn/{self.username}/{name}".rstrip("/")
        page = self.get(path)
        found = re.search(r'_xsrf=([^"&]+)', page.text)
        assert found, page.text
        return self.client.post(f"{self._address}{path}?_xsrf={found[1]}", data=form)

    @cached_property
    def username(self) -> str:
        """By which the hub knows them."""
        found = re.search(
            r'data-name="user" content="([^"]+)"|user: "([^"]+)"',
            self.get("/hub/home").text,
        )
        assert found
        return found[1] or found[2]


@contextmanager
def real_hub(folder: Path) -> Iterator[RealHub]:
    """All of it, while the block lasts; the first time the hub is installed, in a minute and a half."""
    install()
    portal, listening, before = PortalOfTests(), listen(0), listen(0)
    with _sandbox(folder / "sandbox") as told:
        address = f"http://127.0.0.1:{port_of(listening)}"
        hub = Hub(
            folder / "hub",
            told["kubernetes"][CLUSTER],
            told["entra"],
            told["ca"],
            address,
            KEY,
        )
        made = RealHub(portal, hub, told, f"https://127.0.0.1:{port_of(before)}")
        with _served(made, listening, before, folder / "sandbox"):
            Rights(made.cluster, told["ca"]).grant()
            made.namespace(TEAM)
            hub.start()
            try:
                yield made
            finally:
                hub.stop()


@contextmanager
def _served(
    made: RealHub, listening: socket, before: socket, folder: Path
) -> Iterator[None]:
    """The portal of tests, and HTTPS before the hub, in one loop."""
    port, shown = int(made.hub.browser.rpartition(":")[2]), certificates.ensure(folder)
    with serving(
        Served(made.portal.app, listening, None),
        beside=lambda stop: front(before, port, shown, stop),
    ):
        yield


@contextmanager
def _sandbox(data: Path) -> Iterator[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "sandbox",
        "--data",
        str(data),
        "--port-sign-in",
        "0",
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "sandbox ready\n"
            yield json.loads((data / "sandbox.json").read_text())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def usual(hub: RealHub) -> None:
    """Offer Ada what most tests begin with: a profile with GPUs and one without."""
    hub.portal.come_back()
    hub.portal.offer(ADA, a100(), cpu())

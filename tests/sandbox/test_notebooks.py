"""Stand-ins for notebook servers: they answer at the address of a pod while it runs, and tell its hub of activity."""

import json
import threading
from asyncio import AbstractEventLoop
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from sandbox.kubernetes import Cluster, Identity, NodeSpec
from sandbox.notebooks import Notebooks
from sandbox.serving import Served, listen, port_of
from tests.services.process import wait_until
from tests.serving import serving

ADMIN = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Running:
    """A cluster that is served beside its stand-ins."""

    cluster: Cluster
    url: str
    loop: AbstractEventLoop

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """An administrator's request."""
        answer = httpx.request(
            method, f"{self.url}{path}", headers=ADMIN, json=body, trust_env=False
        )
        assert answer.is_success, answer.text
        return answer.json()

    def start(self, name: str = "jupyter-ada", **environment: str) -> dict[str, Any]:
        """Make the pod of a notebook and wait until it runs."""
        env = [{"name": key, "value": value} for key, value in environment.items()]
        container = {
            "name": "notebook",
            "image": "registry.example.com/notebook:1",
            "ports": [{"containerPort": 8888}],
            "env": env,
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }
        metadata = {"name": name, "labels": {"component": "singleuser-server"}}
        self.call(
            "POST", PODS, {"metadata": metadata, "spec": {"containers": [container]}}
        )
        wait_until(
            lambda: self.pod(name)["status"]["phase"] == "Running",
            what="the pod to run",
        )
        return self.pod(name)

    def pod(self, name: str) -> dict[str, Any]:
        """A pod as it is now."""
        found: dict[str, Any] = self.call("GET", f"{PODS}/{name}")
        return found


@pytest.fixture
def running() -> Iterator[Running]:
    cluster = Cluster(
        "dev",
        nodes=[NodeSpec("a-0", gpus=8)],
        tokens={"admin": Identity("admin", ("system:masters",))},
    )
    socket, notebooks = listen(0), Notebooks([cluster])
    with serving(Served(cluster.app, socket, None), beside=notebooks.serve) as loop:
        yield Running(cluster, f"http://127.0.0.1:{port_of(socket)}", loop)


def page(url: str) -> httpx.Response | None:
    """A page, None where nobody listens."""
    try:
        return httpx.get(url, trust_env=False)
    except httpx.TransportError:
        return None


@pytest.mark.slow
def test_a_page_answers_at_the_pods_address_while_it_runs(running: Running) -> None:
    ip = running.start(
        JUPYTERHUB_SERVICE_PREFIX="/user/ada/nb-1/", JUPYTERHUB_SERVER_NAME="<b>"
    )["status"]["podIP"]
    assert ip.startswith("127.")
    assert ip not in ("127.0.0.1", running.start("another")["status"]["podIP"])
    wait_until(
        lambda: page(f"http://{ip}:8888/user/ada/nb-1/api") is not None, what="the page"
    )
    answer = page(f"http://{ip}:8888/user/ada/nb-1/lab/tree")
    assert answer is not None
    assert "the sandbox's stand-in for Jupyter: no kernel runs here" in answer.text
    assert "1 × nvidia.com/gpu" in answer.text
    assert "Notebook &lt;b&gt;" in answer.text
    elsewhere = page(f"http://{ip}:8888/")
    assert elsewhere is not None
    assert elsewhere.headers["location"] == "/user/ada/nb-1/"
    running.call("DELETE", f"{PODS}/jupyter-ada")
    wait_until(
        lambda: page(f"http://{ip}:8888/user/ada/nb-1/api") is None, what="its end"
    )


def test_other_pods_have_addresses_that_nobody_reaches(running: Running) -> None:
    metadata = {"name": "plain", "annotations": {"test/run-for": "600"}}
    container = {"name": "main", "image": "busybox"}
    running.call(
        "POST", PODS, {"metadata": metadata, "spec": {"containers": [container]}}
    )
    wait_until(
        lambda: running.pod("plain")["status"]["phase"] == "Running",
        what="the pod to run",
    )
    assert running.pod("plain")["status"]["podIP"].startswith("10.244.")


def test_who_opens_it_is_told_to_the_hub(running: Running) -> None:
    told: list[tuple[str | None, Any]] = []

    class Listening(BaseHTTPRequestHandler):
        """The hub's part."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.append((self.headers["authorization"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), Listening) as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        environment = {
            "JUPYTERHUB_ACTIVITY_URL": f"http://127.0.0.1:{hub.server_port}/hub/api/users/ada/activity",
            "JUPYTERHUB_API_TOKEN": "of-the-server",
            "JUPYTERHUB_SERVER_NAME": "nb-1",
            "JUPYTERHUB_SERVICE_PREFIX": "/nb/",
        }
        ip = running.start(**environment)["status"]["podIP"]
        wait_until(
            lambda: page(f"http://{ip}:8888/nb/api") is not None, what="the page"
        )
        wait_until(lambda: len(told) == 1, what="its first word")
        page(f"http://{ip}:8888/nb/lab")
        hub.shutdown()
        thread.join()
    assert [token for token, _ in told] == ["token of-the-server"] * 2
    assert [*told[1][1]["servers"]] == ["nb-1"]
    assert told[1][1]["last_activity"] > told[0][1]["last_activity"]


def test_a_hub_that_is_away_keeps_nobody_from_the_page(running: Running) -> None:
    environment = {
        "JUPYTERHUB_ACTIVITY_URL": "http://127.0.0.1:9/",
        "JUPYTERHUB_API_TOKEN": "x",
    }
    ip = running.start(**environment)["status"]["podIP"]
    wait_until(lambda: page(f"http://{ip}:8888/lab") is not None, what="the page")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "is_watch"),
    [("True", True), ("1", True), ("", True), ("false", False), ("0", False)],
)
def test_a_watch_is_asked_for_as_kubernetes_reads_it(
    running: Running, asked: str, is_watch: bool
) -> None:
    """The asynchronous client of Python, which KubeSpawner uses, writes True."""
    running.start()
    url = f"{running.url}{PODS}?watch={asked}&timeoutSeconds=1&resourceVersion=0"
    first = httpx.get(url, headers=ADMIN, trust_env=False).text.splitlines()[0]
    assert (json.loads(first).get("type") == "ADDED") is is_watch

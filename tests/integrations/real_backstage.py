"""A real Backstage backend beside the portal of a test, and somebody who is signed in there."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pytest_django import Settings

from accounts.directory import backstage as directory
from sandbox.backstage import CATALOG_TOKEN, NOTICES_TOKEN
from sandbox.world import group_id, person_id
from tests.backstages import connect
from tests.services.process import port_of, reserve_port, wait_until

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "integrations" / "backstage"
DEADLINE = 60.0
# Somebody of the directory's climate team, whose group has no team in the portal.
ALICE, CLIMATE = person_id(1), group_id(9)
PEOPLE = f"""
apiVersion: backstage.io/v1alpha1
kind: User
metadata:
  name: alice
  annotations:
    graph.microsoft.com/user-id: {ALICE}
spec:
  memberOf: []
---
apiVersion: backstage.io/v1alpha1
kind: Group
metadata:
  name: climate-people
  annotations:
    graph.microsoft.com/group-id: {CLIMATE}
spec:
  type: team
  children: []
"""
ENDED = {"completed", "failed", "cancelled"}


def install() -> None:
    """Have its packages, unless they are there."""
    subprocess.run([ROOT / "scripts" / "backstage.sh"], check=True)


@dataclass
class RealBackstage:
    """A backend; `client` is called as Alice, whom its guest provider signs in."""

    client: httpx.Client

    def join(self, settings: Settings) -> None:
        """Have the portal of these settings know the backend, and Alice be signed in there."""
        connect(settings, str(self.client.base_url))
        self._sign_in()
        self.sweep()

    def _sign_in(self) -> None:
        told = self.client.get("/api/auth/guest/refresh").json()
        token = told["backstageIdentity"]["token"]
        self.client.headers["Authorization"] = f"Bearer {token}"

    def actions(self) -> dict[str, Any]:
        """What steps of templates can do, by id."""
        told = self._get("/api/scaffolder/v2/actions")
        return {one["id"]: one for one in told}

    def run(self, template: str, values: Mapping[str, Any]) -> "Task":
        """Fill a template's form in and wait until its task has ended."""
        body = {"templateRef": f"template:default/{template}", "values": values}
        made = self.client.post("/api/scaffolder/v2/tasks", json=body)
        assert made.status_code == 201, made.text
        path = f"/api/scaffolder/v2/tasks/{made.json()['id']}"
        wait_until(lambda: self._get(path)["status"] in ENDED, what="the task to end")
        return Task(self._get(path)["status"], self._get(f"{path}/events"))

    def tool(self, method: str, **parameters: Any) -> Any:
        """What the MCP server answers."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        accept = {"Accept": "application/json, text/event-stream"}
        answer = self.client.post("/api/mcp-actions/v1", json=body, headers=accept)
        [data] = [
            line.removeprefix("data: ")
            for line in answer.text.splitlines()
            if line.startswith("data: ")
        ]
        told = json.loads(data)
        assert "result" in told, told
        return told["result"]

    def entity(self, kind: str, name: str) -> Any:
        """An entity of the catalog; None while there is none."""
        path = f"/api/catalog/entities/by-name/{kind}/default/{name}"
        answer = self.client.get(path)
        return answer.json() if answer.status_code == 200 else None

    def sweep(self) -> None:
        """Have the portal's teams read again, once a reading that is under way is over."""
        path = "/.backstage/scheduler/v1/tasks/quartermaster-teams/trigger"
        wait_until(
            lambda: self.client.post(f"/api/catalog{path}").status_code == 200,
            what="the teams to be read again",
        )

    def notifications(self) -> list[dict[str, Any]]:
        """What Alice sees in the list of notifications, the newest first."""
        found: list[dict[str, Any]] = self._get("/api/notifications/notifications")[
            "notifications"
        ]
        return found

    def _get(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass(frozen=True)
class Task:
    """A task that has ended, with all that its page shows."""

    status: str
    events: list[dict[str, Any]]

    @property
    def log(self) -> str:
        """What whoever waits for it reads."""
        return "\n".join(str(event["body"].get("message", "")) for event in self.events)

    @property
    def output(self) -> dict[str, Any]:
        """What the template gives."""
        found: dict[str, Any] = self.events[-1]["body"]["output"]
        return found


@contextmanager
def backstage(portal: str, *, folder: Path, token: str) -> Iterator[RealBackstage]:
    """A backend whose catalog knows Alice by her object id; `token` reads the portal's teams."""
    install()
    catalog = folder / "catalog.yaml"
    catalog.write_text(PEOPLE)
    with reserve_port() as held:
        port = port_of(held)
    environment = {
        "PATH": os.environ["PATH"],
        "NODE_OPTIONS": "--no-node-snapshot",
        "BACKSTAGE_PORT": str(port),
        "BACKSTAGE_CATALOG_TOKEN": CATALOG_TOKEN,
        "BACKSTAGE_NOTICES_TOKEN": NOTICES_TOKEN,
        "BACKSTAGE_CATALOG_FILE": str(catalog),
        "QUARTERMASTER_URL": portal,
        "QUARTERMASTER_TOKEN": token,
    }
    log = folder / "backstage.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            ["node", "tests/backend.mjs"],
            cwd=PACKAGE,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(
            lambda: "READY" in log.read_text() or process.poll() is not None,
            what="Backstage to be ready",
        )
        assert process.poll() is None, log.read_text()
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE
        ) as client:
            yield RealBackstage(client)
    finally:
        process.terminate()
        process.wait(DEADLINE)
        directory.connection.cache_clear()

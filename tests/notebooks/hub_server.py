"""A server that answers as JupyterHub 6.1.1's REST API does, whose servers come up and fail when a test says so.

What it answers is held against a real hub by tests/notebooks/test_real_hub.py. It shows faults that a real hub shows
seldom: it is away, throttles, loses an answer, forgets what was starting.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sandbox import certificates
from sandbox.serving import Served, listen, port_of
from tests.serving import serving

TOKEN = "portal-at-the-hub"
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass
class HubOfTests:
    """Servers by person and name, each as the API tells it; `calls` are the methods and paths that were asked."""

    users: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    away: Response | None = None
    lost_answers: int = 0
    comes_up_at_once: bool = False
    goes_at_once: bool = True
    address: str = ""
    ca_file: Path | None = None

    def come_up(self, name: str) -> None:
        """Have a server that starts be ready."""
        self._named(name).update(ready=True, pending=None, stopped=False)

    def fail(self, name: str, why: str) -> None:
        """Have the start of a server fail."""
        self._named(name).update(ready=False, pending=None, stopped=True)
        self.failures[name] = why

    def end(self, name: str) -> None:
        """Have a server end, as when its pod is deleted."""
        self._named(name).update(ready=False, pending=None, stopped=True)

    def used(self, name: str, at: datetime) -> None:
        """Have a server report that it was used."""
        self._named(name)["last_activity"] = at.isoformat()

    def start_inside(self, username: str, name: str, options: dict[str, Any]) -> None:
        """Start a server as a person does on the hub's own pages."""
        self.users.setdefault(username, {})[name] = self._server(
            username, name, "", options, ready=True
        )

    def options_of(self, name: str) -> dict[str, Any]:
        """The choices that a server was started with."""
        return dict(self._named(name)["user_options"])

    @property
    def app(self) -> Starlette:
        """The application."""
        server = "/hub/api/users/{user}/servers/{name}"
        return Starlette(
            routes=[
                Route("/hub/api/", self._info),
                Route("/hub/api/info", self._info),
                Route("/hub/api/users", self._list),
                Route("/hub/api/users/{user}", self._user, methods=["GET", "POST"]),
                Route(server, self._start_or_stop, methods=["POST", "DELETE"]),
                Route(f"{server}/progress", self._progress),
            ]
        )

    def _named(self, name: str) -> dict[str, Any]:
        return next(servers[name] for servers in self.users.values() if name in servers)

    def _refused(self, request: Request) -> Response | None:
        self.calls.append(
            f"{request.method} {request.url.path.removeprefix('/hub/api')}"
        )
        if self.away is not None:
            return self.away
        if request.headers.get("authorization") != f"token {TOKEN}":
            return _refusal(403, "Missing or invalid credentials.")
        return None

    async def _info(self, request: Request) -> Response:
        return self._refused(request) or JSONResponse({"version": "6.1.1"})

    async def _list(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        people = [
            {
                "name": user,
                "servers": {
                    name: one for name, one in servers.items() if not one["stopped"]
                },
            }
            for user, servers in self.users.items()
        ]
        return JSONResponse({"items": people, "_pagination": {"next": None}})

    async def _user(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        user = request.path_params["user"]
        if request.method == "POST":
            if user in self.users:
                return _refusal(409, f"User {user} already exists")
            self.users[user] = {}
            return JSONResponse({"name": user}, 201)
        if user not in self.users:
            return _refusal(404, "Not Found")
        return JSONResponse({"name": user, "servers": self.users[user]})

    async def _start_or_stop(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        user, name = request.path_params["user"], request.path_params["name"]
        servers = self.users.get(user, {})
        if request.method == "DELETE":
            return self._stop(servers, name)
        there = servers.get(name)
        if there is not None and there["ready"]:
            return _refusal(400, f"{user}:{name} is already running")
        if there is None or there["stopped"]:
            body = json.loads(await request.body() or b"{}")
            title, options = body.get("display_name", ""), body.get("user_options", {})
            servers[name] = self._server(
                user, name, title, options, ready=self.comes_up_at_once
            )
        if self.lost_answers:
            self.lost_answers -= 1
            return PlainTextResponse("<html>bad gateway</html>", 502)
        return Response(status_code=201 if servers[name]["ready"] else 202)

    def _stop(self, servers: dict[str, dict[str, Any]], name: str) -> Response:
        if name not in servers:
            return _refusal(404, f"No such server {name}")
        if not self.goes_at_once:
            servers[name].update(pending="stop", ready=False)
            return Response(status_code=202)
        del servers[name]
        return Response(status_code=204)

    async def _progress(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        why = self.failures.get(request.path_params["name"])
        if why is None:
            return _refusal(400, "is not starting")
        event = {"progress": 100, "failed": True, "message": why}
        return PlainTextResponse(
            f"data: {json.dumps(event)}\n\n", media_type="text/event-stream"
        )

    def _server(
        self, user: str, name: str, title: str, options: dict[str, Any], *, ready: bool
    ) -> dict[str, Any]:
        return {
            "name": name,
            "display_name": title,
            "ready": ready,
            "stopped": False,
            "pending": None if ready else "spawn",
            "url": f"/user/{user}/{name}/",
            "started": AT.isoformat(),
            "last_activity": AT.isoformat(),
            "user_options": options,
        }


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"status": status, "message": message}, status)


@contextmanager
def hub_of_tests(folder: Path) -> Iterator[HubOfTests]:
    """A hub over HTTPS on a free loopback port, while the block lasts."""
    made = HubOfTests()
    shown, socket = certificates.ensure(folder), listen(0)
    made.address, made.ca_file = f"https://localhost:{port_of(socket)}", shown.ca
    with serving(Served(made.app, socket, shown)):
        yield made

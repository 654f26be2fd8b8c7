"""Hubs that tests begin with: a connected one, and an HTTPS server that answers as a hub does, or does not."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import trustme
from django.utils import timezone

from fleet.models import Cluster
from notebooks.models import Hub

TOKEN = "portal-token-of-the-hub"


def hub(cluster: Cluster, **fields: Any) -> Hub:
    """A connected hub, past the action."""
    usual = {
        "address": f"https://{cluster.name}.example.com",
        "token_file": "hub",
        "next_look_at": timezone.now(),
    }
    return Hub.objects.create(cluster=cluster, **usual | fields)


@dataclass
class Served:
    """Where a hub is served, and what it answers: a status, a body, further headers. `paths` were called."""

    port: int
    ca_file: Path
    status: str = "200 OK"
    body: Any = field(default_factory=lambda: {"version": "6.1.1"})
    headers: list[tuple[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """As people open it."""
        return f"https://127.0.0.1:{self.port}"


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving_hub(folder: Path) -> Iterator[Served]:
    """Serve a hub on loopback until the block ends; it takes TOKEN alone."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def application(environ: Any, start_response: Any) -> list[bytes]:
        served.paths.append(environ["PATH_INFO"])
        status, body = served.status, served.body
        if environ.get("HTTP_AUTHORIZATION") != f"token {TOKEN}":
            status, body = (
                "403 Forbidden",
                {"status": 403, "message": "Missing or invalid credentials."},
            )
        text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        start_response(status, [("Content-Length", str(len(text))), *served.headers])
        return [text]

    server = WSGIServer(("127.0.0.1", 0), _Quiet)
    server.set_app(application)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    served = Served(server.server_port, folder / "ca.pem")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

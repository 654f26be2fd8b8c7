"""Calling an ASGI application without a socket."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from starlette.types import ASGIApp, Message


@dataclass
class Reply:
    """What the application sent."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def call(
    app: ASGIApp,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Reply:
    """One request and its whole answer; streams are read to their end. What is served runs in the server's `loop`."""
    where, _, text = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": method,
        "path": unquote(where),
        "query_string": (text or urlencode(query)).encode(),
        "headers": [
            (name.lower().encode(), value.encode()) for name, value in headers.items()
        ],
    }
    reply = Reply()
    pending = [body]

    async def receive() -> Message:
        if not pending:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": pending.pop(), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {
                name.decode(): value.decode() for name, value in message["headers"]
            }
        else:
            reply.body += message.get("body", b"")

    running = _run(app, scope, receive, send)
    if loop is None:
        asyncio.run(running)
    else:
        asyncio.run_coroutine_threadsafe(running, loop).result()
    return reply


async def _run(app: ASGIApp, scope: Any, receive: Any, send: Any) -> None:
    await app(scope, receive, send)

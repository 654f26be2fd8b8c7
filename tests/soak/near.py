"""Calling a sandbox cluster through the portal's own client and past the network, where that is not the point."""

import asyncio
import io
import os
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import urllib3
from starlette.types import ASGIApp, Message

from connectors.kubernetes import Cluster as Client


class Near:
    """Stands in for urllib3's pool: one request is one call of the application, in this thread.

    `before` is asked before each: a process that is dead calls nobody.
    """

    def __init__(self, app: ASGIApp, before: Callable[[], None]) -> None:
        self.app, self.before = app, before
        self.loop = asyncio.new_event_loop()

    def urlopen(
        self, method: str, url: str, body: Any = None, headers: Any = None, **_: Any
    ) -> Any:
        """As `urllib3.HTTPConnectionPool.urlopen`."""
        self.before()
        place = urlsplit(url)
        content = body or b""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "method": method,
            "path": unquote(place.path),
            "query_string": place.query.encode(),
            "headers": [
                (name.lower().encode(), str(value).encode())
                for name, value in (headers or {}).items()
            ],
        }
        start: dict[str, Any] = {}
        parts: list[bytes] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        async def call() -> None:
            await self.app(scope, receive, send)

        self.loop.run_until_complete(call())
        said = {name.decode(): value.decode() for name, value in start["headers"]}
        answer = io.BytesIO(b"".join(parts))
        return urllib3.HTTPResponse(answer, headers=said, status=start["status"])

    def give_to(self, client: Client) -> None:
        """Have a client call the application instead of its address."""
        api, _ = client._api()
        client._connections[os.getpid()] = api, cast(urllib3.HTTPConnectionPool, self)

    def close(self) -> None:
        """Close the loop."""
        self.loop.close()

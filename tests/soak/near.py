"""Calling a sandbox cluster through the portal's own client and past the network, where that is not the point."""

import io
import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, cast

import urllib3
from starlette.types import ASGIApp

from connectors.kubernetes import Cluster as Client
from tests.recordings.calling import call


class Near:
    """Stands in for urllib3's pool: one request is one call of the application, in the loop that serves it.

    `before` is asked before each: a process that is dead calls nobody.
    """

    def __init__(
        self, app: ASGIApp, loop: AbstractEventLoop, before: Callable[[], None]
    ) -> None:
        self.app, self.loop, self.before = app, loop, before

    def urlopen(
        self, method: str, url: str, body: Any = None, headers: Any = None, **_: Any
    ) -> Any:
        """As `urllib3.HTTPConnectionPool.urlopen`."""
        self.before()
        said = {name: str(value) for name, value in (headers or {}).items()}
        reply = call(self.app, method, url, {}, said, body or b"", loop=self.loop)
        answer = io.BytesIO(reply.body)
        return urllib3.HTTPResponse(answer, headers=reply.headers, status=reply.status)

    def give_to(self, client: Client) -> None:
        """Have a client call the application instead of its address."""
        api, _ = client._api()
        client._connections[os.getpid()] = api, cast(urllib3.HTTPConnectionPool, self)

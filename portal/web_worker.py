"""The web server's worker process: gunicorn's own, with limits for connections that send nothing or not enough.

`gunicorn -k portal.web_worker.BoundedWorker`. What comes after the headers is limited in portal/http/bodies.py.
"""

import asyncio
import socket
from typing import Any

from django.conf import settings
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

# Connections of one process whose request has not come yet; one more, and the oldest of them is closed.
MAX_HALF_OPEN = 200
# Connections that the kernel keeps for the server until a process takes them, as gunicorn has it.
BACKLOG = 2048


class BoundedProtocol(ASGIProtocol):
    """A connection that has to bring its request's headers in time, and of which there are not too many."""

    half_open: dict["BoundedProtocol", asyncio.TimerHandle] = {}

    def connection_made(self, transport: Any) -> None:
        """Accept the connection, unless the process has as many as it may have."""
        super().connection_made(transport)
        if self.worker.nr_conns > self.cfg.worker_connections:
            self._refuse(503, "Too many connections: try again in a moment.\n")
            return
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Take what came; the first bytes of a connection's next request begin its time."""
        if self._awaiting_request and self not in self.half_open:
            self._expect_headers()
        super().data_received(data)

    def _on_headers_complete(self) -> bool:
        self._headers_are_here()
        return bool(super()._on_headers_complete())

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._headers_are_here()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        if len(self.half_open) >= MAX_HALF_OPEN:
            next(iter(self.half_open))._headers_are_late()
        seconds = settings.ENV.request_seconds
        self.half_open[self] = self.worker.loop.call_later(
            seconds, self._headers_are_late
        )

    def _headers_are_here(self) -> None:
        timer = self.half_open.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _headers_are_late(self) -> None:
        self._headers_are_here()
        self._refuse(408, "The request did not arrive in time.\n")

    def _refuse(self, status: int, message: str) -> None:
        self._send_error_response(status, message)
        self._close_transport()
        # The task that waits for the request sees that the connection is closed, and ends.
        self._request_ready.set()


class FairLoop(asyncio.SelectorEventLoop):
    """A loop that takes one connection at a time, so that the server's other processes get theirs.

    asyncio's own takes as many as a hundred at once: of thirty clients who come together, one process would have every
    one, for as long as their connections stay open, and the others nothing to do.
    """

    async def create_server(  # type: ignore[override]
        self, *args: Any, sock: socket.socket, **options: Any
    ) -> asyncio.Server:
        """A server on this socket; asyncio's own would have the kernel keep no more than a hundred that wait."""
        return await super().create_server(*args, sock=sock, **options, backlog=BACKLOG)

    def _accept_connection(
        self,
        protocol: Any,
        sock: socket.socket,
        tls: Any,
        server: Any,
        _backlog: int,
        *more: Any,
    ) -> None:
        # As many as it takes at once.
        super()._accept_connection(protocol, sock, tls, server, 1, *more)  # type: ignore[misc]


class BoundedWorker(gasgi.ASGIWorker):
    """gunicorn's worker with a loop and connections of the kind above."""

    def init_process(self) -> None:
        """Begin to serve."""
        # The worker names its protocol's class in the middle of a long function, and offers no other way to choose it.
        gasgi.ASGIProtocol = BoundedProtocol
        super().init_process()

    def _setup_event_loop(self) -> None:
        self.loop = FairLoop()
        asyncio.set_event_loop(self.loop)

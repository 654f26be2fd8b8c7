"""Several ASGI applications in one event loop, each on a loopback port of its own."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from sandbox.certificates import Certificates

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Served:
    """An application and the socket it is reached by; without certificates it is plain HTTP."""

    app: ASGIApp
    socket: socket.socket
    certificates: Certificates | None


def listen(port: int, *, host: str = HOST) -> socket.socket:
    """Return a bound socket, by default of loopback, on a free port for 0; raise OSError when the port is taken."""
    # Only a socket that says it is TCP gets TCP_NODELAY from asyncio; without it every answer waits 40 ms.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def port_of(bound: socket.socket) -> int:
    """Return the port of a bound socket."""
    return int(bound.getsockname()[1])


class _Server(uvicorn.Server):
    """A server that says when it is ready and leaves the process's signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: several servers share the process."""
        yield


async def serve(
    served: Sequence[Served], ready: asyncio.Event, stop: asyncio.Event
) -> None:
    """Serve until `stop` is set; set `ready` when every port answers; open requests get one second."""
    servers = [_Server(_config(one)) for one in served]
    running = [
        asyncio.create_task(server.serve([one.socket]))
        for server, one in zip(servers, served, strict=True)
    ]
    for server in servers:
        await server.ready.wait()
    ready.set()
    await stop.wait()
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*running)
    for server in servers:
        _cut(server)
    # Sockets close in the loop's next rounds.
    await asyncio.sleep(0)


def _cut(server: _Server) -> None:
    """Drop connections that clients keep open, instead of waiting for their TLS goodbye."""
    for connection in tuple(server.server_state.connections):
        if connection.transport is not None:
            # The asyncio of Python 3.11.2 raises it of a TLS connection that has ended by itself meanwhile.
            with contextlib.suppress(AttributeError):
                connection.transport.abort()


def _config(served: Served) -> uvicorn.Config:
    return uvicorn.Config(
        served.app,
        ssl_certfile=served.certificates.chain if served.certificates else None,
        ssl_keyfile=served.certificates.key if served.certificates else None,
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )

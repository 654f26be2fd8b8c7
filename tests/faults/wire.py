"""Requests as programs put them on the wire: whole, in chunks, once the server says so, slowly, or never to the end."""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 30.0


@dataclass
class Wire:
    """One connection to a server."""

    socket: socket.socket
    written: int = 0

    def write(self, data: bytes) -> None:
        """Put these bytes on the wire, in a packet of their own."""
        self.socket.sendall(data)
        self.written += len(data)

    def read_until(self, wanted: bytes) -> bytes:
        """What the server wrote up to these bytes, one at a time so that nothing behind them is taken."""
        found = b""
        while not found.endswith(wanted):
            piece = self.socket.recv(1)
            assert piece, found
            found += piece
        return found

    def response(self) -> "Response":
        """The whole answer."""
        read = HTTPResponse(self.socket)
        read.begin()
        return Response(read.status, dict(read.getheaders()), read.read())


@dataclass(frozen=True)
class Response:
    """What a server answered."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes


@contextmanager
def connected(url: str) -> Iterator[Wire]:
    """A connection to the server of this address."""
    parts = urlsplit(url)
    with socket.create_connection(
        (parts.hostname or "", parts.port or 80), timeout=PATIENCE
    ) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Wire(connection)


def head(method: str, url: str, headers: Mapping[str, Any]) -> bytes:
    """A request line with its headers."""
    lines = [f"{method} {urlsplit(url).path} HTTP/1.1", f"Host: {urlsplit(url).netloc}"]
    return "\r\n".join(
        [*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    ).encode()


def chunk(data: bytes) -> bytes:
    """One chunk; an empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def pieces(body: bytes, size: int) -> Iterable[bytes]:
    """The body in pieces of this size."""
    return (body[at : at + size] for at in range(0, len(body), size))


CHUNKED = {"Transfer-Encoding": "chunked"}
Client = Callable[[str, str, Mapping[str, str], bytes], Response]


def like_go(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
    """As Go's client sends an io.Reader whose length nobody knows: headers, then each read as a chunk."""
    with connected(url) as wire:
        wire.write(head(method, url, {**headers, **CHUNKED}))
        for piece in pieces(body, 3):
            wire.write(chunk(piece))
        wire.write(chunk(b""))
        return wire.response()


def like_node(
    method: str, url: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """As Node's client sends a stream: headers and the first chunk in one packet, size and data in several."""
    with connected(url) as wire:
        wire.write(
            head(method, url, {**headers, "Connection": "keep-alive", **CHUNKED})
            + chunk(body[:5])
        )
        rest = body[5:]
        wire.write(b"%x\r\n" % len(rest))
        wire.write(rest + b"\r\n")
        wire.write(b"0\r\n")
        wire.write(b"\r\n")
        return wire.response()


def like_curl(
    method: str, url: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """As `curl -T -` sends its input: it waits to be told to go on, then sends one chunk."""
    with connected(url) as wire:
        wire.write(head(method, url, {**headers, "Expect": "100-continue", **CHUNKED}))
        assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        wire.write(chunk(body) + chunk(b""))
        return wire.response()


def pour(wire: Wire, piece: bytes, *, times: int) -> None:
    """Write the same piece again and again until the server takes no more."""
    with suppress(OSError):
        for _ in range(times):
            wire.write(piece)


CLIENTS: Mapping[str, Client] = {"go": like_go, "node": like_node, "curl": like_curl}

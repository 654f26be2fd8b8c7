"""HTTPS over urllib3 whose sockets lead to the very addresses that were looked at, and to few hosts."""

import socket
import ssl
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import urllib3
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool

from connectors.errors import PermanentError
from connectors.sockets import cut_off_after, is_link_local, is_public, resolve, trust

CONNECT_SECONDS = 3.0
READ_SECONDS = 20.0
_open = threading.local()


def checked_address(
    host: str, port: int, *, usual: int, allowed: Collection[str]
) -> str:
    """The address to connect to; `allowed` names inner hosts (`host` or `host:port`) that may be called all the same.

    Raises PermanentError(code="bad_address") for an inner address or a port other than `usual`, TemporaryError when
    there is no such host.
    """
    inner = f"{host}:{port}" in allowed or (port == usual and host in allowed)
    if port != usual and not inner:
        raise PermanentError(
            f"{host} is called at port {usual} only.", code="bad_address"
        )
    found = resolve(host, port)
    if any(
        is_link_local(address) if inner else not is_public(address) for address in found
    ):
        raise PermanentError(
            f"{host} is not on the internet and not among the hosts allowed.",
            code="bad_address",
        )
    return found[0]


def connect(
    host: str, port: int, *, usual: int, allowed: Collection[str]
) -> socket.socket:
    """A socket to the address that was looked at; raises as `checked_address`, and OSError."""
    made = socket.create_connection(
        (checked_address(host, port, usual=usual, allowed=allowed), port),
        CONNECT_SECONDS,
    )
    made.settimeout(READ_SECONDS)
    _open.socket = made
    return made


def pool(*, allowed: Collection[str], ca_file: str | None) -> urllib3.PoolManager:
    """A pool for one exchange: TLS only, no redirect followed, nothing sent twice."""

    class Connection(HTTPSConnection):
        """Connects to the address that was looked at; the certificate must prove the name."""

        def _new_conn(self) -> socket.socket:
            at_end(self.close)
            return connect(self.host, self.port, usual=443, allowed=allowed)

        def getresponse(self) -> Any:
            """The answer, which keeps the socket open until it is closed itself."""
            answer = super().getresponse()
            at_end(answer.close)
            return answer

    class Pool(HTTPSConnectionPool):
        ConnectionCls = Connection

    context: ssl.SSLContext = trust(ca_file, protocol="https")
    timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
    options: dict[str, Any] = {
        "ssl_context": context,
        "timeout": timeout,
        "retries": False,
    }
    made = urllib3.PoolManager(**options)
    made.pool_classes_by_scheme = {"https": Pool}
    return made


def at_end(close: Callable[[], object]) -> None:
    """Have something closed when this thread's block of `within` ends, whoever has forgotten it by then."""
    _open.closing.append(close)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Cut the connection that this thread opens in the block when the block takes longer."""
    _open.socket, _open.closing = None, []
    holder = _open.__dict__
    with cut_off_after(seconds, lambda: holder.get("socket")):
        try:
            yield
        finally:
            for close in _open.closing:
                with suppress(OSError):
                    close()
            _open.socket, _open.closing = None, []

"""What mail and webhooks share: which addresses may be called, trust, and a deadline for a whole exchange."""

import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from connectors.errors import TemporaryError

# Where providers' machines ask about themselves, credentials among it, besides link-local addresses: Azure's (a public
# number), Alibaba's, Oracle's, and the IPv6 ones of Amazon, Google, Oracle and Scaleway.
METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
    )
)
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Addresses that a gateway, a tunnel or an old rule turns into others, and blocks that lead to nobody's server.
NOT_THE_INTERNET = tuple(
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "fec0::/10",
    )
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_trusting = threading.local()


def resolve(host: str, port: int) -> list[str]:
    """Every address of a host, in the resolver's order; raises TemporaryError when it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TemporaryError(f"{host} cannot be found.") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def numeric(host: str) -> str:
    """The address that a host is written as, in whatever spelling; empty for a name. Nothing is asked of anybody."""
    try:
        found = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (OSError, UnicodeError):
        return ""
    return str(found[0][4][0])


def is_public(text: str) -> bool:
    """Whether an address leads to the internet at large: not to this machine, its network or its provider."""
    address = _inner(ipaddress.ip_address(text.partition("%")[0]))
    elsewhere = address in METADATA or any(
        address in network for network in NOT_THE_INTERNET
    )
    return address.is_global and not address.is_multicast and not elsewhere


def is_link_local(text: str) -> bool:
    """Whether an address is one of those where clouds hand out credentials, which nothing may ever call."""
    address = _inner(ipaddress.ip_address(text.partition("%")[0]))
    return address.is_link_local or address in METADATA


def trust(ca_file: str | None, *, protocol: Literal["https", "smtp"]) -> ssl.SSLContext:
    """A context that trusts the system's authorities, and those of a PEM file too when there is one.

    Reading the system's takes 30 ms. So each thread keeps its newest context until one of the files changes; one for
    each protocol, because HTTP libraries set on theirs what is negotiated.
    """
    paths = ssl.get_default_verify_paths()
    files = [(path, _version(path)) for path in (paths.cafile, paths.capath, ca_file)]
    kept_files, kept = getattr(_trusting, protocol, (None, None))
    if kept is None or kept_files != files:
        kept = ssl.create_default_context()
        if ca_file:
            kept.load_verify_locations(ca_file)
        setattr(_trusting, protocol, (files, kept))
    return kept


def _version(path: str | None) -> tuple[int, int, int] | None:
    """What differs when a file has been written anew or replaced; None where there is none."""
    try:
        found = Path(path or "").stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def cut_off_after(
    seconds: float, current: Callable[[], socket.socket | None]
) -> Iterator[None]:
    """Shut the current socket down when the block takes longer: what it waits for then fails as an OSError."""

    def cut() -> None:
        if (open_socket := current()) is not None:
            with suppress(OSError):
                # Past TLS: a polite goodbye could wait as long as the rest.
                socket.socket.shutdown(open_socket, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _inner(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one that only wraps it."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address

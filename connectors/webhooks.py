"""JSON posted over TLS to Teams, Slack and receivers of events: people give the addresses, so few of them are called.

The standard library does it, because the socket must lead to the very address that was looked at: a name that answers
differently a moment later gains nothing.
"""

import http.client
import json
import re
import socket
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from connectors.errors import PermanentError, TemporaryError
from connectors.patience import seconds
from connectors.sockets import cut_off_after, is_link_local, is_public, resolve, trust

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
DEADLINE_SECONDS = 20.0
LARGEST_ANSWER = 64 * 1024
HTTPS = 443
HTTP_GONE = 410
PLAIN = re.compile(r"[\x21-\x7e]{1,2000}")
A_NAME = re.compile(r"[a-z0-9.:-]{1,253}")
A_WORD = re.compile(rb"[a-z_ ]{1,40}")
TEMPORARY = frozenset({408, 423, 425, 429, 500, 502, 503, 504, 509})


class BadAddress(PermanentError):
    """An address that is never called; the message says why, without the address."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad_address")


class Gone(PermanentError):
    """The receiver says that it wants nothing any more (410)."""


@dataclass(frozen=True)
class Target:
    """An address of the right shape; it is a secret, so it shows its host only."""

    url: str = field(repr=False)
    host: str
    port: int


@dataclass(frozen=True)
class Webhooks:
    """Posts to webhooks; `allowed` names the inner hosts (`host` or `host:port`) that may be called all the same.

    `only` names the hosts that may be called at all; None stands for every host on the internet.
    """

    allowed: Collection[str] = ()
    ca_file: str | None = None
    only: Collection[str] | None = None

    def check(self, url: str) -> Target:
        """Return the target of an address that may be called; raises BadAddress, or TemporaryError (no such host)."""
        target = read(url)
        self._address(target)
        return target

    def post(self, url: str, body: Mapping[str, Any], *, stable_id: str) -> None:
        """Post JSON, with an id by which the receiver can drop a repetition; promises and errors as for `send`."""
        text = json.dumps(body, ensure_ascii=False)
        self.send(url, text.encode(), {"webhook-id": stable_id})

    def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Post these very bytes of JSON under headers of the caller's; no redirect is followed.

        Raises BadAddress, Gone (410), PermanentError, or TemporaryError (network, 429, 5xx; `retry_after` in seconds).
        """
        target = read(url)
        connection = _Pinned(
            target, self._address(target), trust(self.ca_file, protocol="https")
        )
        try:
            with cut_off_after(DEADLINE_SECONDS, lambda: connection.sock):
                _judge(target, *_exchange(connection, target, body, headers))
        except ssl.SSLCertVerificationError as error:
            raise TemporaryError(
                f"{target.host} shows a certificate that is not trusted."
            ) from error
        except http.client.HTTPException as error:
            raise TemporaryError(
                f"{target.host} gave an answer that is not HTTP."
            ) from error
        except OSError as error:
            raise TemporaryError(
                f"{target.host} cannot be reached: {type(error).__name__}."
            ) from error
        finally:
            connection.close()

    def _address(self, target: Target) -> str:
        """The address to connect to, when every address of the host may be called."""
        inner = _is_named(target, self.allowed)
        if self.only is not None and not _is_named(target, self.only):
            raise BadAddress(
                "Nothing is sent to this host: the operators name those that are in QM_WEBHOOK_RECEIVERS."
            )
        if target.port != HTTPS and not inner:
            raise BadAddress(f"Webhooks are called at port {HTTPS} only.")
        found = resolve(target.host, target.port)
        refused = is_link_local if inner else lambda address: not is_public(address)
        if any(refused(address) for address in found):
            raise BadAddress(
                "This host is not on the internet. Give a webhook of Teams or Slack."
                if self.only is None
                else "This host is not on the internet. If it may be called, the operators name it in "
                "QM_WEBHOOK_HOSTS_ALLOWED, too."
            )
        return found[0]


def read(url: str) -> Target:
    """Read an address; raises BadAddress for anything but https://host/…, without user, password or fragment."""
    if not PLAIN.fullmatch(url):
        raise BadAddress("Give an address of up to 2,000 plain characters.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or HTTPS
    except ValueError as error:
        raise BadAddress("This cannot be read as an address.") from error
    if parts.scheme != "https":
        raise BadAddress("Give an address that begins with https://.")
    if (
        "@" in parts.netloc
        or "\\" in url
        or parts.fragment
        or not A_NAME.fullmatch(host)
    ):
        raise BadAddress(
            "Give the address as its receiver shows it, with a host and a path only."
        )
    return Target(url, host, port)


def _is_named(target: Target, allowed: Collection[str]) -> bool:
    return f"{target.host}:{target.port}" in allowed or (
        target.port == HTTPS and target.host in allowed
    )


class _Pinned(http.client.HTTPSConnection):
    """A connection to one given address, which must prove by its certificate to be the host."""

    def __init__(self, target: Target, address: str, context: ssl.SSLContext) -> None:
        super().__init__(target.host, target.port, context=context)
        self._pinned, self._trust = address, context
        self.sock: socket.socket | None = None

    def connect(self) -> None:
        """Connect to the address that was looked at, never to the name."""
        raw = socket.create_connection((self._pinned, self.port), CONNECT_SECONDS)
        raw.settimeout(READ_SECONDS)
        wrapped = self._trust.wrap_socket(
            raw, server_hostname=self.host, do_handshake_on_connect=False
        )
        self.sock = wrapped
        wrapped.do_handshake()


def _exchange(
    connection: _Pinned, target: Target, body: bytes, given: Mapping[str, str]
) -> tuple[int, str | None, bytes]:
    """The answer's status, Retry-After and beginning."""
    parts = urlsplit(target.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Quartermaster",
        **given,
    }
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Retry-After"), answer.read(LARGEST_ANSWER)


def _judge(target: Target, status: int, retry_after: str | None, body: bytes) -> None:
    """Return for 2xx, else raise. Only a bare word of the body is repeated: the rest may hold secrets."""
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise PermanentError(
            f"{target.host} sends on to another address, which is not followed.",
            code="moved",
        )
    word = body.decode() if A_WORD.fullmatch(body) else ""
    said = f"{target.host} answered {status}{f' {word}' if word else ''}."
    if status in TEMPORARY:
        raise TemporaryError(said, retry_after=seconds(retry_after))
    kind = Gone if status == HTTP_GONE else PermanentError
    raise kind(said, code=f"http_{status}")

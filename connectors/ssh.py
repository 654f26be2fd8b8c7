"""SSH for Git, with paramiko: one key, hosts that are known beforehand, and addresses that were looked at."""

import io
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from paramiko import (
    AuthenticationException,
    BadHostKeyException,
    ECDSAKey,
    Ed25519Key,
    PKey,
    RSAKey,
    SSHClient,
    SSHException,
)
from paramiko.channel import Channel
from paramiko.hostkeys import HostKeyEntry

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.pinned import CONNECT_SECONDS, READ_SECONDS, connect

PORT = 22
# Paramiko has one class for a key that was refused and for an answer that never came; these are of the second sort.
UNANSWERED = ("Authentication timeout", "transport shut down")


@dataclass(frozen=True)
class Ssh:
    """Runs a command on a host as dulwich asks for it; `key` is a private key, `known_hosts` as OpenSSH writes it."""

    key: str = field(repr=False)
    known_hosts: str = field(repr=False)
    allowed: Collection[str] = ()

    def run_command(
        self, host: str, command: bytes, username: str = "", port: int = PORT, **_: Any
    ) -> "Conversation":
        """Start a command; raises PermanentError for a key or a host that is not known, TemporaryError otherwise."""
        client, key = SSHClient(), read_key(self.key)
        self._know(client, host, port)
        raw = connect(host, port, usual=PORT, allowed=self.allowed)
        try:
            client.connect(
                host,
                port,
                username,
                pkey=key,
                sock=raw,
                timeout=CONNECT_SECONDS,
                banner_timeout=READ_SECONDS,
                auth_timeout=READ_SECONDS,
                allow_agent=False,
                look_for_keys=False,
            )
            return Conversation(client, command)
        except (SSHException, OSError, EOFError) as error:
            _end(client, raw)
            raise _said(host, error) from error

    def _know(self, client: SSHClient, host: str, port: int) -> None:
        lines = [
            line
            for line in self.known_hosts.splitlines()
            if line.strip() and not line.startswith("#")
        ]
        name = host if port == PORT else f"[{host}]:{port}"
        for number, line in enumerate(lines):
            entry = HostKeyEntry.from_line(line, number)
            if entry is not None and entry.key is not None:
                for known in entry.hostnames or ():
                    client.get_host_keys().add(known, entry.key.get_name(), entry.key)
        if client.get_host_keys().lookup(name) is None:
            raise PermanentError(
                f"The key of {host} is not known. Put its line into the credentials’ .known_hosts file.",
                code="unknown_host",
            )


class Conversation:
    """A running command: what it says is read, and what it is told is written."""

    def __init__(self, client: SSHClient, command: bytes) -> None:
        transport = client.get_transport()
        if transport is None:
            raise SSHException("the connection is gone")
        self._client, self._channel = (
            client,
            transport.open_session(timeout=READ_SECONDS),
        )
        self._channel.settimeout(READ_SECONDS)
        # One of Git's two commands, with a path of the characters that `git_address` lets through.
        self._channel.exec_command(command.decode())  # nosec B601
        self.stderr = self._channel.makefile_stderr("rb")

    @property
    def channel(self) -> Channel:
        """The channel underneath."""
        return self._channel

    def can_read(self) -> bool:
        """Whether something waits to be read."""
        return self._channel.recv_ready()

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0 and (part := self._channel.recv(min(size, 65_536))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def write(self, data: bytes) -> int:
        """Send all of it."""
        self._channel.sendall(data)
        return len(data)

    def close(self) -> None:
        """End the command and the connection."""
        self._channel.close()
        self._client.close()


def _said(host: str, error: Exception) -> ConnectorError:
    """What ended a conversation at its beginning: for good only if the key or the host was refused."""
    refused = isinstance(error, AuthenticationException) and not any(
        sign in str(error) for sign in UNANSWERED
    )
    # Paramiko's words name hosts, users and fingerprints, never a key.
    if refused or isinstance(error, BadHostKeyException):
        return PermanentError(
            f"{host} and the portal do not accept each other by SSH: {error}",
            code="unauthorized",
        )
    if isinstance(error, SSHException):
        return TemporaryError(f"{host} cannot be reached by SSH: {error}")
    return TemporaryError(f"{host} cannot be reached: {type(error).__name__}.")


def _end(client: SSHClient, raw: socket.socket) -> None:
    client.close()
    raw.close()


def read_key(text: str) -> PKey:
    """A private key without a passphrase; raises PermanentError, without a word of it."""
    for kind in (Ed25519Key, ECDSAKey, RSAKey):
        try:
            return kind.from_private_key(io.StringIO(text))
        except (SSHException, ValueError):
            continue
    raise PermanentError(
        "The credentials hold no private key without a passphrase.", code="no_key"
    )

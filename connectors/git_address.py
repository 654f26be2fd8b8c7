"""Where a Git repository may lie, and how its address is written; nothing is called here."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from connectors.errors import PermanentError

PLAIN = re.compile(r"[\x21-\x7e]{1,300}")
HOST = re.compile(r"(\[[0-9a-f:]+\]|[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)")
USER = re.compile(r"[a-z_][a-z0-9._-]{0,31}")
PART = re.compile(r"[A-Za-z0-9_.~][A-Za-z0-9_.~+-]*")
SHORT = re.compile(r"(?P<user>[a-z0-9._-]+)@(?P<host>[a-z0-9.-]+):(?P<path>[^/].*)")
BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
PORTS = {"https": 443, "ssh": 22}


class BadAddress(PermanentError):
    """An address that is never called; the message says why, without the address."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad_address")


@dataclass(frozen=True)
class Place:
    """An address of the right shape: `scheme` is https, ssh or local."""

    scheme: str
    path: str
    host: str = ""
    port: int = 0
    user: str = ""

    @property
    def base(self) -> str:
        """Scheme, host and port of an https address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            f"https://{host}"
            if self.port == PORTS["https"]
            else f"https://{host}:{self.port}"
        )


@dataclass(frozen=True)
class Remote:
    """A repository with what opens it: a token (`token` or `user:token`) for https, a private key for ssh.

    `folder` is where local repositories may lie, None for nowhere; `allowed` names inner hosts that may be called.
    """

    url: str
    secret: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)
    folder: Path | None = None
    allowed: Collection[str] = ()
    ca_file: str | None = None

    def place(self) -> Place:
        """Where it lies; raises BadAddress."""
        return read(self.url, folder=self.folder)

    @property
    def shown(self) -> str:
        """The address as people and logs may read it: host and path."""
        try:
            place = self.place()
        except BadAddress:
            return "the repository"
        return (
            place.path
            if place.scheme == "local"
            else f"{place.host}/{place.path.strip('/')}"
        )


def read(url: str, *, folder: Path | None) -> Place:
    """Read an address; raises BadAddress for all but https, ssh, and paths inside `folder`."""
    if not PLAIN.fullmatch(url) or "\\" in url:
        raise BadAddress("Give an address of up to 300 plain characters.")
    if url.startswith("/"):
        return _local(url, folder)
    if short := SHORT.fullmatch(url):
        url = f"ssh://{short['user']}@{short['host']}/~/{short['path']}"
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or ""), parts.port
    except ValueError as error:
        raise BadAddress("This cannot be read as an address.") from error
    if parts.scheme not in PORTS:
        raise BadAddress("Give an address that begins with https:// or ssh://.")
    user = parts.username or ""
    if parts.password is not None or (parts.scheme == "https" and "@" in parts.netloc):
        raise BadAddress(
            "Put the credentials into a file and name it; an address carries none."
        )
    if parts.scheme == "ssh" and not USER.fullmatch(user):
        raise BadAddress("An ssh address names its user, such as ssh://git@host/path.")
    if (
        parts.query
        or parts.fragment
        or not HOST.fullmatch(host if ":" not in host else f"[{host}]")
    ):
        raise BadAddress("Give the address with a host and a path only.")
    _check_path(parts.path)
    return Place(
        parts.scheme, _short(parts.path), host, port or PORTS[parts.scheme], user
    )


def is_branch(name: str) -> bool:
    """Whether Git takes this as a branch, and no tool takes it for an option or a path."""
    odd = ".." in name or any(part.endswith((".", ".lock")) for part in name.split("/"))
    return (
        bool(BRANCH.fullmatch(name)) and not odd and len(name) <= 100 and name != "HEAD"
    )


def _check_path(path: str) -> None:
    parts = path.strip("/").split("/")
    if any(not PART.fullmatch(part) or part in (".", "..") for part in parts):
        raise BadAddress("The path has parts that no repository should have.")


def _short(path: str) -> str:
    """`/~/x`, as ssh writes a path from the user's home, is `x`."""
    return path.removeprefix("/~/") if path.startswith("/~/") else path


def _local(url: str, folder: Path | None) -> Place:
    if folder is None:
        raise BadAddress(
            "Repositories on this machine are switched off. Give an https or ssh address."
        )
    _check_path(url)
    inside = folder.resolve()
    path = Path(url).resolve()
    if path == inside or inside not in path.parents:
        raise BadAddress(
            "A repository on this machine lies in the portal's folder for repositories."
        )
    return Place("local", str(path))

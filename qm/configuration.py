"""Which portal and which token: from the environment, or from a file that only its owner reads."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from qm.endings import Code, Ended

# What this program writes is TOML; of TOML it reads back what it writes, for Python 3.9 has no reader.
ENTRY = re.compile(r'^(url|token) *= *("(?:[^"\\]|\\.)*") *$', re.MULTILINE)


@dataclass(frozen=True)
class Access:
    """A portal and a token for it; the token is shown nowhere."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Access({self.url!r})"


def path() -> Path:
    """The file that `qm login` writes."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "quartermaster" / "config.toml"


def stored() -> dict[str, str]:
    """What the file says; nothing where there is none."""
    try:
        text = path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Ended(f"{path()} cannot be read: {error}", Code.NOT_SIGNED_IN) from None
    return {name: str(json.loads(value)) for name, value in ENTRY.findall(text)}


def access() -> Access:
    """The portal and token to use; raises Ended for who is not signed in.

    A token of the file goes to the portal that it was stored with, and to no other that QM_URL names.
    """
    file = stored()
    url = checked(os.environ.get("QM_URL") or file.get("url", ""))
    token = os.environ.get("QM_TOKEN") or (
        file.get("token", "") if file.get("url") == url else ""
    )
    if not token:
        advice = f"Run: qm login --url {url}, or set QM_TOKEN."
        raise Ended(f"You are not signed in to {url}. {advice}", Code.NOT_SIGNED_IN)
    return Access(url, cleaned(token))


def cleaned(token: str) -> str:
    """A token without the spaces around it; raises Ended for what cannot be one, and does not repeat it."""
    token = token.strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise Ended("This is no token.", Code.USAGE)
    return token


def checked(url: str) -> str:
    """A portal's address without a slash at its end; raises Ended where a token would travel unprotected."""
    if not url:
        raise Ended(
            "You are not signed in. Run: qm login --url https://…", Code.NOT_SIGNED_IN
        )
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in parts.netloc
        or parts.query
    ):
        raise Ended(
            f"{url} is no address of a portal, as in https://gpus.example.com.",
            Code.USAGE,
        )
    if parts.path.strip("/") or parts.fragment:
        raise Ended(
            f"{url} is more than the portal's address. Leave out what follows the host in QM_URL or --url: "
            f"{parts.scheme}://{parts.netloc}",
            Code.USAGE,
        )
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise Ended(f"A token goes over https only: https://{parts.netloc}", Code.USAGE)
    return url.rstrip("/")


def store(found: Access) -> None:
    """Write the file whole or not at all, for its owner's eyes only from its first byte on."""
    file = path()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp gives the mode 0600, whatever the umask.
    number, name = tempfile.mkstemp(dir=file.parent, prefix=".config-")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as new:
            new.write(
                f"url = {json.dumps(found.url)}\ntoken = {json.dumps(found.token)}\n"
            )
            new.flush()
            os.fsync(new.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def forget() -> bool:
    """Delete the file; False when there was none."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

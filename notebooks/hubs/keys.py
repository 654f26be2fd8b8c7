"""Keys with which hubs call the portal: qmh_<prefix>_<secret>. Pure."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field

BEGINNING = "qmh_"
KEY = re.compile(r"qmh_([0-9a-f]{8})_[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True)
class Key:
    """A new key; `text` is shown once, and kept nowhere."""

    prefix: str
    text: str = field(repr=False)


def new_key() -> Key:
    """A key with 256 random bits; the prefix is for recognising it in a list."""
    prefix = secrets.token_hex(4)
    return Key(prefix, f"{BEGINNING}{prefix}_{secrets.token_urlsafe(32)}")


def prefix_of(text: str) -> str:
    """The prefix of what has the form of a key; empty for anything else."""
    found = KEY.fullmatch(text)
    return found[1] if found else ""


def digest_of(text: str) -> str:
    """SHA-256 in hexadecimal, which is enough for a random secret of this length."""
    return hashlib.sha256(text.encode()).hexdigest()


def opens(text: str, digest: str) -> bool:
    """Whether a key is the one of this digest; how long it takes tells nothing about either."""
    return secrets.compare_digest(digest_of(text), digest)

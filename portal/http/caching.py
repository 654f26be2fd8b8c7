"""The shared cache, kept as JSON: whoever can write to it can make the portal read other words, and run nothing.

Django's own backends unpickle what they find, and a pickle runs code when it is read.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.filebased import FileBasedCache

NEVER = b"null\n"


def encode(value: object) -> bytes:
    """A value as JSON; a whole number is its digits, which Redis can count up. Raises TypeError for other objects."""
    return json.dumps(value, separators=(",", ":")).encode()


def decode(data: bytes) -> Any:
    """What was stored, or None for what is no JSON: somebody else's bytes count as nothing stored."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


class JsonSerializer:
    """The serializer that Django's cache in Redis is given."""

    def dumps(self, value: object) -> bytes:
        """The bytes to store."""
        return encode(value)

    def loads(self, data: bytes) -> Any:
        """The value of stored bytes."""
        return decode(data)


class JsonFileCache(FileBasedCache):
    """A cache in a folder, for one machine: the first line of a file says when it ends, the rest is the value."""

    # What Django's class has and its published types leave out.
    _key_to_file: Callable[[str, int | None], str]
    _delete: Callable[[str], bool]

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """The value; the default when there is none, when it has ended or when it is no JSON."""
        try:
            with Path(self._key_to_file(key, version)).open("rb") as file:
                value = None if self._is_expired(file) else decode(file.read())
        except FileNotFoundError:
            return default
        return default if value is None else value

    def touch(
        self,
        key: str,
        timeout: float | None = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        """Let a value last longer; False when there is none."""
        value = self.get(key, version=version)
        if value is not None:
            self.set(key, value, timeout, version)
        return value is not None

    def _write_content(
        self, file: IO[bytes], timeout: float | None, value: object
    ) -> None:
        file.write(encode(self.get_backend_timeout(timeout)) + b"\n" + encode(value))

    def _is_expired(self, file: IO[bytes]) -> bool:
        line = file.readline(64)
        ends = decode(line)
        if line == NEVER or (isinstance(ends, int | float) and ends >= time.time()):
            return False
        self._delete(file.name)
        return True

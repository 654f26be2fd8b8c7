"""The shared cache, kept as JSON: whoever can write to it can make the portal read other words, and run nothing.

Django's own backends unpickle what they find, and a pickle runs code when it is read.
"""

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis

NEVER = b"null\n"
COUNT = """
if redis.call("exists", KEYS[1]) == 1 then return redis.call("incrby", KEYS[1], ARGV[1]) end
"""


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


class CountingClient(RedisCacheClient):
    """Django's client of Redis, which counts in one call instead of asking first whether there is such a key.

    The key could end between the two calls, and a counter without an end would be left.
    """

    # What Django's class has and its published types leave out.
    get_client: Callable[..., Redis]

    def incr(self, key: Any, delta: int) -> int:
        """The number that is there now; raises ValueError where there was none."""
        counted = self.get_client(key, write=True).eval(COUNT, 1, key, delta)
        if counted is None:
            raise ValueError(f"There is no key {key!r}.")
        return int(counted)


class SharedRedisCache(RedisCache):
    """A cache in Redis whose client, and with it the open connections, is that of the whole process.

    Django makes one for each thread, and behind ASGI every request has a thread of its own, which would connect anew.
    """

    # What Django's class has and its published types leave out.
    _servers: list[str]
    _options: dict[str, Any]

    @property
    def _cache(self) -> CountingClient:
        return _client_of(tuple(self._servers), **self._options)


@cache
def _client_of(servers: tuple[str, ...], **options: Any) -> CountingClient:
    return CountingClient([*servers], **options)


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

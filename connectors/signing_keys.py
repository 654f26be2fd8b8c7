"""Public keys that a token's issuer publishes as a JWK set (RFC 7517), read over our own bounded session."""

import json
import time
from typing import Any

import jwt

from connectors.graph import BoundedSession

LIFESPAN_SECONDS = 3600
PAUSE_SECONDS = 5.0
DEADLINE_SECONDS = 10.0
LARGEST_ANSWER = 256 * 1024


class SigningKeys(jwt.PyJWKClient):
    """An issuer's signing keys; an unknown key id reads them again at most once in thirty seconds.

    Anybody can send a token with a key id that nobody knows, and everybody who needs keys waits behind the one who
    reads them. So those that are known need no reading, an answer has an end in time and size, and an issuer that did
    not answer, or has no keys, is not asked again for five seconds.
    """

    def __init__(self, uri: str, session: BoundedSession) -> None:
        super().__init__(uri, lifespan=LIFESPAN_SECONDS)
        self._session = session
        self._failed: tuple[float, str] | None = None

    def get_signing_key(self, kid: str) -> jwt.PyJWK:
        """The key of this id; waits for nobody where it is known."""
        known = self.jwk_set_cache.get() if self.jwk_set_cache else None
        found = self.match_kid(known.keys, kid) if known else None
        if found and found.public_key_use in ("sig", None):
            return found
        return super().get_signing_key(kid)

    def fetch_data(self) -> Any:
        """Read the keys, without the proxies and CA bundles of the environment that urllib would take."""
        if self._failed and time.monotonic() < self._failed[0] + PAUSE_SECONDS:
            raise jwt.PyJWKClientConnectionError(self._failed[1])
        try:
            keys = json.loads(self._read())
            if not isinstance(keys, dict) or not keys.get("keys"):
                raise ValueError("No keys.")
        except (OSError, ValueError, RecursionError) as error:
            self._failed = time.monotonic(), type(error).__name__
            raise jwt.PyJWKClientConnectionError(type(error).__name__) from error
        self._failed, self._last_successful_fetch = None, time.monotonic()
        return keys

    def _read(self) -> bytes:
        """The whole answer; raises OSError for one that is too long in coming, ValueError for one that is too large."""
        ends, read = time.monotonic() + DEADLINE_SECONDS, b""
        with self._session.get(self.uri, stream=True) as answer:
            answer.raise_for_status()
            while part := answer.raw.read1(LARGEST_ANSWER, decode_content=True):
                read += part
                if len(read) > LARGEST_ANSWER:
                    raise ValueError("The answer is too large.")
                if time.monotonic() > ends:
                    raise TimeoutError
        return read

"""Public keys that a token's issuer publishes as a JWK set (RFC 7517), read over our own bounded session."""

import time
from typing import Any

import jwt

from connectors.graph import BoundedSession

LIFESPAN_SECONDS = 3600
PAUSE_SECONDS = 5.0


class SigningKeys(jwt.PyJWKClient):
    """An issuer's signing keys; an unknown key id reads them again at most once in thirty seconds.

    An issuer that did not answer is not asked again for five seconds: every caller waits behind the one who asks, and
    anybody can send a token that needs the keys.
    """

    def __init__(self, uri: str, session: BoundedSession) -> None:
        super().__init__(uri, lifespan=LIFESPAN_SECONDS)
        self._session = session
        self._failed: tuple[float, str] | None = None

    def fetch_data(self) -> Any:
        """Read the keys, without the proxies and CA bundles of the environment that urllib would take."""
        if self._failed and time.monotonic() < self._failed[0] + PAUSE_SECONDS:
            raise jwt.PyJWKClientConnectionError(self._failed[1])
        try:
            answer = self._session.get(self.uri)
            answer.raise_for_status()
            keys = answer.json()
        except (OSError, ValueError) as error:
            self._failed = time.monotonic(), type(error).__name__
            raise jwt.PyJWKClientConnectionError(type(error).__name__) from error
        self._failed, self._last_successful_fetch = None, time.monotonic()
        return keys

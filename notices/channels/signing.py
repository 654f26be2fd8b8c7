"""Signatures of webhooks, as Standard Webhooks 1.0.0 has them (https://www.standardwebhooks.com). Pure."""

import base64
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

PREFIX = "whsec_"
# The specification takes 24 to 64.
SECRET_BYTES = 32
# How long what was signed with the secret before is still signed with it, too.
OVERLAP = timedelta(days=1)


def new_secret() -> str:
    """A random signing secret, as it is shown to whoever sets up the receiver."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(
    body: bytes, *, message_id: str, at: datetime, keys: Iterable[str]
) -> dict[str, str]:
    """The headers of one attempt to deliver a body: a signature for each secret, the newest secret's first.

    `message_id` is the same for every attempt and holds no full stop; `at` is the moment of this one.
    """
    timestamp = str(int(at.timestamp()))
    content = b".".join([message_id.encode(), timestamp.encode(), body])
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(content, key) for key in keys),
    }


def _signature(content: bytes, key: str) -> str:
    raw = base64.b64decode(key.removeprefix(PREFIX), validate=True)
    return f"v1,{base64.b64encode(hmac.digest(raw, content, 'sha256')).decode()}"

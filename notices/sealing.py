"""Secrets that must be sent lie sealed in the database: who reads it, or a backup of it, cannot use them.

Fernet (https://github.com/fernet/spec) under a key that HKDF-SHA256 (RFC 5869) derives from the portal's secret key.
"""

import base64
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PURPOSE = b"quartermaster: addresses of channels"
SECRETS = b"quartermaster: secrets of webhooks"
# Version 128 of a Fernet token and the first bytes of its time, which stay zero until the year 2106.
BEGINNING = "gAAAAA"


class Unreadable(ValueError):
    """What was sealed under a key that the portal no longer has, or was changed since."""


def seal(text: str, *, purpose: bytes = PURPOSE) -> str:
    """The text sealed under the secret key of now; never twice the same."""
    return _keys([settings.SECRET_KEY], purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, purpose: bytes = PURPOSE, max_age: int | None = None) -> str:
    """What was sealed for a purpose, under the secret key of now or one before it, at most `max_age` seconds ago.

    Raises Unreadable.
    """
    keys = _keys([settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS], purpose)
    try:
        return keys.decrypt(sealed.encode(), ttl=max_age).decode()
    except InvalidToken as error:
        raise Unreadable from error


def sealed_anew(sealed: str, *, purpose: bytes = PURPOSE) -> str:
    """The same under the secret key of now: as it is, where that one reads it already. Raises Unreadable."""
    try:
        _keys([settings.SECRET_KEY], purpose).decrypt(sealed.encode())
    except InvalidToken:
        return seal(unseal(sealed, purpose=purpose), purpose=purpose)
    return sealed


def _keys(secrets: Sequence[str], purpose: bytes) -> MultiFernet:
    return MultiFernet(
        [
            Fernet(base64.urlsafe_b64encode(_derived(secret, purpose)))
            for secret in secrets
        ]
    )


def _derived(secret: str, purpose: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=purpose).derive(secret.encode())

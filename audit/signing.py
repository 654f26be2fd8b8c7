"""Signed heads of the log: pure, so that an auditor can check one with the public key alone.

The key is Ed25519 (RFC 8032), derived from the portal's secret key by HKDF-SHA256 (RFC 5869): it lies in no database.
"""

import base64
import json
from collections.abc import Collection
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from audit.chain import Checkpoint

PURPOSE = b"quartermaster: anchors of the audit log"
LARGEST = 10_000


class NotGenuine(ValueError):
    """It is no anchor, or nobody who is trusted signed it as it is."""


def key_from(secret: str) -> Ed25519PrivateKey:
    """The signing key that follows from a secret key of the portal."""
    derived = HKDF(SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.encode())
    return Ed25519PrivateKey.from_private_bytes(derived)


def public(key: Ed25519PrivateKey) -> str:
    """The public half in base64, which auditors note once."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def sign(head: Checkpoint, *, log: str, at: datetime, key: Ed25519PrivateKey) -> str:
    """One line of JSON that says what the newest event of a log was."""
    document: dict[str, object] = {
        "log": log,
        "at": at.isoformat(),
        "seq": head.seq,
        "hash": head.hash,
        "key": public(key),
    }
    signature = base64.b64encode(key.sign(_canonical(document))).decode()
    return _canonical(document | {"signature": signature}).decode()


def read(text: str, *, trusted: Collection[str]) -> Checkpoint:
    """The event that an anchor tells of; raises NotGenuine unless one of the `trusted` public keys signed it."""
    try:
        if len(text) > LARGEST:
            raise ValueError
        document = json.loads(text)
        signature = base64.b64decode(document.pop("signature"), validate=True)
        key = Ed25519PublicKey.from_public_bytes(
            base64.b64decode(document["key"], validate=True)
        )
        head = Checkpoint(int(document["seq"]), str(document["hash"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotGenuine("It is no anchor of an audit log.") from error
    if document["key"] not in trusted:
        raise NotGenuine(
            f"It is signed with the key {document['key']}, which is not trusted."
        )
    try:
        key.verify(signature, _canonical(document))
    except InvalidSignature as error:
        raise NotGenuine("It was changed after it was signed.") from error
    return head


def _canonical(document: dict[str, object]) -> bytes:
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True
    ).encode()

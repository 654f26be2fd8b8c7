"""The tenant's signing key: JWKS, honest signatures, and dishonest ones for tests."""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa


def encode(raw: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def encode_json(value: Any) -> str:
    """Return compact JSON in base64url without padding."""
    return encode(json.dumps(value, separators=(",", ":")).encode())


class SigningKey:
    """An RSA key that signs JSON web tokens."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self._private = private
        self.public_pem = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.kid = encode(hashlib.sha256(self.public_pem).digest()[:20])

    @classmethod
    def ensure(cls, path: Path | None) -> "SigningKey":
        """Read the key from a file, or make one (and keep it there, readable by its owner only)."""
        if path is not None and path.exists():
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
            if isinstance(key, rsa.RSAPrivateKey):
                return cls(key)
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        if path is not None:
            path.touch(mode=0o600)
            path.write_bytes(
                private.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                )
            )
        return cls(private)

    def jwks(self) -> dict[str, Any]:
        """Return the public half as Entra publishes it."""
        numbers = self._private.public_key().public_numbers()
        modulus = numbers.n.to_bytes(256, "big")
        return {
            "keys": [
                {
                    "kty": "RSA",
                    "use": "sig",
                    "kid": self.kid,
                    "x5t": self.kid,
                    "n": encode(modulus),
                    "e": encode(numbers.e.to_bytes(3, "big")),
                }
            ]
        }

    def sign(
        self, claims: dict[str, Any], headers: dict[str, Any] | None = None
    ) -> str:
        """Return a token; `headers` may ask for `alg` HS256 (keyed with the public key) or none."""
        header = {"typ": "JWT", "alg": "RS256", "kid": self.kid, **(headers or {})}
        signed = f"{encode_json(header)}.{encode_json(claims)}"
        return (
            f"{signed}.{encode(self._signature(str(header['alg']), signed.encode()))}"
        )

    def _signature(self, algorithm: str, signed: bytes) -> bytes:
        if algorithm == "RS256":
            return self._private.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        if algorithm == "HS256":
            return hmac.new(self.public_pem, signed, hashlib.sha256).digest()
        if algorithm == "none":
            return b""
        raise ValueError(f"unknown algorithm {algorithm!r}")

"""A certificate authority and a server certificate for loopback, made once per data directory."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509

NAMES = ("localhost", "127.0.0.1")
LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=7)


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files: whom clients trust, and what servers show."""

    ca: Path
    chain: Path
    key: Path


def ensure(directory: Path) -> Certificates:
    """Return the directory's certificates, made anew only when missing or within a week of their end."""
    directory.mkdir(parents=True, exist_ok=True)
    files = Certificates(
        directory / "ca.pem", directory / "server.pem", directory / "server-key.pem"
    )
    if not _usable(files):
        _create(files)
    return files


def _usable(files: Certificates) -> bool:
    if not all(path.exists() for path in (files.ca, files.chain, files.key)):
        return False
    certificate = x509.load_pem_x509_certificate(files.chain.read_bytes())
    return certificate.not_valid_after_utc > datetime.now(UTC) + RENEW_BEFORE


def _create(files: Certificates) -> None:
    authority = trustme.CA(organization_name="Quartermaster sandbox")
    server = authority.issue_cert(*NAMES, not_after=datetime.now(UTC) + LIFETIME)
    files.key.touch(mode=0o600)
    files.key.write_bytes(server.private_key_pem.bytes())
    files.chain.write_bytes(b"".join(blob.bytes() for blob in server.cert_chain_pems))
    files.ca.write_bytes(authority.cert_pem.bytes())

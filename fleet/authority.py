"""The certificate authority of a cluster's API server: certificates in PEM, checked when they are told."""

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from django.conf import settings

from audit import clock
from connectors.kubernetes import certificates_of
from fleet.models import Cluster

MAX_LENGTH = 65_536
BEGINS = "-----BEGIN CERTIFICATE-----"


class AuthorityRefused(ValueError):
    """What was given is no certificate authority; the text says what to do."""


def certificates_from(text: str, *, now: datetime) -> str:
    """The certificates of a text, one after the other and nothing else; empty for an empty one.

    Raises AuthorityRefused for what holds no certificate, a private key, or one that has expired.
    """
    if not text.strip():
        return ""
    if len(text) > MAX_LENGTH:
        raise AuthorityRefused(
            f"This is longer than {MAX_LENGTH:,} characters: give the authority alone."
        )
    if "PRIVATE KEY" in text:
        raise AuthorityRefused(
            "This holds a private key. Give the certificate alone, and replace that key."
        )
    try:
        found = x509.load_pem_x509_certificates(text.encode())
    except ValueError as error:
        raise AuthorityRefused(
            f"This is no certificate in PEM: it begins with {BEGINS}."
        ) from error
    for certificate in found:
        if certificate.not_valid_after_utc <= now:
            name = certificate.subject.rfc4514_string() or "the certificate"
            raise AuthorityRefused(
                f"{name} has expired on {certificate.not_valid_after_utc:%Y-%m-%d}."
            )
    # The certificates alone: what stands around them is no business of anybody who pastes this.
    return "".join(
        each.public_bytes(serialization.Encoding.PEM).decode() for each in found
    ).strip()


def authority_of(cluster: Cluster) -> str:
    """The certificates that people need: those that were told, else those of the cluster's kubeconfig file, if any."""
    if cluster.certificate_authority or not cluster.kubeconfig:
        return cluster.certificate_authority
    told = certificates_of(
        f"{settings.ENV.kubeconfig_dir}/{cluster.kubeconfig}", cluster.context or None
    )
    try:
        return certificates_from(told, now=clock.now())
    except AuthorityRefused:
        return ""

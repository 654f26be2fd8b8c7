"""What is trusted: read once, and anew when a file of authorities is another."""

from pathlib import Path

import pytest
import trustme

from connectors.sockets import trust


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    """A file with one authority."""
    path = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    return path


def subjects(ca_file: Path | None) -> set[str]:
    """Whom calls trust."""
    context = trust(str(ca_file) if ca_file else None, protocol="https")
    return {str(each["serialNumber"]) for each in context.get_ca_certs()}


def test_the_authorities_are_read_once(ca: Path) -> None:
    assert trust(str(ca), protocol="https") is trust(str(ca), protocol="https")


def test_what_https_negotiates_is_not_offered_to_mail_servers(ca: Path) -> None:
    assert trust(str(ca), protocol="https") is not trust(str(ca), protocol="smtp")


def test_an_authority_is_trusted_only_where_its_file_is_named(ca: Path) -> None:
    with_it = subjects(ca)
    assert with_it > subjects(None)


def test_a_file_that_is_replaced_is_read_anew(ca: Path) -> None:
    before = subjects(ca)
    ca.unlink()
    trustme.CA().cert_pem.write_to_path(str(ca))
    after = subjects(ca)
    assert len(before - after) == len(after - before) == 1


def test_a_file_that_is_gone_is_an_error(ca: Path) -> None:
    subjects(ca)
    ca.unlink()
    with pytest.raises(FileNotFoundError):
        subjects(ca)

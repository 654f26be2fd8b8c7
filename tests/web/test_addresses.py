"""Where a request comes from: the peer says, and only a proxy that is trusted may say otherwise."""

import pytest
from pydantic import ValidationError
from pytest_django import Settings

from portal.env import Environment
from tests.services import environment
from web.addresses import address_of


@pytest.fixture(autouse=True)
def _proxies(settings: Settings) -> None:
    trust(settings, '["10.0.0.0/24", "192.0.2.9", "2001:db8::/32"]')


def trust(settings: Settings, networks: str) -> None:
    """Make these the proxies that are trusted, as the environment names them."""
    with pytest.MonkeyPatch.context() as patch:
        environment.fill()
        patch.setenv("QM_TRUSTED_PROXIES", networks)
        named = Environment()  # type: ignore[call-arg]
    settings.ENV = settings.ENV.model_copy(
        update={"trusted_proxies": named.trusted_proxies}
    )


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "203.0.113.7:51324", "203.0.113.7"),
        ("10.0.0.1", "[2001:db9::7]:443", "2001:db9::7"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.7, 192.0.2.9, 10.0.0.2", "203.0.113.7"),
        ("::ffff:10.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("2001:db8::1", "::ffff:203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "10.0.0.7", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.7, unknown", "10.0.0.1"),
    ],
)
def test_a_trusted_proxy_says_who_called(
    peer: str, forwarded: str, address: str
) -> None:
    assert (
        address_of({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded}) == address
    )


@pytest.mark.parametrize("peer", ["203.0.113.7", "10.0.1.1", "::1", "", "unix:"])
def test_a_header_of_anybody_else_changes_nothing(peer: str) -> None:
    assert (
        address_of({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": "198.51.100.1"})
        == peer
    )


def test_no_proxy_is_trusted_unless_one_is_named(settings: Settings) -> None:
    trust(settings, "")
    assert (
        address_of({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "198.51.100.1"})
        == "127.0.0.1"
    )


@pytest.mark.parametrize("networks", ['["proxy.example"]', '["10.0.0.1/8"]', '["*"]'])
def test_what_is_no_network_keeps_the_portal_from_starting(
    settings: Settings, networks: str
) -> None:
    with pytest.raises(ValidationError, match="trusted_proxies"):
        trust(settings, networks)

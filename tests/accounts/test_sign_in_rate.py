"""How many sign-ins one address may start: counted by all processes together, and never the reason nobody gets in."""

from ipaddress import ip_network

import pytest
from django.contrib.auth import SESSION_KEY
from django.core.cache import caches
from django.test import Client
from pytest_django import Settings

from sandbox.world import person_id
from tests.accounts.test_views import sign_in
from tests.sandbox.entra.running import Running
from tests.services.redis import Redis
from web import counters as counting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _a_closed_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "breaker", counting.Breaker())


@pytest.fixture
def cache(
    settings: Settings, own_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> Redis:
    """A cache of this test's own, to be put in trouble."""
    settings.CACHES = {
        "default": settings.CACHES["default"] | {"LOCATION": own_redis.url()}
    }
    monkeypatch.setattr(counting, "cache", caches["default"])
    return own_redis


def starts(times: int, **meta: str) -> list[int]:
    """What so many starts of a sign-in are answered with."""
    return [Client().post("/sign-in/start", **meta).status_code for _ in range(times)]  # type: ignore[arg-type]


def test_too_many_starts_from_one_address_are_refused_for_a_minute(
    settings: Settings, directory: Running
) -> None:
    settings.RATES = {"sign-in": "3/min"}
    # A minute may end meanwhile: then there are two windows.
    answers = starts(7)
    assert answers[:3] == [302] * 3
    assert 429 in answers


def test_people_behind_a_proxy_that_is_trusted_are_counted_apart(
    settings: Settings, directory: Running
) -> None:
    settings.RATES = {"sign-in": "1/min"}
    settings.ENV = settings.ENV.model_copy(
        update={"trusted_proxies": [ip_network("127.0.0.0/8")]}
    )
    for number in range(4):
        assert starts(1, HTTP_X_FORWARDED_FOR=f"198.51.100.1, 203.0.113.{number}") == [
            302
        ]
    assert 429 in starts(3, HTTP_X_FORWARDED_FOR="203.0.113.9")


def test_whoever_is_no_trusted_proxy_gets_no_more_by_another_header(
    settings: Settings, directory: Running
) -> None:
    settings.RATES = {"sign-in": "1/min"}
    answers = [
        starts(1, HTTP_X_FORWARDED_FOR=f"203.0.113.{number}") for number in range(4)
    ]
    assert [429] in answers


def test_a_dead_cache_keeps_nobody_from_signing_in(
    client: Client, directory: Running, cache: Redis
) -> None:
    cache.kill()
    assert sign_in(client, directory, person_id(1)).status_code == 302
    assert SESSION_KEY in client.session


def test_a_frozen_cache_keeps_nobody_from_signing_in(
    client: Client, directory: Running, cache: Redis
) -> None:
    cache.freeze()
    try:
        assert sign_in(client, directory, person_id(1)).status_code == 302
    finally:
        cache.thaw()


def test_a_cache_without_room_keeps_nobody_from_signing_in(
    settings: Settings, directory: Running, cache: Redis
) -> None:
    settings.RATES = {"sign-in": "1/min"}
    with cache.client() as client:
        client.config_set("maxmemory", "1kb")
        # What is counted is thrown out as soon as it is written.
        client.config_set("maxmemory-policy", "volatile-lru")
    assert starts(3) == [302] * 3

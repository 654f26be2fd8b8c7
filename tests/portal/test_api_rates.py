"""Rate limits: shared by every process, said in seconds, and never the reason that nothing works."""

import os
import signal
import time
from typing import Any

import pytest
from django.core.cache import caches
from pytest_django import Settings

from accounts.models import ApiToken
from tests import factories
from tests.calling import Caller
from tests.services.redis import Redis
from web import counters as counting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _a_closed_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "breaker", counting.Breaker())


def codes(caller: Caller, times: int) -> list[int]:
    """What so many reads are answered with."""
    return [caller.get("me/").status_code for _ in range(times)]


def test_the_call_over_the_limit_is_told_when_to_come_back(settings: Settings) -> None:
    settings.RATES = {"read": "3/h", "write": "1/h"}
    ada, ben = Caller(factories.person("Ada")), Caller(factories.person("Ben"))
    assert codes(ada, 4) == [200, 200, 200, 429]
    answer = ada.get("me/")
    assert answer.json()["code"] == "throttled"
    assert 1 <= int(answer["Retry-After"]) <= 3600
    assert codes(ben, 1) == [200]


def test_reading_and_writing_are_counted_apart_and_tokens_of_a_person_together(
    settings: Settings,
) -> None:
    settings.RATES = {"read": "2/h", "write": "1/h"}
    user = factories.person("Ada")
    first, second = Caller(user), Caller(user)
    assert first.post("tokens/", {}).status_code == 422
    assert second.post("tokens/", {}).status_code == 429
    assert codes(first, 1) + codes(second, 2) == [200, 200, 429]


def test_a_preview_is_sent_while_somebody_types_and_counts_as_reading(
    settings: Settings,
) -> None:
    settings.RATES = {"read": "3/h", "write": "1/h"}
    ada = Caller(factories.person("Ada"), ApiToken.Scope.READ)
    answers = [ada.post("requests/preview/", {}).status_code for _ in range(4)]
    assert answers == [422, 422, 422, 429]
    assert Caller(ada.user).post("tokens/", {}).status_code == 422


def test_a_frozen_cache_costs_a_second_once_and_stops_nothing(
    settings: Settings, own_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATES = {"read": "1/h", "write": "1/h"}
    settings.CACHES = {
        "default": settings.CACHES["default"] | {"LOCATION": own_redis.url()}
    }
    monkeypatch.setattr(counting, "cache", caches["default"])
    ada = Caller(factories.person("Ada"))
    assert codes(ada, 1) == [200]
    os.kill(int(own_redis.pid or 0), signal.SIGSTOP)
    try:
        assert timed(ada) == (200, pytest.approx(1.0, abs=0.9))
        # A busy machine slows any one call; one that asks the cache takes its second every time.
        assert min(timed(ada) for _ in range(4)) < (200, 0.5)
    finally:
        os.kill(int(own_redis.pid or 0), signal.SIGCONT)


def test_a_dead_cache_stops_nothing_and_is_asked_again_later(
    settings: Settings, own_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATES = {"read": "1/h", "write": "1/h"}
    settings.CACHES = {
        "default": settings.CACHES["default"] | {"LOCATION": own_redis.url()}
    }
    monkeypatch.setattr(counting, "cache", caches["default"])
    ada = Caller(factories.person("Ada"))
    own_redis.kill()
    assert codes(ada, 3) == [200, 200, 200]
    own_redis.start()
    counting.breaker.open_until = 0.0
    assert codes(ada, 2) == [200, 429]


def timed(caller: Caller) -> tuple[int, Any]:
    """The answer's status, and how many seconds it took."""
    began = time.monotonic()
    status = caller.get("me/").status_code
    return status, time.monotonic() - began

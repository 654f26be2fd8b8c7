"""What every test can count on: a database and a Redis of its process's own, and nothing left in them."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import TransactionTestCase
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker
from redis import Redis as Client

from tests.services import pristine
from tests.services.postgres import Postgres
from tests.services.redis import Redis

# How long an example takes says something of the machine, and nothing of the code.
hypothesis_settings.register_profile("quartermaster", deadline=None)
hypothesis_settings.load_profile("quartermaster")

# Tests of several processes against the clock: on a busy machine one is late now and then. It is played once more, and
# the summary counts it as a rerun.
AGAINST_THE_CLOCK = [Path(__file__).parent / name for name in ("browser", "faults")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests against the clock a second try."""
    for item in items:
        if any(place in item.path.parents for place in AGAINST_THE_CLOCK):
            item.add_marker(pytest.mark.flaky(reruns=2))


def pytest_collection_finish() -> None:
    """Let the collector pass over what stays to the end anyway: modules and tests are a million objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session")
def django_db_setup(
    postgres: Postgres, redis: Redis, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The migrated test database, on servers that run by then."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        pristine.remember()
        patch.setattr(TransactionTestCase, "_fixture_teardown", pristine.restore)
        yield


@pytest.fixture(autouse=True)
def _empty_redis(request: pytest.FixtureRequest) -> None:
    # Rate limits and queued tasks live there: one test's must not reach the next.
    if {"db", "transactional_db", "redis"} & set(request.fixturenames):
        request.getfixturevalue("redis")
        for address in (settings.CACHES["default"]["LOCATION"], settings.CELERY["broker_url"]):
            with Client.from_url(address) as client:
                client.flushdb()

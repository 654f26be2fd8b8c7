"""What every test can count on: a database and a Redis of its process's own, and nothing left in them."""

from collections.abc import Iterator

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

"""What every test can count on: a database and a Redis of its process's own, and nothing left in them."""

import gc
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from django.db import connection
from django.template.base import Template
from django.template.context import Context
from django.test import TransactionTestCase
from django.test.utils import _TestState, instrumented_test_render  # type: ignore[attr-defined]
from django.utils.safestring import SafeString
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker
from whitenoise.middleware import WhiteNoiseMiddleware

from portal.postgres import prepared
from tests.services import pristine
from tests.services.postgres import Postgres
from tests.services.redis import Redis, of_settings
from web import counters

# How long an example takes says something of the machine, and nothing of the code. The same code is tried with the same
# examples each time, so that a change is what makes a test fail; `make faults` goes looking for new ones.
hypothesis_settings.register_profile("same", deadline=None, derandomize=True)
hypothesis_settings.register_profile("exploring", deadline=None, print_blob=True)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: hardly anything of what is made goes again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Let the collector pass over what stays to the end anyway: modules and tests are a million objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Name the test that leaves a transaction open and take it back: those after it would fail for nothing."""
    done = yield
    if connection.in_atomic_block or (
        connection.connection is not None and not connection.autocommit
    ):
        connection.close()
        # The next use connects anew, and knows of no transaction.
        connection.connection = None
        connection.in_atomic_block = False
        raise AssertionError(f"{item.nodeid} leaves a transaction open")
    return done


@pytest.fixture(scope="session")
def django_test_environment(django_test_environment: None) -> Iterator[None]:
    """Django's, but that `response.context` is the page's alone: a copy for each of its hundred parts is costly."""
    recorded, plain = instrumented_test_render, _TestState.saved_data.template_render  # type: ignore[attr-defined]

    def render(template: Template, context: Context) -> SafeString:
        drawn: SafeString = (recorded if context.template is template else plain)(
            template, context
        )
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Template, "_render", render)
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_found_once() -> Iterator[None]:
    """Each new client has middleware of its own, which looks through all static files."""
    found: dict[str, Any] = {}
    find = WhiteNoiseMiddleware.add_files_from_finders

    def add_files_from_finders(self: WhiteNoiseMiddleware) -> None:
        if not found:
            find(self)
            found.update(self.files)
        self.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            WhiteNoiseMiddleware, "add_files_from_finders", add_files_from_finders
        )
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Django's, but that nobody is refused a connection before two minutes are over.

    What the machine takes for sixty-four threads, or to begin beside other work, says nothing of the code; who measures
    it says how long.
    """
    connection.settings_dict["OPTIONS"]["pool"]["timeout"] = 120


@pytest.fixture(scope="session")
def django_db_setup(
    postgres: Postgres,
    redis: Redis,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """The migrated test database, on servers that run by then."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        pristine.remember()
        options = connection.settings_dict["OPTIONS"]
        # All tests run the same few thousand statements, most of them once in a test, and planning one takes PostgreSQL
        # longer than anything else about it: each is planned once in a process.
        options["prepare_threshold"] = 1
        options["options"] += " -c plan_cache_mode=force_generic_plan"
        patch.setattr(prepared, "MOST_PREPARED", 2_000)
        pooled: Any = connection
        pooled.close()
        pooled.close_pool()
        patch.setattr(TransactionTestCase, "_fixture_teardown", pristine.restore)
        yield
        pristine.let_go()
        # A thread of a server that has just been stopped may still be giving its connection back, and a pool that is
        # open connects anew what is ended.
        pooled.close()
        pooled.close_pool()
        with connection._nodb_cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [connection.settings_dict["NAME"]],
            )


@pytest.fixture(autouse=True)
def _empty_redis(request: pytest.FixtureRequest) -> None:
    from workloads import kept_boards  # its models want Django to be set up

    # Rate limits and queued tasks live there: one test's must not reach the next.
    if {"db", "transactional_db", "redis"} & set(request.fixturenames):
        request.getfixturevalue("redis")
        for client in of_settings():
            client.flushdb()
        # A test before this one may have taken the cache away, which is then left alone for a while.
        counters.breaker.open_until = 0.0
        # What a process has at hand is of rows that are gone, and their numbers may come again.
        kept_boards.at_hand.clear()

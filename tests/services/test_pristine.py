"""A test that commits leaves nothing behind, and takes nothing of the migrations' away."""

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from redis import Redis as Client

from tests.services import pristine

ROUNDS = pytest.mark.parametrize("round", [1, 2])


def rows(schema: str) -> dict[str, int]:
    """How many rows each table holds that holds any."""
    with connection.cursor() as cursor:
        counts = {}
        for table in pristine.tables(cursor, schema):
            cursor.execute(f'SELECT count(*) FROM {schema}."{table}"')
            [counts[table]] = cursor.fetchone()
    return {table: count for table, count in counts.items() if count}


@ROUNDS
@pytest.mark.django_db(transaction=True)
def test_committed_rows_are_gone_in_the_next_test(round: int) -> None:
    assert rows("public") == rows("pristine")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_session VALUES ('key', 'data', now())")
    assert rows("public") != rows("pristine")


@ROUNDS
@pytest.mark.django_db(transaction=True)
def test_that_is_so_after_every_connection_was_ended(round: int) -> None:
    assert rows("public") == rows("pristine")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_session VALUES ('key', 'data', now())")
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@ROUNDS
@pytest.mark.django_db
def test_the_cache_is_empty_when_a_test_begins(round: int) -> None:
    assert cache.add("seen", True)


@ROUNDS
@pytest.mark.django_db
def test_the_queue_is_empty_when_a_test_begins(round: int) -> None:
    with Client.from_url(settings.CELERY["broker_url"]) as broker:
        assert broker.lpush("celery", "task") == 1


@pytest.mark.django_db
def test_what_is_taken_back_counts_as_never_written() -> None:
    assert pristine.is_restored()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_session VALUES ('key', 'data', now())")
        assert not pristine.is_restored()
        cursor.execute("DELETE FROM django_session")
        cursor.execute("UPDATE auth_permission SET name = 'Other'")
        assert not pristine.is_restored()
        transaction.set_rollback(True)
    assert pristine.is_restored()

"""A connection has what it runs often prepared, so that PostgreSQL need not plan it each time."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from django.db import NotSupportedError, connection, transaction
from psycopg import Connection

from accounts.models import Team
from portal.env import PREPARED_FROM
from portal.postgres.prepared import MOST_PREPARED

OFTEN = 'SELECT "accounts_team"."slug" AS "slug", "accounts_team"."name" AS "name"'


@pytest.fixture(autouse=True)
def _nothing_is_prepared_and_limits_are_the_products(
    _django_db_helper: None,
) -> Iterator[None]:
    connection.ensure_connection()
    of_tests: Connection = connection.connection
    limits = of_tests.prepare_threshold, of_tests.prepared_max
    forget()
    of_tests.prepare_threshold, of_tests.prepared_max = PREPARED_FROM, MOST_PREPARED
    yield
    of_tests.prepare_threshold, of_tests.prepared_max = limits


def forget() -> None:
    """Have the connection begin anew."""
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")


def run_often() -> None:
    """A statement that is run more often than it takes to be prepared."""
    for number in range(PREPARED_FROM + 2):
        assert (
            list(
                Team.objects.filter(slug=f"often-{number}").values_list("slug", "name")
            )
            == []
        )


def prepared(text: str) -> int:
    """How many statements with this text the connection has prepared."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s",
            [f"%{text}%"],
        )
        count: int = cursor.fetchone()[0]
    return count


@pytest.mark.django_db
def test_what_is_run_often_is_prepared_and_what_is_run_once_is_not() -> None:
    run_often()
    list(Team.objects.filter(name="once").values_list("slug"))
    assert prepared(OFTEN) == 1
    assert prepared('SELECT "accounts_team"."slug" AS "slug" FROM') == 0


@pytest.mark.django_db
def test_a_connection_keeps_only_so_many() -> None:
    with connection.cursor() as cursor:
        for number in range(MOST_PREPARED + 10):
            for _ in range(PREPARED_FROM + 1):
                cursor.execute(f"SELECT %s::int + {number} AS many", [1])
    # What has to make room goes with the next statement.
    assert prepared("AS many") <= MOST_PREPARED + 1


@pytest.mark.django_db
def test_a_part_that_is_taken_back_leaves_what_is_prepared() -> None:
    run_often()
    with transaction.atomic():
        transaction.set_rollback(True)
    assert prepared(OFTEN) == 1
    run_often()


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_taken_back_leaves_what_was_prepared_in_it() -> None:
    with transaction.atomic():
        run_often()
        transaction.set_rollback(True)
    assert prepared(OFTEN) == 1
    run_often()


@pytest.mark.django_db
def test_nothing_that_was_prepared_outlives_a_change_of_tables() -> None:
    run_often()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_team ALTER COLUMN name SET STATISTICS 50")
    assert prepared(OFTEN) == 0


@pytest.mark.parametrize("in_transaction", [True, False])
@pytest.mark.django_db(transaction=True)
def test_one_statement_fails_and_no_more_where_another_process_changed_the_table(
    in_transaction: bool,
) -> None:
    def names() -> None:
        with (
            transaction.atomic() if in_transaction else nullcontext(),
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT name FROM of_this_test WHERE name <> %s", ["x"])

    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("CREATE TABLE of_this_test (name varchar(10))")
            for _ in range(PREPARED_FROM + 2):
                names()
            cursor.execute(
                "ALTER TABLE of_this_test ALTER COLUMN name TYPE varchar(100)"
            )
        with pytest.raises(NotSupportedError, match="cached plan"):
            names()
        for _ in range(PREPARED_FROM + 2):
            names()
    finally:
        with other.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS of_this_test")
        other.close()

"""A connection has what it runs often prepared, so that PostgreSQL need not plan it each time."""

import pytest
from django.db import connection

from accounts.models import Team
from portal.env import PREPARED_FROM
from portal.postgres.base import MOST_PREPARED

pytestmark = pytest.mark.django_db


def prepared(text: str) -> int:
    """How many statements with this text the connection has prepared."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", [f"%{text}%"])
        count: int = cursor.fetchone()[0]
    return count


def test_what_is_run_often_is_prepared_and_what_is_run_once_is_not() -> None:
    for number in range(PREPARED_FROM + 2):
        assert list(Team.objects.filter(slug=f"often-{number}").values_list("slug", "name")) == []
    list(Team.objects.filter(name="once").values_list("slug"))
    assert prepared('SELECT "accounts_team"."slug" AS "slug", "accounts_team"."name" AS "name"') == 1
    assert prepared('SELECT "accounts_team"."slug" AS "slug" FROM') == 0


def test_a_connection_keeps_only_so_many() -> None:
    with connection.cursor() as cursor:
        for number in range(MOST_PREPARED + 10):
            for _ in range(PREPARED_FROM + 1):
                cursor.execute(f"SELECT %s::int + {number} AS many", [1])
    # What has to make room goes with the next statement.
    assert prepared("AS many") <= MOST_PREPARED + 1

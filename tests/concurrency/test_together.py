"""The means of these tests: what waits for a lock is seen, whoever came first."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, transaction

from tests.concurrency.together import waiting_for_a_lock
from tests.services.process import wait_until

LOCK = 4711


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_made_later_is_seen_to_wait() -> None:
    """PostgreSQL remembers for a transaction which connections there are, from the first time that it is asked."""
    server = connection.settings_dict

    def wait() -> None:
        with psycopg.connect(
            host=server["HOST"],
            port=server["PORT"],
            dbname=server["NAME"],
            user=server["USER"],
        ) as later:
            later.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            assert waiting_for_a_lock() == 0
            waiting = thread.submit(wait)
            wait_until(
                lambda: waiting_for_a_lock() == 1, what="the later one", seconds=15
            )
        waiting.result(timeout=30)

"""A row at which a sweep fails keeps no other from its turn, and is not kept quiet."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection, transaction

from reconciling.sweeping import for_each


@pytest.mark.django_db
def test_what_was_returned_comes_in_the_order_of_the_rows() -> None:
    assert for_each([3, 1, 2], lambda row: row * 10) == [30, 10, 20]


@pytest.mark.django_db
def test_every_row_has_its_turn_before_the_failures_are_raised_together() -> None:
    reached = []

    def act(row: int) -> None:
        reached.append(row)
        if row % 2:
            raise ValueError(row)

    with pytest.raises(ExceptionGroup) as raised:
        for_each([1, 2, 3, 4], act)
    assert reached == [1, 2, 3, 4]
    assert [failure.args for failure in raised.value.exceptions] == [(1,), (3,)]


@pytest.mark.django_db
def test_a_statement_that_the_database_refuses_ends_with_its_own_row() -> None:
    @transaction.atomic
    def act(row: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / %s", [row])
        return row

    with pytest.raises(ExceptionGroup) as raised:
        for_each([0, 1], act)
    assert len(raised.value.exceptions) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("end", [SoftTimeLimitExceeded, MemoryError])
def test_the_end_of_the_time_or_the_memory_of_the_task_ends_the_sweep(
    end: type[Exception],
) -> None:
    reached = []

    def act(row: int) -> None:
        reached.append(row)
        raise end

    with pytest.raises(end):
        for_each([1, 2], act)
    assert reached == [1]


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_gone_ends_the_sweep() -> None:
    reached = []

    def act(row: int) -> None:
        reached.append(row)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(Exception, match="terminating connection"):
        for_each([1, 2], act)
    assert reached == [1]
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_cut_costs_its_own_row_its_turn_and_no_other() -> None:
    @transaction.atomic
    def act(row: int) -> int:
        with connection.cursor() as cursor:
            if row == 1:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            cursor.execute("SELECT %s::int", [row])
            reached.append(row)
        return row

    reached: list[int] = []
    with pytest.raises(ExceptionGroup) as raised:
        for_each([1, 2, 3], act)
    assert reached == [2, 3]
    assert [type(one) for one in raised.value.exceptions] == [OperationalError]

"""Within a task it is as late as the database says, and asking again costs nothing."""

from contextvars import copy_context
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit import clock

pytestmark = pytest.mark.django_db


def test_a_task_asks_the_database_once_and_counts_on(
    django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: began + timedelta(days=1))
    with clock.of_the_database(), django_assert_num_queries(1):
        first, second = clock.now(), clock.now()
        assert (
            began - timedelta(minutes=1) < first < second < began + timedelta(minutes=1)
        )
        assert copy_context().run(clock.now) > second, (
            "a thread beside it goes by the same clock"
        )


def test_elsewhere_nobody_is_asked(
    django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = timezone.now() + timedelta(days=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: at)
    with django_assert_num_queries(0):
        assert clock.now() == at
    with clock.of_the_database():
        assert clock.now() < at
    assert clock.now() == at

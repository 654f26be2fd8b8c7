"""Old answers and sessions that are over are let go; everything else stays."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Idempotency, User
from accounts.tasks import KEPT, forget, forget_old_answers
from portal.celery import app
from portal.celery_schedule import SCHEDULE
from tests import factories
from tests.scene import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return factories.person("Ada Okafor")


def answer(user: User, key: str, *, age: timedelta) -> None:
    """An answer that was given this long before now."""
    row = Idempotency.objects.create(
        user=user, route="onboard", key=key, body_hash="0" * 64
    )
    Idempotency.objects.filter(pk=row.pk).update(created_at=NOW - age)


def test_it_forgets_answers_after_seven_days_and_keeps_younger_ones(ada: User) -> None:
    answer(ada, "old", age=KEPT + timedelta(seconds=1))
    answer(ada, "a week old", age=KEPT)
    answer(ada, "new", age=timedelta(hours=1))
    assert forget(NOW) == 1
    assert set(Idempotency.objects.values_list("key", flat=True)) == {
        "a week old",
        "new",
    }
    assert forget(NOW + timedelta(seconds=1)) == 1


def test_it_forgets_sessions_that_are_over() -> None:
    for key, expires in (
        ("over", NOW - timedelta(seconds=1)),
        ("alive", NOW + timedelta(hours=1)),
    ):
        Session.objects.create(session_key=key, session_data="", expire_date=expires)
    assert forget(NOW) == 1
    assert Session.objects.get().session_key == "alive"


def test_it_deletes_in_batches_and_all_of_it(ada: User) -> None:
    for number in range(5):
        answer(ada, str(number), age=timedelta(days=8))
    with CaptureQueriesContext(connection) as seen:
        assert forget(NOW, batch=2) == 5
    deletes = [query["sql"] for query in seen if query["sql"].startswith("DELETE")]
    assert len(deletes) == 3
    assert not Idempotency.objects.exists()


def test_the_clock_calls_it_every_hour_and_the_worker_knows_it(ada: User) -> None:
    app.loader.import_default_modules()
    entry = SCHEDULE["forget old answers"]
    assert (entry["schedule"], entry["task"] in app.tasks) == (3600.0, True)
    answer(ada, "old", age=timedelta(days=3650))
    forget_old_answers()
    assert not Idempotency.objects.exists()

"""A worker is told of what was committed, of nothing else, and a broker that is away stops nobody."""

import base64
import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from celery import Celery
from django.conf import settings
from django.db import transaction
from redis import Redis

from reconciling import enqueue
from reconciling.enqueue import Queue
from tests.services.redis import Redis as Server

TASK = "tests.nobody_takes_this"


@pytest.fixture
def queue() -> Queue:
    return Queue(TASK, expires=60, subject="row")


@pytest.fixture
def broker(redis: Server) -> Iterator[Redis]:
    with Redis.from_url(settings.CELERY["broker_url"]) as broker:
        broker.delete("celery")
        yield broker


def published(queue: Queue, broker: Redis) -> list[list[int]]:
    """The ids in each message, once everything that was committed is published."""
    queue.publisher.submit(lambda: None).result()
    messages = [json.loads(raw) for raw in reversed(broker.lrange("celery", 0, -1))]
    assert {message["headers"]["task"] for message in messages} <= {TASK}
    return [json.loads(base64.b64decode(message["body"]))[0] for message in messages]


@pytest.mark.usefixtures("transactional_db")
def test_a_worker_is_told_after_the_commit_and_in_its_order(
    queue: Queue, broker: Redis
) -> None:
    with transaction.atomic():
        queue.enqueue_on_commit(1)
        queue.enqueue_on_commit(2)
        assert published(queue, broker) == []

    assert published(queue, broker) == [[1], [2]]


@pytest.mark.usefixtures("transactional_db")
def test_of_what_was_not_committed_nobody_is_told(queue: Queue, broker: Redis) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        queue.enqueue_on_commit(1)
        raise ZeroDivisionError

    assert published(queue, broker) == []


def test_messages_that_wait_are_counted(queue: Queue, broker: Redis) -> None:
    assert enqueue.waiting() == 0
    queue.enqueue(1)
    queue.enqueue(2)
    assert enqueue.waiting() == 2


def test_of_a_broker_that_is_away_nothing_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = Celery("away", broker="redis://127.0.0.1:9/0", set_as_current=False)
    monkeypatch.setattr(enqueue, "current_app", away)
    assert enqueue.waiting() == 0

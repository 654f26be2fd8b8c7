"""What starts a delivery, and what happens when many start at once."""

import base64
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from celery import current_app
from django.conf import settings as configured
from django.db import connection, transaction
from redis import Redis

from notices.actions import tell
from notices.delivery import take
from notices.enqueue import enqueue
from notices.kinds import NoticeKind
from notices.message import Message
from notices.models import Delivery
from notices.tasks import deliver
from portal.env import Environment
from tests import factories
from tests.posting import Running
from tests.scene import NOW
from tests.services import environment


def told() -> Delivery:
    ada = factories.person("Ada", email="ada@example.com")
    with transaction.atomic():
        tell(
            NoticeKind.TASK_ASSIGNED,
            to=[ada],
            subject=("task", 1),
            link="/x",
            message=Message("t", "s"),
            now=NOW,
        )
    return Delivery.objects.get()


def with_mail_server(post: Running, settings: Any) -> None:
    """The settings name the post's mail server."""
    settings.ENV = settings.ENV.model_copy(
        update={
            "mail_host": "localhost",
            "mail_port": int(post.post.described["smtp_port"]),
            "mail_tls": "none",
        }
    )


@pytest.mark.django_db(transaction=True)
def test_of_sixteen_workers_one_gets_the_delivery() -> None:
    delivery = told()

    def claim(_: int) -> bool:
        try:
            return take(delivery.pk, now=NOW) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as workers:
        assert sum(workers.map(claim, range(16))) == 1
    delivery.refresh_from_db()
    assert delivery.attempts == 1


@pytest.mark.django_db
def test_the_task_sends_what_is_due_as_the_settings_say(
    post: Running, settings: Any
) -> None:
    told()
    deliver()
    assert post.got == []  # no mail server is configured
    with_mail_server(post, settings)
    deliver()
    assert [got["to"] for got in post.got] == [["ada@example.com"]]


@pytest.mark.django_db
@pytest.mark.parametrize("broken", ["directory.tell_of_brake", "digest.collect"])
def test_what_cannot_be_written_keeps_nothing_from_being_sent(
    post: Running, settings: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fails(*, now: datetime) -> None:
        raise RuntimeError(f"broken at {now}")

    monkeypatch.setattr(f"notices.{broken}", fails)
    with_mail_server(post, settings)
    told()
    with pytest.raises(RuntimeError, match="broken at"):
        deliver()
    assert [got["to"] for got in post.got] == [["ada@example.com"]]


@pytest.mark.django_db
def test_enqueueing_puts_one_message_without_content_into_the_broker() -> None:
    with Redis.from_url(configured.CELERY["broker_url"]) as broker:
        enqueue()
        (message,) = broker.lrange("celery", 0, -1)
    assert b"notices.tasks.deliver" in message
    args, kwargs, _ = json.loads(base64.b64decode(json.loads(message)["body"]))
    assert (args, kwargs) == ([], {})


def test_a_broker_that_does_not_answer_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(name: str, **options: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(current_app, "send_task", away)
    with caplog.at_level(logging.WARNING):
        enqueue()
    assert "broker does not answer" in caplog.text


def test_a_password_for_mail_that_would_travel_in_the_open_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QM_MAIL_PASSWORD", "canary")
    monkeypatch.setenv("QM_MAIL_TLS", "none")
    with pytest.raises(ValueError, match="over TLS only") as refused:
        Environment()  # type: ignore[call-arg]
    assert "canary" not in str(refused.value)


def test_hosts_of_receivers_are_compared_in_small_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment.fill()
    for name in ("RECEIVERS", "HOSTS_ALLOWED"):
        monkeypatch.setenv(f"QM_WEBHOOK_{name}", '["Hooks.Example.com:8443 "]')
    named = Environment()  # type: ignore[call-arg]
    assert named.webhook_receivers == named.webhook_hosts_allowed
    assert named.webhook_receivers == ["hooks.example.com:8443"]

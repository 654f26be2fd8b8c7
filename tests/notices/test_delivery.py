"""Deliveries: sent once, tried again as told, given up in time, and sent again when somebody says so."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from notices.actions import tell, tell_channels
from notices.delivery import (
    LEASE,
    MAX_ATTEMPTS,
    WORKER_DIED,
    attempt,
    deliver_due,
    send,
    take,
)
from notices.kinds import NoticeKind, Way
from notices.message import Message
from notices.models import Channel, Delivery
from notices.sealing import seal
from tests import factories
from tests.faults.proxy import proxied
from tests.posting import Running
from tests.scene import NOW

pytestmark = pytest.mark.django_db
SAID = Message(
    "Vision asks for 16 A100", "Vision asks for 16 more A100.", (("Cost", "$59,000"),)
)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def clock(at: datetime) -> Callable[[], datetime]:
    return lambda: at


def ada(**fields: Any) -> User:
    return factories.person("Ada", **{"email": "ada@example.com"} | fields)


def told(to: User, *, title: str = SAID.title, now: datetime = NOW) -> Delivery:
    said = Message(title, SAID.sentence, SAID.facts)
    tell(
        NoticeKind.REQUEST_WAITING,
        to=[to],
        subject=("request", 1),
        link="/requests/1/",
        message=said,
        now=now,
    )
    return Delivery.objects.latest("id")


def channel(post: Running, way: Way, **fields: Any) -> Channel:
    usual = {
        "name": way.words,
        "way": way,
        "sealed": seal(post.post.described[way]),
        "kinds": ["request_waiting"],
    }
    return Channel.objects.create(**usual | fields)


def told_channels(now: datetime = NOW) -> None:
    tell_channels(
        NoticeKind.REQUEST_WAITING,
        subject=("request", 1),
        link="/requests/1/",
        message=SAID,
        now=now,
    )


def run(post: Running, at: datetime = NOW, **changes: Any) -> int:
    return deliver_due(
        now=clock(at), outside=post.outside(**changes), jitter=lambda: 0.0
    )


def test_what_was_told_arrives_once(post: Running) -> None:
    delivery = told(ada())
    assert (run(post), run(post, NOW + LEASE)) == (1, 0)
    (got,) = post.got
    assert (got["to"], got["title"]) == (["ada@example.com"], SAID.title)
    assert "https://gpus.example.com/requests/1/" in got["text"]
    assert got["id"] == f"<notice-{delivery.notice_id}@gpus.example.com>"
    delivery.refresh_from_db()
    assert (delivery.state, delivery.sent_at, delivery.attempts) == ("sent", NOW, 1)


def test_every_way_carries_the_same_sentences(post: Running) -> None:
    told(ada())
    channel(post, Way.TEAMS)
    channel(post, Way.SLACK)
    told_channels()
    assert run(post) == 3
    texts = {got["way"]: got.get("text") or str(got["body"]) for got in post.got}
    assert set(texts) == {"smtp", "teams", "slack"}
    for text in texts.values():
        for words in (
            SAID.title,
            SAID.sentence,
            "$59,000",
            "https://gpus.example.com/requests/1/",
        ):
            assert words in text


def test_a_worker_that_dies_after_sending_sends_again_under_the_same_id(
    post: Running,
) -> None:
    delivery = told(ada())
    claim = take(delivery.pk, now=NOW)
    assert claim
    send(claim.delivery, now=NOW, outside=post.outside())
    # Here the process ends: nothing is written down.
    assert run(post, NOW + LEASE - SECOND) == 0
    assert run(post, NOW + LEASE) == 1
    first, second = post.got
    assert first["id"] == second["id"]


def test_a_mail_whose_receipt_was_lost_is_sent_again_within_seconds_under_the_same_id(
    post: Running,
) -> None:
    other = factories.person("Marcus", email="marcus@example.com")
    delivery, waiting = told(ada()), told(other)
    mail = post.mail()
    with proxied(mail.port) as proxy:
        outside: dict[str, Any] = {"mail": replace(mail, port=proxy.port)}
        # EHLO, MAIL, RCPT and DATA go through; the mail arrives, and the word that it did never comes.
        proxy.fail("reset", after=4)
        assert run(post, **outside) == 1
        delivery.refresh_from_db()
        waiting.refresh_from_db()
        assert (delivery.state, waiting.state) == ("waiting", "sent")
        assert delivery.next_at - NOW <= 5 * SECOND
        assert run(post, delivery.next_at, **outside) == 1
    mine = [got for got in post.got if got["to"] == ["ada@example.com"]]
    assert len(mine) == 2
    assert mine[0]["id"] == mine[1]["id"]


def test_two_workers_never_hold_the_same_delivery(post: Running) -> None:
    delivery = told(ada())
    first, second = (
        take(delivery.pk, now=NOW),
        take(delivery.pk, now=NOW + LEASE - SECOND),
    )
    assert first
    assert second is None
    late = take(delivery.pk, now=NOW + LEASE)
    assert late
    assert late.attempt == 2
    # The first one's failure comes after its time: it must not undo what the second is doing.
    post.fail("smtp", 550, times=1)
    attempt(first, now=clock(NOW + LEASE), outside=post.outside(), jitter=lambda: 0.0)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 2)


def test_a_mail_refused_for_now_is_tried_later_each_time_and_given_up_after_eight(
    post: Running,
) -> None:
    delivery = told(ada())
    post.fail("smtp", 451)
    at, waits = NOW, []
    for _ in range(MAX_ATTEMPTS):
        assert run(post, at) == 0
        delivery.refresh_from_db()
        waits.append((delivery.next_at - at).total_seconds())
        at = delivery.next_at
    assert waits[:-1] == [30, 90, 270, 810, 2430, 3600, 3600]
    assert (delivery.state, delivery.attempts) == ("parked", MAX_ATTEMPTS)
    assert "451" in delivery.last_error
    post.inbox.faults.clear()
    assert run(post, at + timedelta(days=1)) == 0


def test_a_mail_refused_for_good_is_given_up_at_once_and_stops_no_other(
    post: Running,
) -> None:
    refused, good = told(ada()), told(ada(), title="Another")
    post.fail("smtp", 550, times=1)
    assert run(post) == 1
    refused.refresh_from_db()
    good.refresh_from_db()
    assert (refused.state, good.state) == ("parked", "sent")
    assert "550" in refused.last_error


def test_a_receiver_that_names_a_time_is_left_alone_until_then_with_all_that_waits_for_it(
    post: Running,
) -> None:
    channel(post, Way.SLACK)
    channel(post, Way.TEAMS)
    told_channels()
    told_channels()
    post.fail("slack", 429, retry_after="120", times=1)
    assert run(post) == 2  # both to Teams
    slack = Delivery.objects.filter(way=Way.SLACK)
    assert [(d.attempts, d.next_at) for d in slack.order_by("id")] == [
        (1, NOW + 2 * MINUTE),
        (0, NOW + 2 * MINUTE),
    ]
    assert run(post, NOW + 2 * MINUTE - SECOND) == 0
    assert run(post, NOW + 2 * MINUTE) == 2


def test_while_the_mail_server_is_away_one_mail_asks_for_all(post: Running) -> None:
    for number in range(3):
        told(ada(), title=str(number))
    away = post.mail(port=9)
    assert run(post, mail=away) == 0
    assert sorted(Delivery.objects.values_list("attempts", flat=True)) == [0, 0, 1]
    assert set(Delivery.objects.values_list("next_at", flat=True)) == {
        NOW + timedelta(seconds=30)
    }
    assert run(post, NOW + timedelta(seconds=30)) == 3


@pytest.mark.slow
def test_without_a_mail_server_mails_wait_and_channels_are_told(post: Running) -> None:
    delivery = told(ada())
    channel(post, Way.SLACK)
    told_channels()
    assert run(post, mail=None) == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"email": ""}, "no e-mail address"),
        ({"email": "x\r\nBcc: y@example.com"}, "no address"),
    ],
)
def test_who_cannot_be_written_to_is_said(
    post: Running, fields: dict[str, Any], why: str
) -> None:
    delivery = told(ada(**fields))
    run(post)
    delivery.refresh_from_db()
    assert delivery.state == "parked"
    assert why in delivery.last_error
    assert post.got == []


def test_who_was_blocked_meanwhile_is_not_written_to(post: Running) -> None:
    person = ada()
    delivery = told(person)
    User.objects.filter(pk=person.pk).update(is_active=False)
    run(post)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.last_error, post.got) == (
        "parked",
        "This account is blocked.",
        [],
    )


def test_a_channel_switched_off_meanwhile_is_not_told(post: Running) -> None:
    slack = channel(post, Way.SLACK)
    told_channels()
    Channel.objects.filter(pk=slack.pk).update(enabled=False)
    run(post)
    assert Delivery.objects.get().last_error == "The channel is switched off."
    assert post.got == []


def test_an_address_that_came_to_lead_inside_is_refused_when_sending_too(
    post: Running,
) -> None:
    channel(post, Way.SLACK, url="https://127.0.0.1/secret")
    told_channels()
    run(post)
    delivery = Delivery.objects.get()
    assert delivery.state == "parked"
    assert "not on the internet" in delivery.last_error
    assert "secret" not in delivery.last_error


def test_a_delivery_that_kills_every_worker_is_given_up(post: Running) -> None:
    delivery = told(ada())
    Delivery.objects.update(attempts=MAX_ATTEMPTS)
    assert run(post) == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.last_error) == ("parked", WORKER_DIED)


def test_a_fault_of_ours_counts_as_an_attempt_and_stops_no_other(post: Running) -> None:
    broken, good = told(ada()), told(ada())
    assert broken.notice
    broken.notice.message = {"title": "without the rest"}
    broken.notice.save()
    assert run(post) == 1
    broken.refresh_from_db()
    good.refresh_from_db()
    assert (broken.state, broken.last_error) == (
        "waiting",
        "A fault of the portal: KeyError.",
    )
    assert good.state == "sent"


def test_a_title_with_line_breaks_writes_no_header(post: Running) -> None:
    told(ada(), title="Hello\r\nBcc: all@example.com\r\n\r\nInjected")
    run(post)
    (got,) = post.got
    assert got["title"] == "Hello Bcc: all@example.com Injected"
    assert got["to"] == ["ada@example.com"]
    assert "Bcc" not in got["headers"]


def test_a_pass_with_nothing_due_is_one_query(post: Running) -> None:
    told(ada(), now=NOW + MINUTE)
    with CaptureQueriesContext(connection) as queries:
        run(post)
    assert len(queries) == 1

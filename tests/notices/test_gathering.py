"""Forty requests are not forty mails: the first leaves at once, and what follows it in one mail ten minutes later."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from accounts.models import User
from connectors.mail import Letter, ReceiptLost
from notices import delivery
from notices.actions import tell
from notices.kinds import GATHERED_FOR, NoticeKind
from notices.message import Message
from notices.models import Delivery, Preference
from notices.servers import Outside
from tests import factories
from tests.scene import NOW

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


class Post:
    """A mail server that keeps what it is given."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []

    def send(self, letter: Letter, *, now: Any) -> None:
        self.letters.append(letter)


@pytest.fixture
def priya() -> User:
    return factories.person("Priya Raman", email="priya@example.com")


@pytest.fixture
def post() -> Post:
    return Post()


def ask(
    person: User,
    number: int,
    *,
    seconds: int = 0,
    kind: NoticeKind = NoticeKind.REQUEST_WAITING,
) -> None:
    message = Message(
        f"Request {number}",
        "It waits.",
        rules=(("no", "Up to 2 GPUs", "8"),),
        action="Decide",
    )
    with transaction.atomic():
        tell(
            kind,
            to=[person],
            subject=("request", number),
            link=f"/approvals/{number}/",
            message=message,
            now=NOW + seconds * SECOND,
        )


def deliver(post: Any, now: Any) -> int:
    webhooks: Any = None
    outside = Outside(
        mail=post, webhooks=webhooks, public_url="https://gpus.example.com"
    )
    return delivery.deliver_due(now=lambda: now, outside=outside)


def test_forty_requests_are_two_mails(priya: User, post: Post) -> None:
    ask(priya, 1)
    deliver(post, NOW)
    for number in range(2, 41):
        ask(priya, number, seconds=number)
    deliver(post, NOW + 60 * SECOND)
    assert [letter.subject for letter in post.letters] == ["Request 1"]
    deliver(post, NOW + GATHERED_FOR)
    assert [letter.subject for letter in post.letters] == [
        "Request 1",
        "39 requests wait for your decision",
    ]
    assert all(
        f"/approvals/{number}/" in post.letters[1].text for number in range(2, 41)
    )
    assert not Delivery.objects.exclude(state="sent").exists()
    deliver(post, NOW + 2 * GATHERED_FOR)
    assert len(post.letters) == 2


def test_the_second_waits_for_ten_minutes_after_a_first_that_is_about_to_leave(
    priya: User, post: Post
) -> None:
    ask(priya, 1)
    ask(priya, 2)
    assert sorted(Delivery.objects.values_list("next_at", flat=True)) == [
        NOW,
        NOW + GATHERED_FOR,
    ]


def test_after_ten_quiet_minutes_the_next_leaves_at_once(
    priya: User, post: Post
) -> None:
    ask(priya, 1)
    deliver(post, NOW)
    ask(priya, 2, seconds=601)
    deliver(post, NOW + 601 * SECOND)
    assert [letter.subject for letter in post.letters] == ["Request 1", "Request 2"]


def test_who_chose_at_once_gets_each_at_once_and_other_kinds_never_wait(
    priya: User, post: Post
) -> None:
    ben = factories.person("Ben Ruiz", email="ben@example.com")
    Preference.objects.create(person=ben, kind="request_waiting", pace="at_once")
    for number in (1, 2, 3):
        ask(ben, number)
        ask(priya, number, kind=NoticeKind.REQUEST_ASKED_BACK)
    deliver(post, NOW)
    assert len(post.letters) == 6


def test_the_button_comes_before_the_list_of_rules(priya: User, post: Post) -> None:
    ask(priya, 1)
    deliver(post, NOW)
    for body in (post.letters[0].text, post.letters[0].html):
        assert body.index("/approvals/1/") < body.index("Up to 2 GPUs")


class Forgetful(Post):
    """A mail server that takes what it is given, and whose receipts are lost as long as it is told so."""

    loses = True

    def send(self, letter: Letter, *, now: Any) -> None:
        super().send(letter, now=now)
        if self.loses:
            raise ReceiptLost("The receipt did not come.")


def test_a_mail_whose_receipt_was_lost_is_sent_again_as_it_was_and_nothing_of_it_alone(
    priya: User,
) -> None:
    post = Forgetful()
    post.loses = False
    for number in range(1, 5):
        ask(priya, number)
    deliver(post, NOW)
    post.loses = True
    deliver(post, NOW + GATHERED_FOR)
    # What comes meanwhile leaves by itself: whoever has had the mail takes it no second time.
    ask(priya, 5, seconds=601)
    post.loses = False
    deliver(post, NOW + GATHERED_FOR + 5 * SECOND)
    deliver(post, NOW + 3 * GATHERED_FOR)
    _, first, again, *more = post.letters
    assert first.subject == "3 requests wait for your decision"
    assert again == first
    assert [letter.subject for letter in more] == ["Request 5"]


def test_a_mail_whose_worker_died_is_sent_again_as_it_was_and_nothing_of_it_alone(
    priya: User, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        """What no code catches."""

    def die(letter: Letter, *, now: Any) -> None:
        raise Died

    for number in range(1, 5):
        ask(priya, number)
    deliver(post, NOW)
    monkeypatch.setattr(post, "send", die)
    with pytest.raises(Died):
        deliver(post, NOW + GATHERED_FOR)
    monkeypatch.undo()
    deliver(post, NOW + GATHERED_FOR + delivery.LEASE)
    assert [letter.subject for letter in post.letters] == [
        "Request 1",
        "3 requests wait for your decision",
    ]

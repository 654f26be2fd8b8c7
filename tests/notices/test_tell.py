"""Telling: rows in the caller's transaction, for whom, how soon, and for which channels."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from notices.actions import tell, tell_channels
from notices.kinds import CHOOSABLE, NoticeKind, Pace, Way
from notices.message import Message
from notices.models import Channel, Delivery, Notice, Preference
from notices.sealing import seal
from tests import factories
from tests.scene import NOW

pytestmark = pytest.mark.django_db
SAID = Message(
    "Vision asks for 16 A100",
    "Vision asks for 16 more A100 for 14 days.",
    (("Cost", "$59,000"),),
)
ABOUT = {
    "subject": ("request", 17),
    "link": "/requests/17/",
    "message": SAID,
    "now": NOW,
}


def told(*people: User, kind: NoticeKind = NoticeKind.REQUEST_WAITING) -> None:
    tell(kind, to=people, **ABOUT)  # type: ignore[arg-type]


def test_each_person_is_told_once_and_at_once() -> None:
    ada, ben = factories.person("Ada"), factories.person("Ben")
    told(ada, ben, ada)
    assert [(n.person, n.said, n.pace) for n in Notice.objects.order_by("id")] == [
        (ada, SAID, Pace.AT_ONCE),
        (ben, SAID, Pace.AT_ONCE),
    ]
    assert set(Delivery.objects.values_list("way", "state", "next_at")) == {
        (Way.EMAIL, "waiting", NOW)
    }
    assert Delivery.objects.count() == 2


def test_a_transaction_that_is_rolled_back_tells_nobody() -> None:
    ada = factories.person("Ada")
    with transaction.atomic():
        told(ada)
        transaction.set_rollback(True)
    assert not Notice.objects.exists()
    assert not Delivery.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_it_cannot_be_told_outside_a_transaction() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        told(User(pk=1))


def test_the_bell_is_rung_after_the_commit_and_only_then(
    django_capture_on_commit_callbacks: Any,
) -> None:
    ada = factories.person("Ada")
    with django_capture_on_commit_callbacks() as rung:
        told(ada)
    assert len(rung) == 1
    with django_capture_on_commit_callbacks() as rung:
        told(ada, kind=NoticeKind.BUDGET_SOFT)  # for the daily mail
    assert rung == []


@pytest.mark.parametrize("kind", CHOOSABLE)
def test_what_a_person_chose_is_what_happens(kind: NoticeKind) -> None:
    people = {pace: factories.person() for pace in Pace}
    for pace, person in people.items():
        Preference.objects.create(person=person, kind=kind, pace=pace)
    undecided = factories.person()
    told(*people.values(), undecided, kind=kind)
    paces = dict(Notice.objects.values_list("person", "pace"))
    assert paces == {
        people[Pace.AT_ONCE].pk: "at_once",
        people[Pace.DIGEST].pk: "digest",
        undecided.pk: kind.default.value,
    }
    assert Delivery.objects.count() == list(paces.values()).count("at_once")


def test_somebody_whose_account_is_blocked_is_not_told() -> None:
    told(factories.person("Tom", is_active=False))
    assert not Notice.objects.exists()


def test_five_people_or_fifty_are_told_in_four_queries() -> None:
    for number in (5, 50):
        people = [factories.person() for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            told(*people)
        assert len(queries) == 4


@pytest.mark.parametrize(
    "link", ["", "requests/17", "//evil.example", "/\\evil", "https://evil.example/"]
)
def test_a_notice_leads_nowhere_but_into_the_portal(link: str) -> None:
    with pytest.raises(ValueError, match="page of the portal"):
        tell(
            NoticeKind.REQUEST_WAITING,
            to=[factories.person()],
            **ABOUT | {"link": link},  # type: ignore[arg-type]
        )


def test_what_people_wrote_is_kept_in_single_lines_of_bounded_length() -> None:
    nasty = Message(
        "a\r\nBcc: everybody@example.com\x00",
        "x" * 5000,
        (("\u202egpj", "v\n"),) * 50,
        (("<b>", "t", "l"),),
    )
    tell(
        NoticeKind.REQUEST_WAITING,
        to=[factories.person()],
        **ABOUT | {"message": nasty},  # type: ignore[arg-type]
    )
    said = Notice.objects.get().said
    assert said.title == "a Bcc: everybody@example.com"
    assert len(said.sentence) == 1000
    assert said.facts == (("gpj", "v"),) * 12
    assert said.rules == (("note", "t", "l"),)


def test_channels_are_told_what_they_subscribed_to_and_only_while_switched_on() -> None:
    def channel(name: str, kinds: list[str], *, enabled: bool = True) -> Channel:
        return Channel.objects.create(
            name=name,
            way=Way.SLACK,
            sealed=seal("https://x"),
            kinds=kinds,
            enabled=enabled,
        )

    wants = channel("wants", ["request_waiting", "task_done"])
    channel("other", ["task_done"])
    channel("off", ["request_waiting"], enabled=False)
    tell_channels(NoticeKind.REQUEST_WAITING, **ABOUT)  # type: ignore[arg-type]
    assert [(d.notice and d.notice.channel, d.way) for d in Delivery.objects.all()] == [
        (wants, Way.SLACK)
    ]

"""What was given up: shown to platform leads, sent again once, by page and API."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from notices.actions import tell
from notices.delivery import deliver_due
from notices.kinds import NoticeKind
from notices.message import Message
from notices.models import Delivery
from notices.tasks import forget
from tests import factories
from tests.calling import Caller
from tests.posting import Running
from tests.scene import DAY, NOW

pytestmark = pytest.mark.django_db
PAGE = "/settings/deliveries/"


@pytest.fixture
def priya(client: Client) -> User:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    client.force_login(priya)
    return priya


def told(title: str = "<b>Vision</b> asks", **fields: Any) -> Delivery:
    ada = factories.person("Ada Okafor", email="ada@example.com")
    tell(
        NoticeKind.REQUEST_WAITING,
        to=[ada],
        subject=("request", 1),
        link="/requests/1/",
        message=Message(title, "s"),
        now=NOW,
    )
    delivery = Delivery.objects.latest("id")
    Delivery.objects.filter(pk=delivery.pk).update(**fields)
    return delivery


def parked(title: str = "<b>Vision</b> asks") -> Delivery:
    return told(
        title,
        state="parked",
        attempts=8,
        last_error="The mail server answered 550: no such user",
    )


def test_the_page_says_what_to_whom_and_why_not_and_escapes_it(
    client: Client, priya: User
) -> None:
    parked()
    page = client.get(PAGE).content.decode()
    for words in (
        "&lt;b&gt;Vision&lt;/b&gt; asks",
        "Ada Okafor",
        "ada@example.com",
        "550: no such user",
    ):
        assert words in page
    assert "<b>Vision" not in page


def test_it_is_sent_again_and_that_is_written_down(
    client: Client, priya: User, post: Running
) -> None:
    delivery = parked()
    assert client.post(f"{PAGE}{delivery.pk}/again")["Location"] == PAGE
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)
    assert Event.objects.get(kind=Kind.NOTICE_SENT_AGAIN).actor_name == "Priya Raman"
    assert deliver_due(now=lambda: delivery.next_at, outside=post.outside()) == 1
    assert client.post(f"{PAGE}{delivery.pk}/again").status_code == 409
    assert len(post.got) == 1


def test_what_is_on_its_way_is_not_sent_again(client: Client, priya: User) -> None:
    delivery = told()
    answer = client.post(f"{PAGE}{delivery.pk}/again")
    assert answer.status_code == 409
    assert b"on its way already" in answer.content
    assert client.get(f"{PAGE}{delivery.pk}/again")["Location"] == PAGE


def test_the_api_lists_them_and_sends_again(priya: User) -> None:
    delivery, caller = parked(), Caller(priya)
    told("another")
    listed = caller.get("deliveries/?state=parked").json()["results"]
    assert [(row["id"], row["kind"], row["to"], row["state"]) for row in listed] == [
        (delivery.pk, "request_waiting", "Ada Okafor", "parked")
    ]
    assert len(caller.get("deliveries/").json()["results"]) == 2
    assert caller.get("deliveries/?state=lost").status_code in (400, 422)
    assert caller.post(f"deliveries/{delivery.pk}/again/").status_code == 202
    assert caller.post(f"deliveries/{delivery.pk}/again/").status_code == 409


@pytest.mark.slow
def test_five_rows_or_fifty_take_as_many_queries(client: Client, priya: User) -> None:
    counts = []
    caller = Caller(priya)
    caller.get("deliveries/")  # a token's last use is noted once a minute
    for number in (5, 45):
        for _ in range(number):
            parked()
        with CaptureQueriesContext(connection) as page:
            client.get(PAGE)
        with CaptureQueriesContext(connection) as api:
            caller.get("deliveries/?limit=50")
        counts.append((len(page), len(api)))
    assert counts[0] == counts[1]
    assert counts[0][0] <= 12
    assert counts[0][1] <= 6


def test_without_a_mail_server_the_page_says_so(client: Client, priya: User) -> None:
    assert "No mail server is configured" in client.get(PAGE).content.decode()


def test_old_notices_are_forgotten_but_not_what_has_not_left() -> None:
    gone = told("gone", state="sent", sent_at=NOW)
    kept = parked("kept")
    for delivery in (gone, kept):
        assert delivery.notice
        delivery.notice.at = NOW - 400 * DAY
        delivery.notice.save()
    fresh = told("fresh", state="sent", sent_at=NOW)
    assert fresh.notice
    forget()
    assert set(Delivery.objects.values_list("pk", flat=True)) >= {kept.pk}
    assert not Delivery.objects.filter(pk=gone.pk).exists()

"""Notices in Backstage: at once, one line for each thing, to nobody who is not there, and never in the way of mail."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from accounts.roles import Role
from notices import choosing
from notices.actions import tell
from notices.delivery import MAX_ATTEMPTS, deliver_due
from notices.kinds import NoticeKind, Pace, Way
from notices.message import Message
from notices.models import Delivery
from notices.servers import outside
from sandbox.backstage import SandboxBackstage
from tests import factories
from tests.backstages import named
from tests.calling import Caller
from tests.scene import NOW

pytestmark = pytest.mark.django_db
ADA = "user:default/ada.osei"


@pytest.fixture
def ada(notifying: SandboxBackstage) -> User:
    """Somebody whom Backstage's catalog knows."""
    found = factories.person("Ada Osei", email="ada@example.com")
    named(notifying, found)
    return found


def told(
    person: User,
    title: str = "Request 17 was approved",
    *,
    kind: NoticeKind = NoticeKind.REQUEST_DECIDED,
    subject: tuple[str, int] = ("request", 17),
    now: datetime = NOW,
) -> None:
    tell(
        kind,
        to=[person],
        subject=subject,
        link="/requests/17/",
        message=Message(title, "Vision holds 2 A100 until Friday."),
        now=now,
    )


def run(at: datetime = NOW) -> int:
    return deliver_due(now=lambda: at, outside=outside(), jitter=lambda: 0.0)


def of_backstage() -> Any:
    return Delivery.objects.filter(way=Way.BACKSTAGE)


def test_what_a_person_is_told_stands_in_backstage(
    notifying: SandboxBackstage, ada: User, settings: Settings
) -> None:
    told(ada)
    assert run() == 1
    assert notifying.shown == {
        ADA: {
            "request-17": {
                "title": "Request 17 was approved",
                "description": "Vision holds 2 A100 until Friday.",
                "link": f"{settings.PUBLIC_URL}/requests/17/",
                "topic": "request_decided",
                "scope": "request-17",
                "severity": "normal",
            }
        }
    }


def test_what_follows_about_the_same_thing_takes_its_place(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada, "Request 17 waits")
    told(ada, "Request 18 waits", subject=("request", 18))
    run()
    told(ada, "Request 17 was approved", now=NOW + timedelta(minutes=1))
    run(NOW + timedelta(minutes=1))
    titles = [line["title"] for line in notifying.shown[ADA].values()]
    assert titles == ["Request 18 waits", "Request 17 was approved"]


def test_what_comes_late_does_not_take_the_place_of_what_is_newer(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada, "Request 17 waits")
    of_backstage().update(next_at=NOW + timedelta(hours=1))
    told(ada, "Request 17 was approved")
    assert run() == 1
    assert run(NOW + timedelta(hours=1)) == 0
    assert notifying.shown[ADA]["request-17"]["title"] == "Request 17 was approved"
    assert of_backstage().count() == 1


def test_what_waits_for_the_daily_mail_stands_there_at_once_and_quietly(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada, kind=NoticeKind.REQUEST_COMMENTED)
    assert run() == 1
    assert notifying.shown[ADA]["request-17"]["severity"] == "low"


def test_what_somebody_does_not_want_to_be_told_is_not_there(
    notifying: SandboxBackstage, ada: User
) -> None:
    choosing.choose(ada, paces={NoticeKind.REQUEST_DECIDED: Pace.NONE})
    told(ada)
    assert run() == 0
    assert not of_backstage().exists()


def test_who_is_not_in_the_catalog_is_told_by_mail_alone_and_nothing_failed(
    notifying: SandboxBackstage,
) -> None:
    told(factories.person("Ben", email="ben@example.com"))
    assert run() == 0
    assert [left.way for left in Delivery.objects.all()] == ["email"]
    assert notifying.shown == {}


def test_who_was_blocked_meanwhile_is_not_told(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert run() == 0
    assert not of_backstage().exists()


def test_two_users_with_one_object_id_are_nobody(
    notifying: SandboxBackstage, ada: User
) -> None:
    notifying.users["impostor"] = str(ada.oid)
    told(ada)
    assert run() == 0
    assert notifying.shown == {}
    assert "several users" in of_backstage().get().last_error


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_while_nobody_can_be_notified_all_wait_and_then_arrive(
    notifying: SandboxBackstage, ada: User, status: int
) -> None:
    told(ada)
    told(ada, "Another", subject=("request", 18))
    notifying.notifying = status
    assert run() == 0
    asked = [path for path in notifying.asked if "notifications" in path]
    assert len(asked) == 1
    assert str(status) in of_backstage().exclude(last_error="").get().last_error
    notifying.notifying = 200
    assert run(NOW + timedelta(hours=1)) == 2


def test_while_the_catalog_does_not_let_the_portal_read_all_wait(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada)
    told(ada, "Another", subject=("request", 18))
    notifying.is_away = True
    assert run() == 0
    assert len(notifying.asked) == 1
    notifying.is_away = False
    assert run(NOW + timedelta(hours=1)) == 2


def test_a_notification_that_backstage_fails_at_keeps_no_other_waiting(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada)
    notifying.notifying = 500
    assert run() == 0
    notifying.notifying = 200
    told(ada, "Another", subject=("request", 18))
    assert run() == 1
    assert list(notifying.shown[ADA]) == ["request-18"]


def test_what_backstage_never_takes_is_given_up_and_platform_leads_see_why(
    notifying: SandboxBackstage, ada: User, client: Client
) -> None:
    told(ada)
    notifying.notifying, at = 500, NOW
    for _ in range(MAX_ATTEMPTS):
        run(at)
        at += timedelta(hours=2)
    given_up = of_backstage().get()
    assert (given_up.state, given_up.last_error) == (
        "parked",
        "Backstage answered 500.",
    )
    client.force_login(factories.person("Priya Raman", Role.PLATFORM_LEAD))
    assert "Backstage answered 500." in client.get("/settings/deliveries/").text


def test_a_refused_notification_is_given_up_at_once(
    notifying: SandboxBackstage, ada: User
) -> None:
    told(ada)
    notifying.notifying = 400
    run()
    assert of_backstage().get().state == "parked"


def test_mail_goes_first(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    told(ada)
    Delivery.objects.filter(way=Way.EMAIL).update(next_at=NOW + timedelta(minutes=1))
    tried: list[str] = []
    monkeypatch.setattr(
        "notices.delivery.send",
        lambda delivery, **_: tried.append(delivery.way),
    )
    ways = outside()
    mail: Any = object()
    deliver_due(
        now=lambda: NOW + timedelta(minutes=2),
        outside=type(ways)(mail, ways.webhooks, ways.public_url, ways.backstage),
    )
    assert tried == ["email", "backstage"]


def test_a_test_goes_there_too_and_says_how_it_went(
    notifying: SandboxBackstage, ada: User
) -> None:
    choosing.send_test(ada, now=NOW)
    assert run() == 1
    [line] = notifying.shown[ADA].values()
    assert line["title"] == "A test of your notices"
    test = choosing.test_of(ada, Way.BACKSTAGE)
    assert test
    assert test.state == "sent"


def test_a_test_says_that_the_catalog_does_not_know_somebody(
    notifying: SandboxBackstage,
) -> None:
    ben = factories.person("Ben", email="ben@example.com")
    choosing.send_test(ben, now=NOW)
    run()
    test = choosing.test_of(ben, Way.BACKSTAGE)
    assert test
    assert test.last_error == "Backstage's catalog does not know this person."


def test_the_settings_say_whether_notices_stand_there(
    notifying: SandboxBackstage, ada: User, client: Client
) -> None:
    assert Caller(ada, "read").get("notice-settings/").json()["is_in_backstage"]
    client.force_login(ada)
    choosing.send_test(ada, now=NOW)
    page = " ".join(client.get("/settings/notices/").text.split())
    assert "the notifications of Backstage" in page
    assert "In Backstage: The test is on its way." in page


def test_nobody_is_told_in_a_backstage_without_a_token_for_it(
    backend: SandboxBackstage,
) -> None:
    ada = factories.person("Ada Osei", email="ada@example.com")
    named(backend, ada)
    told(ada)
    assert not of_backstage().exists()


def test_what_waits_for_a_backstage_that_was_taken_away_is_forgotten(
    notifying: SandboxBackstage, ada: User, settings: Settings
) -> None:
    told(ada)
    settings.ENV = settings.ENV.model_copy(update={"backstage_url": ""})
    assert run() == 0
    assert not of_backstage().exists()

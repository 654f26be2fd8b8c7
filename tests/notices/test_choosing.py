"""Choosing what to be told: on the page, over the API, and what it does to what waits."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from notices.actions import tell
from notices.choosing import choose, hour_of, paces_of, send_test
from notices.delivery import deliver_due
from notices.kinds import CHOOSABLE, GROUPS, OF_LEADS, NoticeKind, Pace
from notices.message import Message
from notices.models import Delivery, Notice, Preference
from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.posting import Running
from tests.scene import NOW
from web.refusals import BadInput, Conflict

pytestmark = pytest.mark.django_db
PAGE = "/settings/notices/"
CHOSEN = {
    kind.value: "at_once" for kind in CHOOSABLE if kind not in GROUPS[OF_LEADS]
} | {"digest_hour": "15"}


@pytest.fixture
def ada(client: Client) -> User:
    ada = factories.person("Ada", email="ada@example.com")
    client.force_login(ada)
    return ada


def text(answer: Any) -> str:
    return str(answer.content.decode())


def headings(client: Client) -> list[str]:
    page = parsed(text(client.get(PAGE)))
    return [one.words for one in page.walk() if one.tag == "h2"]


def test_each_kind_stands_in_one_group(client: Client) -> None:
    grouped = [kind for kinds in GROUPS.values() for kind in kinds]
    assert sorted(grouped) == sorted(CHOOSABLE)
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert headings(client)[: len(GROUPS)] == list(GROUPS)


def test_who_is_never_told_of_the_platform_chooses_nothing_about_it(
    client: Client, ada: User
) -> None:
    assert OF_LEADS not in headings(client)
    answer = client.post(PAGE, CHOSEN | {"cluster_away": "none"})
    assert answer.status_code == 422
    assert "There is no field “cluster_away” here." in text(answer)


def test_everybody_begins_with_the_defaults(ada: User) -> None:
    assert paces_of(ada) == {kind: kind.default for kind in CHOOSABLE}
    assert hour_of(ada) == 8


def test_what_is_saved_on_the_page_is_shown_and_holds(
    client: Client, ada: User
) -> None:
    answer = client.post(
        PAGE, CHOSEN | {"request_decided": "none", "task_done": "digest"}
    )
    assert answer["Location"] == PAGE
    page = text(client.get(PAGE))
    chosen = {
        each.attrs["name"]: each.attrs["value"]
        for each in parsed(page).walk()
        if "checked" in each.attrs
    }
    assert (chosen["request_decided"], chosen["task_done"]) == ("none", "digest")
    assert '<option value="15" selected>' in page
    tell(
        NoticeKind.REQUEST_DECIDED,
        to=[ada],
        subject=("request", 1),
        link="/x",
        message=Message("t", "s"),
        now=NOW,
    )
    assert not Notice.objects.exists()
    event = Event.objects.get(kind=Kind.NOTICES_CHOSEN)
    assert event.details["paces"]["request_decided"] == "none"
    assert event.details["hour"] == 15


def test_saving_the_same_again_writes_nothing(client: Client, ada: User) -> None:
    for _ in range(2):
        client.post(PAGE, CHOSEN)
    assert Event.objects.filter(kind=Kind.NOTICES_CHOSEN).count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"request_decided": "sometimes"},
        {"digest_hour": "24"},
        {"digest_hour": ""},
        {"test": "none"},
    ],
)
def test_what_cannot_be_chosen_is_refused(
    client: Client, ada: User, change: dict[str, str]
) -> None:
    answer = client.post(PAGE, CHOSEN | change)
    assert answer.status_code == 422
    assert "Nothing was saved yet" in text(answer)
    assert not Preference.objects.exists()


def test_a_test_can_be_switched_off_by_nobody(ada: User) -> None:
    with pytest.raises(BadInput):
        choose(ada, paces={NoticeKind.TEST: Pace.NONE})
    with pytest.raises(BadInput):
        choose(ada, paces={}, hour=24)


def test_switching_a_kind_off_takes_it_out_of_the_next_daily_mail(ada: User) -> None:
    for kind in (NoticeKind.BUDGET_SOFT, NoticeKind.TASK_DONE):
        tell(
            kind,
            to=[ada],
            subject=("team", 1),
            link="/x",
            message=Message("t", "s"),
            now=NOW,
        )
    choose(ada, paces={NoticeKind.BUDGET_SOFT: Pace.NONE})
    assert [notice.kind for notice in Notice.objects.all()] == ["task_done"]


def test_the_test_says_how_it_went(
    client: Client, ada: User, post: Running, settings: Any
) -> None:
    assert client.post(f"{PAGE}test")["Location"] == PAGE
    assert "waits until a mail server is configured" in text(client.get(PAGE))
    settings.ENV = settings.ENV.model_copy(update={"mail_host": "localhost"})
    page = text(client.get(PAGE))
    assert "The test is on its way." in page
    assert 'hx-trigger="every 2s"' in page
    now = Delivery.objects.get().next_at
    deliver_due(now=lambda: now, outside=post.outside())
    assert "The test has left for ada@example.com." in text(client.get(PAGE))
    assert post.got[0]["title"] == "A test of your notices"


def test_a_test_that_fails_says_why(client: Client, ada: User, post: Running) -> None:
    client.post(f"{PAGE}test")
    post.fail("smtp", 550)
    now = Delivery.objects.get().next_at
    deliver_due(now=lambda: now, outside=post.outside())
    page = text(client.get(PAGE))
    assert "The test could not be sent." in page
    assert "550" in page


def test_there_is_one_test_at_a_time(client: Client, ada: User) -> None:
    send_test(ada, now=NOW)
    with pytest.raises(Conflict):
        send_test(ada, now=NOW)
    answer = client.post(f"{PAGE}test")
    assert answer.status_code == 409
    assert "still on its way" in text(answer)


def test_a_get_sends_no_test(client: Client, ada: User) -> None:
    assert client.get(f"{PAGE}test")["Location"] == PAGE
    assert not Delivery.objects.exists()


def test_the_api_does_what_the_page_does(ada: User) -> None:
    caller = Caller(ada)
    change = {"digest_hour": 6, "kinds": [{"kind": "task_done", "pace": "none"}]}
    changed = caller.patch("notice-settings/", change)
    assert changed.status_code == 200
    seen = caller.get("notice-settings/").json()
    assert seen == changed.json()
    assert seen["digest_hour"] == 6
    assert {row["kind"]: row["pace"] for row in seen["kinds"]}["task_done"] == "none"
    assert seen["mail_is_configured"] is False
    assert caller.post("notice-settings/test/").status_code == 202
    assert caller.post("notice-settings/test/").status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {"digest_hour": 24},
        {"digest_hour": "6"},
        {"kinds": [{"kind": "test", "pace": "none"}]},
        {"kinds": [{"kind": "task_done", "pace": "later"}]},
        {"kinds": {}},
        {"mail_is_configured": True},
    ],
)
def test_the_api_refuses_what_cannot_be(ada: User, body: dict[str, Any]) -> None:
    assert Caller(ada).patch("notice-settings/", body).status_code in (400, 422)
    assert not Preference.objects.exists()


def test_a_person_changes_nobodys_choices_but_their_own(
    client: Client, ada: User
) -> None:
    other = factories.person("Mallory")
    client.post(PAGE, CHOSEN)
    assert paces_of(other) == {kind: kind.default for kind in CHOOSABLE}

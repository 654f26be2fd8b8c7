"""Channels: who sets them up, whose address is told to nobody, and their test."""

import logging
from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.models import Idempotency, User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event, RefusalCount
from notices.actions import tell_channels
from notices.delivery import deliver_due
from notices.kinds import TOLD_TO_CHANNELS, NoticeKind
from notices.message import Message
from notices.models import Channel, Delivery, Notice
from notices.sealing import seal
from tests import factories
from tests.calling import Caller
from tests.posting import Running
from tests.scene import NOW

pytestmark = pytest.mark.django_db
LIST = "/settings/channels/"
CANARY = "canaryT0ken"


@pytest.fixture
def priya(client: Client) -> User:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    client.force_login(priya)
    return priya


@pytest.fixture
def reachable(post: Running, settings: Any) -> Running:
    """The sandbox's webhooks as hosts that may be called."""
    change = {
        "webhook_hosts_allowed": [post.post.described["webhook_host"]],
        "ca_file": post.ca,
    }
    settings.ENV = settings.ENV.model_copy(update=change)
    return post


def given(post: Running, **change: Any) -> dict[str, Any]:
    """What a lead writes into the form."""
    usual = {
        "name": "Platform",
        "way": "slack",
        "url": post.post.described["slack"],
        "kinds": ["request_waiting"],
    }
    return usual | {"enabled": "on"} | change


def text(answer: Any) -> str:
    return str(answer.content.decode())


def channel(**fields: Any) -> Channel:
    usual = {"name": "Platform", "way": "slack", "kinds": ["request_waiting"]}
    return Channel.objects.create(
        **usual | {"sealed": seal(f"https://hooks.slack.com/{CANARY}/x1y2")} | fields
    )


def test_a_lead_adds_a_channel_tries_it_and_sees_how_it_went(
    client: Client, priya: User, reachable: Running
) -> None:
    answer = client.post(f"{LIST}new", given(reachable))
    row = Channel.objects.get()
    assert answer["Location"] == f"{LIST}{row.pk}"
    assert client.post(f"{LIST}{row.pk}/test")["Location"] == f"{LIST}{row.pk}"
    assert "The test is on its way." in text(client.get(f"{LIST}{row.pk}"))
    now = Delivery.objects.get().next_at
    deliver_due(now=lambda: now, outside=reachable.outside())
    assert "The test has left for Platform." in text(client.get(f"{LIST}{row.pk}"))
    (got,) = reachable.got
    assert (got["way"], got["title"]) == ("slack", "A test of this channel")
    assert client.post(f"{LIST}{row.pk}/test").status_code == 302
    assert client.post(f"{LIST}{row.pk}/test").status_code == 409


def test_a_channel_that_answers_with_an_error_says_so(
    client: Client, priya: User, reachable: Running
) -> None:
    row = channel(sealed=seal(reachable.post.described["slack"] + "wrong"))
    client.post(f"{LIST}{row.pk}/test")
    now = Delivery.objects.get().next_at
    deliver_due(now=lambda: now, outside=reachable.outside())
    page = text(client.get(f"{LIST}{row.pk}"))
    assert "The test could not be sent." in page
    assert "answered 404 no_service" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "https://127.0.0.1/x"}, "not on the internet"),
        ({"url": "https://169.254.169.254/latest/meta-data"}, "not on the internet"),
        ({"url": "https://[::1]/"}, "not on the internet"),
        ({"url": "https://0x7f000001/"}, "not on the internet"),
        ({"url": "http://hooks.slack.com/x"}, "https://"),
        ({"url": "file:///etc/passwd"}, "https://"),
        ({"url": "https://8.8.8.8:22/"}, "port 443"),
        ({"url": ""}, "required"),
        ({"kinds": []}, "at least one"),
        ({"kinds": ["test"]}, "cannot be chosen here"),
        ({"name": ""}, "required"),
        ({"way": "email"}, "cannot be chosen here"),
    ],
)
def test_what_cannot_be_a_channel_is_said_at_its_field(
    client: Client, priya: User, reachable: Running, change: dict[str, Any], words: str
) -> None:
    answer = client.post(f"{LIST}new", given(reachable, **change))
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Channel.objects.exists()
    assert RefusalCount.objects.get(status=422).count == 1


def test_a_name_is_given_once(client: Client, priya: User, reachable: Running) -> None:
    channel(name="pLATFORM")
    assert client.post(f"{LIST}new", given(reachable)).status_code == 409


def test_changing_a_channel_keeps_its_address_unless_a_new_one_is_given(
    client: Client, priya: User, reachable: Running
) -> None:
    row = channel()
    kept = row.url
    client.post(
        f"{LIST}{row.pk}", {"name": "New", "url": "", "kinds": ["request_lapsed"]}
    )
    row.refresh_from_db()
    assert (row.name, row.kinds, row.enabled, row.url) == (
        "New",
        ["request_lapsed"],
        False,
        kept,
    )
    inner = client.post(
        f"{LIST}{row.pk}",
        {"name": "New", "url": "https://10.0.0.1/", "kinds": ["request_lapsed"]},
    )
    assert inner.status_code == 422
    fresh = {
        "name": "New",
        "url": reachable.post.described["slack"],
        "kinds": ["request_lapsed"],
    }
    client.post(f"{LIST}{row.pk}", fresh)
    row.refresh_from_db()
    assert row.url == reachable.post.described["slack"]


def test_removing_asks_first_and_forgets_the_address(
    client: Client, priya: User
) -> None:
    row = channel()
    client.post(f"{LIST}{row.pk}/test")
    assert "forgotten" in text(client.get(f"{LIST}{row.pk}/remove"))
    assert Channel.objects.exists()
    client.post(f"{LIST}{row.pk}/remove")
    assert not Channel.objects.exists()
    assert not Delivery.objects.exists()
    assert Event.objects.get(kind=Kind.CHANNEL_REMOVED).details["name"] == "Platform"


@pytest.mark.slow
def test_the_address_is_shown_nowhere_once_it_is_saved(
    client: Client, priya: User, reachable: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = reachable.post.sandbox.key
    caller = Caller(priya)
    body = {
        "name": "API",
        "way": "slack",
        "url": reachable.post.described["slack"],
        "kinds": ["request_lapsed"],
    }
    made = caller.post("channels/", body)
    assert made.status_code == 201
    pk = made.json()["id"]
    host, end = reachable.post.described["webhook_host"].partition(":")[0], key[-4:]
    assert made.json()["address"] == f"{host} …{end}"
    caller.post(f"channels/{pk}/test/")
    reachable.fail("slack", 500)
    now = Delivery.objects.get().next_at
    deliver_due(now=lambda: now, outside=reachable.outside())
    shown = [
        made.content.decode(),
        caller.get("channels/").content.decode(),
        caller.get("deliveries/").content.decode(),
        caller.patch(f"channels/{pk}/", {"name": "Again"}).content.decode(),
        caller.patch(
            f"channels/{pk}/", {"url": f"https://127.0.0.1/{key}"}
        ).content.decode(),
        *(
            text(client.get(path))
            for path in (
                LIST,
                f"{LIST}{pk}",
                f"{LIST}{pk}/remove",
                "/settings/deliveries/",
            )
        ),
        str(list(Event.objects.values())),
        str(list(Idempotency.objects.values())),
        str(list(Delivery.objects.values())),
        caplog.text,
        repr(Channel.objects.get()),
    ]
    assert [place for place in shown if key in place] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "role",
    [Role.DATA_SCIENTIST, Role.TEAM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR],
)
def test_nobody_but_platform_leads_sees_or_changes_channels(
    client: Client, role: Role
) -> None:
    somebody = factories.person("Somebody", role)
    client.force_login(somebody)
    row, caller = channel(), Caller(somebody)
    for path in (
        LIST,
        f"{LIST}new",
        f"{LIST}{row.pk}",
        f"{LIST}{row.pk}/remove",
        "/settings/deliveries/",
    ):
        assert client.get(path).status_code == 403
    for path in (
        f"{LIST}new",
        f"{LIST}{row.pk}",
        f"{LIST}{row.pk}/remove",
        f"{LIST}{row.pk}/test",
    ):
        assert client.post(path, {"name": "x"}).status_code == 403
    for path in ("channels/", f"channels/{row.pk}/", "deliveries/"):
        assert caller.get(path).status_code == 403
    assert caller.post("channels/", {}).status_code == 403
    assert caller.delete(f"channels/{row.pk}/").status_code == 403
    assert Channel.objects.get().name == "Platform"
    assert not Delivery.objects.exists()


def test_the_api_does_what_the_pages_do(priya: User, reachable: Running) -> None:
    caller = Caller(priya)
    body = {
        "name": "API",
        "way": "teams",
        "url": reachable.post.described["teams"],
        "kinds": ["request_lapsed"],
    }
    made = caller.post("channels/", body, key="once")
    again = caller.post("channels/", body, key="once")
    assert (made.status_code, again.status_code, Channel.objects.count()) == (
        201,
        201,
        1,
    )
    assert again["Idempotency-Replayed"] == "true"
    pk = made.json()["id"]
    assert (
        caller.patch(f"channels/{pk}/", {"enabled": False}).json()["enabled"] is False
    )
    tested = caller.post(f"channels/{pk}/test/")
    assert tested.status_code == 202
    now = Delivery.objects.get().next_at
    deliver_due(now=lambda: now, outside=reachable.outside())
    assert caller.get(tested["Location"]).json()["state"] == "sent"
    assert caller.delete(f"channels/{pk}/").status_code == 204
    assert caller.get(f"channels/{pk}/").status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://127.0.0.1/"},
        {"url": 7},
        {"kinds": ["test"]},
        {"kinds": []},
        {"way": "email"},
        {"id": 7},
        {"name": ""},
        {"name": "a\nb"},
    ],
)
def test_the_api_refuses_what_cannot_be(
    priya: User, reachable: Running, change: dict[str, Any]
) -> None:
    body = {
        "name": "API",
        "way": "teams",
        "url": reachable.post.described["teams"],
        "kinds": ["request_lapsed"],
    }
    answer = Caller(priya).post("channels/", body | change)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith(f"/{next(iter(change))}")
    assert not Channel.objects.exists()


def test_a_channel_is_offered_what_it_is_told_and_nothing_else(
    client: Client, priya: User
) -> None:
    offered = {
        value
        for value, _ in client.get(f"{LIST}new").context["form"].fields["kinds"].choices
    }
    assert offered == {kind.value for kind in TOLD_TO_CHANNELS}
    assert not offered & {"run_ended", "notebook_idle", "stand_in", "event", "test"}
    row = channel(kinds=sorted(offered))
    for kind in NoticeKind:
        about, message = ("request", 17), Message("Something", "It happened.")
        told = partial(
            tell_channels, kind, subject=about, link="/", message=message, now=NOW
        )
        if kind.value in offered:
            told()
        else:
            with pytest.raises(ValueError, match="No channel"):
                told()
    assert Notice.objects.filter(channel=row).count() == len(offered)

"""Webhooks: who sets them up, what is sent and how it is signed, and whose secret is told once."""

import json
import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Idempotency, User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from checks.secrecy import SHAPES
from connectors.webhooks import Gone, Target
from notices.actions import tell_webhooks
from notices.channels import actions as channel_actions
from notices.channels import webhook_actions
from notices.channels.events import SUBSCRIBABLE, WebhookEvent
from notices.channels.signing import OVERLAP, new_secret
from notices.delivery import LEASE, MAX_ATTEMPTS, deliver_due, send, take
from notices.models import Channel, Delivery, Notice
from notices.sealing import SECRETS, seal
from tests import factories
from tests.calling import Caller
from tests.notices.test_signing import check
from tests.posting import URL, Running
from tests.scene import NOW

pytestmark = pytest.mark.django_db
LIST = "/settings/channels/"
SECOND = timedelta(seconds=1)


@pytest.fixture
def priya(client: Client) -> User:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD, email="priya@x.test")
    client.force_login(priya)
    return priya


@pytest.fixture
def receiver(post: Running, settings: Any) -> Running:
    """The sandbox as the one host that events may be sent to."""
    host = post.post.described["webhook_host"]
    change = {
        "webhook_hosts_allowed": [host],
        "webhook_receivers": [host],
        "ca_file": post.ca,
    }
    settings.ENV = settings.ENV.model_copy(update=change)
    return post


def webhook(post: Running, secret: str = "", **fields: Any) -> Channel:
    """A webhook of the sandbox."""
    usual = {
        "name": "Ticket robot",
        "way": "webhook",
        "sealed": seal(post.post.described["webhook"]),
        "secret": seal(secret or new_secret(), purpose=SECRETS),
        "events": ["request.approved"],
    }
    return Channel.objects.create(**usual | fields)


def told(event: WebhookEvent = WebhookEvent.REQUEST_APPROVED, **data: Any) -> None:
    tell_webhooks(
        event,
        subject=("request", 17),
        link="/requests/17/",
        data=lambda: {"id": 17, **data},
        now=NOW,
    )


def run(post: Running, at: datetime = NOW, **changes: Any) -> int:
    return deliver_due(
        now=lambda: at, outside=post.outside(**changes), jitter=lambda: 0.0
    )


def given(post: Running, **change: Any) -> dict[str, Any]:
    """What a lead writes into the form."""
    return {
        "name": "Ticket robot",
        "url": post.post.described["webhook"],
        "events": ["request.approved", "run.ended"],
        "enabled": "on",
    } | change


def text(answer: Any) -> str:
    return str(answer.content.decode())


def secret_in(answer: Any) -> str:
    """The secret that stands in a page or an answer."""
    start = text(answer).index("whsec_")
    return text(answer)[start : start + len(new_secret())]


def signatures(got: dict[str, Any]) -> list[str]:
    return str(got["headers"]["webhook-signature"]).split(" ")


def verified(got: dict[str, Any], secret: str) -> list[bool]:
    """Which of the signatures of a message the secret makes."""

    def fits(signature: str) -> bool:
        try:
            check(secret, got["headers"], got["raw"].encode(), signature)
        except InvalidSignature:
            return False
        return True

    return [fits(signature) for signature in signatures(got)]


def test_the_host_of_a_new_one_is_looked_up_in_no_transaction(
    client: Client,
    priya: User,
    receiver: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    around, checked = len(connection.savepoint_ids), channel_actions.checked
    inside = list[int]()

    def seen(url: str, *, way: str) -> Target:
        inside.append(len(connection.savepoint_ids) - around)
        return checked(url, way=way)

    monkeypatch.setattr(channel_actions, "checked", seen)
    assert client.post(f"{LIST}webhooks/new", given(receiver)).status_code == 201
    assert inside == [0]


def test_a_lead_adds_a_webhook_is_shown_its_secret_once_and_tries_it(
    client: Client, priya: User, receiver: Running
) -> None:
    made = client.post(f"{LIST}webhooks/new", given(receiver))
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    secret, row = secret_in(made), Channel.objects.get()
    assert (row.events, row.kinds) == (["request.approved", "run.ended"], [])
    assert secret not in text(client.get(f"{LIST}{row.pk}"))
    client.post(f"{LIST}{row.pk}/test")
    at = Delivery.objects.get().next_at
    assert run(receiver, at) == 1
    assert "The test has left for Ticket robot." in text(client.get(f"{LIST}{row.pk}"))
    (got,) = receiver.got
    assert verified(got, secret) == [True]
    assert got["body"]["type"] == "webhook.test"
    assert got["body"]["data"] == {
        "url": f"{URL}/settings/channels/",
        "id": row.pk,
        "name": "Ticket robot",
    }


def test_an_event_says_what_happened_when_and_where_it_is_read(
    receiver: Running,
) -> None:
    webhook(receiver)
    told(team={"slug": "vision", "name": "Bildverständnis"}, gpus=4)
    at = NOW + timedelta(seconds=3)
    assert run(receiver, at) == 1
    (got,) = receiver.got
    assert got["body"] == {
        "type": "request.approved",
        "timestamp": NOW.isoformat().replace("+00:00", "Z"),
        "data": {
            "url": f"{URL}/requests/17/",
            "id": 17,
            "team": {"slug": "vision", "name": "Bildverständnis"},
            "gpus": 4,
        },
    }
    assert got["headers"]["content-type"] == "application/json"
    # Of the attempt, not of what happened.
    assert got["headers"]["webhook-timestamp"] == str(int(at.timestamp()))
    assert got["headers"]["webhook-id"] == f"notice-{Notice.objects.get().pk}"


def test_only_who_is_subscribed_and_switched_on_is_told(receiver: Running) -> None:
    webhook(receiver, events=["run.ended"])
    webhook(receiver, name="Off", enabled=False)
    Channel.objects.create(
        name="Chat",
        way="slack",
        sealed=seal(receiver.post.described["slack"]),
        kinds=["request_decided"],
    )
    told()
    assert not Notice.objects.exists()
    told(WebhookEvent.RUN_ENDED)
    assert [each.channel and each.channel.name for each in Notice.objects.all()] == [
        "Ticket robot"
    ]


def test_without_the_setting_an_event_costs_no_query(post: Running) -> None:
    webhook(post)
    with CaptureQueriesContext(connection) as queries:
        told()
    assert len(queries) == 0
    assert not Notice.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_event_needs_the_transaction_that_it_tells_of(receiver: Running) -> None:
    with pytest.raises(transaction.TransactionManagementError):
        told()


def test_a_repetition_has_the_id_and_the_body_of_the_first_and_a_signature_of_its_own(
    receiver: Running,
) -> None:
    secret = new_secret()
    webhook(receiver, secret)
    told()
    receiver.fail("webhook", 503, times=1)
    assert run(receiver) == 0
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.next_at) == ("waiting", NOW + 30 * SECOND)
    claim = take(delivery.pk, now=delivery.next_at)
    assert claim
    send(claim.delivery, now=delivery.next_at, outside=receiver.outside())
    # Here the worker dies: nothing is written down, and another one sends it again.
    assert run(receiver, delivery.next_at + LEASE) == 1
    first, second = receiver.got
    assert (first["id"], first["raw"]) == (second["id"], second["raw"])
    assert signatures(first) != signatures(second)
    assert verified(first, secret) == verified(second, secret) == [True]


def test_retry_after_is_kept_to_by_all_that_waits_for_the_receiver(
    receiver: Running,
) -> None:
    webhook(receiver)
    told()
    told()
    receiver.fail("webhook", 429, retry_after="120", times=1)
    assert run(receiver) == 0
    rows = Delivery.objects.order_by("id").values_list("attempts", "next_at")
    assert list(rows) == [(1, NOW + 120 * SECOND), (0, NOW + 120 * SECOND)]
    assert run(receiver, NOW + 120 * SECOND) == 2


def test_it_is_given_up_after_eight_attempts_and_says_what_it_was(
    client: Client, priya: User, receiver: Running
) -> None:
    webhook(receiver)
    told()
    receiver.fail("webhook", 500)
    at = NOW
    for _ in range(MAX_ATTEMPTS):
        run(receiver, at)
        at = Delivery.objects.get().next_at
    assert Delivery.objects.get().state == "parked"
    page = text(client.get("/settings/deliveries/"))
    assert "request.approved" in page
    assert "Ticket robot" in page
    listed = Caller(priya).get("deliveries/").json()["results"][0]
    assert (listed["kind"], listed["way"], listed["to"]) == (
        "request.approved",
        "webhook",
        "Ticket robot",
    )


def test_a_receiver_that_is_gone_switches_the_webhook_off_and_leads_are_told_once(
    priya: User, receiver: Running
) -> None:
    row = webhook(receiver)
    told()
    told()
    receiver.fail("webhook", 410)
    run(receiver)
    row.refresh_from_db()
    assert not row.enabled
    errors = set(Delivery.objects.filter(way="webhook").values_list("state", flat=True))
    assert errors == {"parked"}
    (notice,) = Notice.objects.filter(kind="channel_off", person=priya)
    assert notice.link == f"{LIST}{row.pk}"
    assert Event.objects.filter(kind=Kind.CHANNEL_SWITCHED_OFF).count() == 1
    assert not webhook_actions.switch_off_gone(row, now=NOW)


def test_an_old_address_that_is_gone_switches_off_no_new_one(
    receiver: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = webhook(receiver)
    told()

    def moved_meanwhile(*args: Any, **kwargs: Any) -> None:
        Channel.objects.update(sealed=seal("https://hooks.example.com/new"))
        raise Gone("It is gone.")

    monkeypatch.setattr("notices.delivery.send", moved_meanwhile)
    run(receiver)
    row.refresh_from_db()
    assert row.enabled


def test_a_slow_receiver_keeps_no_mail_and_no_other_receiver_waiting(
    receiver: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = webhook(receiver), webhook(receiver, name="Quick one")
    for _ in range(3):
        told()
    Delivery.objects.filter(notice__channel=quick).update(next_at=NOW + SECOND)
    mail = Delivery.objects.filter(notice__channel=slow).latest("id")
    Delivery.objects.filter(pk=mail.pk).update(way="email", next_at=NOW + SECOND)
    at, sent = [NOW + 2 * SECOND], list[str]()

    def send_to(delivery: Delivery, **_: Any) -> None:
        assert delivery.notice is not None
        assert delivery.notice.channel is not None
        name = delivery.notice.channel.name
        sent.append("mail" if delivery.way == "email" else name)
        if sent[-1] == slow.name:
            at[0] += 10 * SECOND

    monkeypatch.setattr("notices.delivery.send", send_to)
    deliver_due(now=lambda: at[0], outside=receiver.outside(), jitter=lambda: 0.0)
    assert sent == ["mail", "Ticket robot", *["Quick one"] * 3]


def test_a_slack_webhook_that_is_gone_stays_on(receiver: Running) -> None:
    row = Channel.objects.create(
        name="Chat",
        way="slack",
        sealed=seal(receiver.post.described["slack"]),
        kinds=["request_decided"],
    )
    assert not webhook_actions.switch_off_gone(row, now=NOW)
    row.refresh_from_db()
    assert row.enabled


def test_for_a_day_after_a_new_secret_both_sign(priya: User, receiver: Running) -> None:
    old = new_secret()
    row = webhook(receiver, old)
    _, new = webhook_actions.rotate_secret(row.pk, by=priya, now=NOW)
    told()
    run(receiver, NOW)
    told()
    run(receiver, NOW + OVERLAP - SECOND)
    told()
    run(receiver, NOW + OVERLAP)
    first, last, after = receiver.got
    assert timedelta(days=1) == OVERLAP
    assert verified(first, new) == verified(last, new) == [True, False]
    assert verified(first, old) == verified(last, old) == [False, True]
    assert (verified(after, new), verified(after, old)) == ([True], [False])
    event = Event.objects.get(kind=Kind.CHANNEL_SECRET_ROTATED)
    assert event.details["name"] == "Ticket robot"


def test_a_second_new_secret_ends_the_one_before_the_last(
    priya: User, receiver: Running
) -> None:
    first = new_secret()
    row = webhook(receiver, first)
    _, second = webhook_actions.rotate_secret(row.pk, by=priya, now=NOW)
    _, third = webhook_actions.rotate_secret(row.pk, by=priya, now=NOW + SECOND)
    told()
    run(receiver, NOW + 2 * SECOND)
    (got,) = receiver.got
    assert verified(got, third) == [True, False]
    assert verified(got, second) == [False, True]
    assert verified(got, first) == [False, False]


def test_a_form_that_arrives_twice_adds_one_webhook_and_says_how_to_get_its_secret(
    client: Client, priya: User, receiver: Running
) -> None:
    shown = client.get(f"{LIST}webhooks/new")
    said = given(receiver, token=shown.context["token"])
    first = client.post(f"{LIST}webhooks/new", said)
    assert secret_in(first)
    again = client.post(f"{LIST}webhooks/new", said, follow=True)
    assert again.redirect_chain == [(f"{LIST}{Channel.objects.get().pk}", 302)]
    assert "make another one" in text(again)
    assert "whsec_" not in text(again)
    other = client.post(f"{LIST}webhooks/new", said | {"name": "Another robot"})
    assert other.status_code == 409
    assert "sent already, with other values" in text(other)
    assert Channel.objects.count() == 1


def test_a_page_makes_one_new_secret_however_often_its_form_arrives(
    client: Client, priya: User, receiver: Running
) -> None:
    row = webhook(receiver)
    page = client.get(f"{LIST}{row.pk}/secret")
    token = page.context["token"]
    made = client.post(f"{LIST}{row.pk}/secret", {"token": token})
    assert made.status_code == 201
    row.refresh_from_db()
    assert row.keys(timezone.now())[0] == secret_in(made)
    sealed = row.secret
    again = client.post(f"{LIST}{row.pk}/secret", {"token": token})
    assert again["Location"] == f"{LIST}{row.pk}"
    row.refresh_from_db()
    assert row.secret == sealed
    assert "is signed with the one before as well" in text(
        client.get(f"{LIST}{row.pk}")
    )


def test_a_channel_of_slack_has_no_secret_to_make_anew(
    client: Client, priya: User
) -> None:
    row = Channel.objects.create(
        name="Chat", way="slack", sealed=seal("https://hooks.slack.com/x"), kinds=[]
    )
    assert client.get(f"{LIST}{row.pk}/secret").status_code == 404
    answer = Caller(priya).post(f"channels/{row.pk}/rotate-secret/")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_secret")


def test_the_secret_is_told_once_and_stands_nowhere_else(
    client: Client, priya: User, receiver: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caller = Caller(priya)
    body = {
        "name": "API",
        "way": "webhook",
        "url": receiver.post.described["webhook"],
        "events": ["run.ended"],
    }
    made = caller.post("channels/", body, key="once")
    pk, first = made.json()["id"], made.json()["secret"]
    rotated = caller.post(f"channels/{pk}/rotate-secret/", key="again")
    second = rotated.json()["secret"]
    assert first != second
    again = [
        caller.post("channels/", body, key="once"),
        caller.post(f"channels/{pk}/rotate-secret/", key="again"),
    ]
    assert [each.json()["secret"] for each in again] == [None, None]
    assert {each["Idempotency-Replayed"] for each in again} == {"true"}
    caller.post(f"channels/{pk}/test/")
    receiver.fail("webhook", 500)
    run(receiver, Delivery.objects.get().next_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM notices_channel")
        stored = str(cursor.fetchall())
    shown = [
        stored,
        *(each.content.decode() for each in again),
        caller.get("channels/").content.decode(),
        caller.get(f"channels/{pk}/").content.decode(),
        caller.get("deliveries/").content.decode(),
        caller.patch(f"channels/{pk}/", {"name": "Again"}).content.decode(),
        *(
            text(client.get(path))
            for path in (
                LIST,
                f"{LIST}{pk}",
                f"{LIST}{pk}/secret",
                f"{LIST}{pk}/remove",
                "/settings/deliveries/",
            )
        ),
        str(list(Event.objects.values())),
        str(list(Idempotency.objects.values())),
        str(list(Delivery.objects.values())),
        str(list(Notice.objects.values())),
        caplog.text,
        repr(Channel.objects.get()),
    ]
    for secret in (first, second):
        assert [place for place in shown if secret.removeprefix("whsec_") in place] == (
            []
        )
    assert receiver.post.sandbox.key not in "".join(shown)


def test_a_secret_in_a_record_is_found_by_its_shape() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 WHERE %s ~ %s", [new_secret(), "|".join(SHAPES)])
        assert cursor.fetchone() == (1,)


def test_a_secret_that_cannot_be_read_is_said_and_made_anew(
    priya: User, receiver: Running, settings: Any
) -> None:
    row = webhook(receiver)
    settings.SECRET_KEY, before = "another" * 10, settings.SECRET_KEY
    row.url = receiver.post.described["webhook"]
    row.save()
    told()
    assert run(receiver) == 0
    assert "Make a new one" in Delivery.objects.get().last_error
    settings.SECRET_KEY_FALLBACKS = [before]
    _, secret = webhook_actions.rotate_secret(row.pk, by=priya, now=NOW)
    told()
    assert run(receiver) == 1
    (got,) = receiver.got
    assert verified(got, secret) == [True, False]


def test_without_the_setting_the_page_says_which_turns_webhooks_on(
    client: Client, priya: User, post: Running
) -> None:
    assert "QM_WEBHOOK_RECEIVERS" in text(client.get(LIST))
    assert "Add a webhook" not in text(client.get(LIST))
    assert "QM_WEBHOOK_RECEIVERS" in text(client.get(f"{LIST}webhooks/new"))
    refused = client.post(f"{LIST}webhooks/new", given(post))
    assert refused.status_code == 409
    body = {
        "name": "API",
        "way": "webhook",
        "url": post.post.described["webhook"],
        "events": ["run.ended"],
    }
    answer = Caller(priya).post("channels/", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "webhooks_off")
    assert not Channel.objects.exists()


def test_what_waits_when_the_setting_is_taken_away_is_given_up(
    receiver: Running,
) -> None:
    webhook(receiver)
    told()
    assert run(receiver, signed=None) == 0
    delivery = Delivery.objects.get()
    assert delivery.state == "parked"
    assert "QM_WEBHOOK_RECEIVERS" in delivery.last_error
    assert receiver.got == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "https://hooks.slack.com/services/x"}, "QM_WEBHOOK_RECEIVERS"),
        ({"url": "https://127.0.0.1/x"}, "QM_WEBHOOK_RECEIVERS"),
        ({"url": "https://169.254.169.254/latest"}, "QM_WEBHOOK_RECEIVERS"),
        ({"url": "https://[::1]/"}, "QM_WEBHOOK_RECEIVERS"),
        ({"url": "https://localhost/x"}, "QM_WEBHOOK_RECEIVERS"),
        ({"url": "http://localhost/x"}, "https://"),
        ({"url": "https://user:pw@localhost/x"}, "a host and a path only"),
        ({"url": ""}, "required"),
        ({"events": []}, "at least one event"),
        ({"events": ["webhook.test"]}, "cannot be chosen here"),
        ({"events": ["request_waiting"]}, "cannot be chosen here"),
        ({"name": ""}, "required"),
    ],
)
def test_what_cannot_be_a_webhook_is_said_at_its_field(
    client: Client,
    priya: User,
    receiver: Running,
    change: dict[str, Any],
    words: str,
) -> None:
    answer = client.post(f"{LIST}webhooks/new", given(receiver, **change))
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Channel.objects.exists()


@pytest.mark.parametrize("way", ["webhook", "slack"])
def test_the_api_takes_what_this_sort_of_channel_is_told_and_nothing_else(
    priya: User, receiver: Running, way: str
) -> None:
    caller = Caller(priya)
    fits, other = ("events", "kinds") if way == "webhook" else ("kinds", "events")
    chosen = {"events": ["run.ended"], "kinds": ["request_decided"]}
    body = {"name": "API", "way": way, "url": receiver.post.described[way]}
    assert caller.post("channels/", body).json()["errors"][0]["pointer"] == f"/{fits}"
    both = caller.post("channels/", body | chosen)
    assert both.json()["errors"][0]["pointer"] == f"/{other}"
    made = caller.post("channels/", body | {fits: chosen[fits]})
    assert made.status_code == 201
    pk = made.json()["id"]
    changed = caller.patch(f"channels/{pk}/", {other: chosen[other]})
    assert (changed.status_code, changed.json()["errors"][0]["pointer"]) == (
        422,
        f"/{other}",
    )
    assert caller.patch(f"channels/{pk}/", {fits: []}).status_code == 422
    row = Channel.objects.get()
    assert (row.events, row.kinds) == (
        (["run.ended"], []) if way == "webhook" else ([], ["request_decided"])
    )


def test_a_webhook_is_changed_on_its_page_and_keeps_its_secret_and_address(
    client: Client, priya: User, receiver: Running
) -> None:
    row = webhook(receiver)
    kept = (row.secret, row.url)
    client.post(
        f"{LIST}{row.pk}",
        {"name": "Pipeline", "url": "", "events": ["allocation.ended"]},
    )
    row.refresh_from_db()
    assert (row.name, row.events, row.enabled, row.secret, row.url) == (
        "Pipeline",
        ["allocation.ended"],
        False,
        *kept,
    )
    refused = client.post(
        f"{LIST}{row.pk}",
        {"name": "P", "url": "https://10.0.0.1/", "events": ["run.ended"]},
    )
    assert refused.status_code == 422
    page = text(client.get(LIST))
    assert "An allocation, or a part of one, has ended" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "role",
    [Role.DATA_SCIENTIST, Role.TEAM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR],
)
def test_nobody_but_platform_leads_adds_a_webhook_or_makes_a_secret(
    client: Client, receiver: Running, role: Role
) -> None:
    somebody = factories.person("Somebody", role)
    client.force_login(somebody)
    row, caller = webhook(receiver), Caller(somebody)
    sealed = row.secret
    for path in (f"{LIST}webhooks/new", f"{LIST}{row.pk}/secret"):
        assert client.get(path).status_code == 403
        assert client.post(path, given(receiver)).status_code == 403
    assert caller.post(f"channels/{row.pk}/rotate-secret/").status_code == 403
    row.refresh_from_db()
    assert row.secret == sealed


def test_every_event_has_words_and_a_name_that_receivers_can_rely_on() -> None:
    assert json.loads(json.dumps([event.value for event in SUBSCRIBABLE])) == [
        "request.waiting",
        "request.approved",
        "request.rejected",
        "request.withdrawn",
        "request.lapsed",
        "allocation.ready",
        "allocation.ending",
        "allocation.ended",
        "run.ended",
    ]
    assert all(event.words for event in WebhookEvent)

"""The sandbox's mail server and webhooks answer like the real ones where the portal could break."""

import smtplib
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from connectors.errors import PermanentError
from notices.channels.cards import slack, teams
from notices.message import Message
from notices.rendering import Entry
from sandbox.notices.inbox import MOST_KEPT, Inbox
from tests.posting import PASSWORD, USER, Running, posting

ENTRY = Entry(Message("Hello & <goodbye>", "A sentence."), "https://gpus.example.com/")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with posting(tmp_path_factory.mktemp("post")) as running:
        yield running


@pytest.fixture
def post(office: Running) -> Running:
    office.forget()
    return office


@pytest.fixture
def web(post: Running) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=post.post.described["inbox"], trust_env=False, timeout=20
    ) as client:
        yield client


def connected(post: Running) -> smtplib.SMTP:
    return smtplib.SMTP("localhost", int(post.post.described["smtp_port"]), timeout=20)


@pytest.fixture
def session(post: Running) -> Iterator[smtplib.SMTP]:
    with connected(post) as session:
        yield session


def admin(post: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {post.post.sandbox.admin_secret}"}


def test_what_arrives_is_listed_and_shown(
    post: Running, web: httpx.Client, session: smtplib.SMTP
) -> None:
    assert "Nothing has arrived yet" in web.get("/").text
    session.sendmail(
        "qm@example.com", ["ada@example.com"], "Subject: <b>Hi</b>\r\n\r\nA & B\r\n"
    )
    assert web.post(f"/slack/{post.post.sandbox.key}", json=slack(ENTRY)).text == "ok"
    assert (
        web.post(f"/teams/{post.post.sandbox.key}", json=teams(ENTRY)).status_code
        == 202
    )
    listed = web.get("/messages").json()["messages"]
    assert [(row["number"] > 0, row["way"]) for row in listed] == [
        (True, "smtp"),
        (True, "slack"),
        (True, "teams"),
    ]
    page = web.get("/")
    assert "<b>Hi" not in page.text
    assert "&lt;b&gt;Hi&lt;/b&gt;" in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "A &amp; B" in web.get(f"/messages/{listed[0]['number']}/html").text
    assert web.get("/messages/999999/html").status_code == 404


@pytest.mark.parametrize(
    ("way", "body", "status"),
    [
        ("slack", {"blocks": []}, 400),
        ("slack", {"text": "x"}, 400),
        (
            "slack",
            {
                "text": "x",
                "blocks": [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
            },
            400,
        ),
        (
            "slack",
            {
                "text": "x",
                "blocks": [
                    {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
                ],
            },
            400,
        ),
        ("slack", {"text": "x", "blocks": [{"type": "section", "fields": []}]}, 400),
        ("teams", {"type": "message", "attachments": []}, 400),
        ("teams", {"text": "an old connector's card"}, 400),
        ("teams", {"type": "message", "text": "x" * 29_000}, 413),
        ("teams", [], 400),
    ],
)
def test_what_the_real_ones_refuse_is_refused(
    post: Running, web: httpx.Client, way: str, body: Any, status: int
) -> None:
    assert web.post(f"/{way}/{post.post.sandbox.key}", json=body).status_code == status
    assert post.got == []


def test_a_card_with_a_button_that_needs_a_bot_is_refused(
    post: Running, web: httpx.Client
) -> None:
    card = teams(ENTRY)
    card["attachments"][0]["content"]["actions"] = [
        {"type": "Action.Submit", "title": "Approve"}
    ]
    assert web.post(f"/teams/{post.post.sandbox.key}", json=card).status_code == 400


def test_a_wrong_key_is_answered_as_each_of_them_does(web: httpx.Client) -> None:
    assert web.post("/slack/guessed", json=slack(ENTRY)).text == "no_service"
    assert web.post("/teams/guessed", json=teams(ENTRY)).status_code == 401


def test_faults_come_and_go_at_the_administrators_wish(
    post: Running, web: httpx.Client
) -> None:
    fault = {"way": "slack", "status": 429, "retry_after": 7, "times": 1}
    assert web.post("/sandbox/faults", json=fault).status_code == 401
    assert web.delete("/sandbox/faults").status_code == 401
    assert web.delete("/messages").status_code == 401
    assert (
        web.post(
            "/sandbox/faults", json={"way": "fax", "status": 500}, headers=admin(post)
        ).status_code
        == 400
    )
    assert (
        web.post("/sandbox/faults", json=fault, headers=admin(post)).status_code == 204
    )
    refused = web.post(f"/slack/{post.post.sandbox.key}", json=slack(ENTRY))
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "7")
    assert (
        web.post(f"/slack/{post.post.sandbox.key}", json=slack(ENTRY)).status_code
        == 200
    )
    web.post("/sandbox/faults", json=fault | {"times": None}, headers=admin(post))
    assert web.delete("/sandbox/faults", headers=admin(post)).status_code == 204
    assert (
        web.post(f"/slack/{post.post.sandbox.key}", json=slack(ENTRY)).status_code
        == 200
    )
    assert web.delete("/messages", headers=admin(post)).status_code == 204
    assert post.got == []


def test_mail_is_taken_in_the_order_of_the_protocol(session: smtplib.SMTP) -> None:
    assert session.docmd("MAIL", "FROM:<qm@example.com>")[0] == 503
    assert session.docmd("EHLO", "x")[0] == 250
    assert session.docmd("DATA")[0] == 503
    assert session.docmd("RCPT", "TO:<ada@example.com>")[0] == 503
    assert session.docmd("MAIL", "FROM:<qm@example.com>")[0] == 250
    assert session.docmd("DATA")[0] == 503
    assert (session.rset()[0], session.noop()[0], session.docmd("TURN")[0]) == (
        250,
        250,
        500,
    )


def test_a_password_is_taken_over_tls_only(post: Running) -> None:
    post.server.username, post.server.password = USER, PASSWORD
    with connected(post) as session:
        session.ehlo()
        assert not session.has_extn("auth")
        assert session.docmd("MAIL", "FROM:<qm@example.com>")[0] == 530
        assert session.docmd("AUTH", "PLAIN AHgAeA==")[0] == 538
        session.starttls(context=ssl.create_default_context(cafile=post.ca))
        session.ehlo()
        assert not session.has_extn("starttls")
        with pytest.raises(smtplib.SMTPAuthenticationError):
            session.login(USER, "wrong")
        assert session.login(USER, PASSWORD)[0] == 235


def test_the_inbox_keeps_the_newest_and_outlives_a_restart() -> None:
    inbox = Inbox()
    for number in range(MOST_KEPT + 5):
        inbox.add("smtp", title=str(number))
    again = Inbox()
    again.restore(inbox.snapshot())
    assert (inbox.dirty, Inbox(dirty=True).dirty) == (False, True)
    assert len(again.messages) == MOST_KEPT
    again.add("smtp", title="next")
    assert again.messages[-1]["number"] == MOST_KEPT + 6


def test_an_event_is_kept_with_its_headers_and_what_has_no_type_is_refused(
    post: Running,
) -> None:
    calls = post.signed()
    calls.send(post.post.described["webhook"], b'{"type":"x"}', {"webhook-id": "a"})
    (got,) = post.got
    assert (got["way"], got["title"], got["raw"]) == ("webhook", "x", '{"type":"x"}')
    assert got["headers"] == {"webhook-id": "a", "content-type": "application/json"}
    for body in (b"[]", b"{}", b"x"):
        with pytest.raises(PermanentError, match="answered 400"):
            calls.send(post.post.described["webhook"], body, {})
    with pytest.raises(PermanentError, match="answered 404"):
        calls.send(post.post.described["webhook"] + "x", b"{}", {})

"""Mail over a real socket: with and without TLS, and everything that a server can answer."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from connectors import mail as connector
from connectors.errors import PermanentError, TemporaryError
from connectors.mail import Letter, Mail, Security, ServerAway, compose
from tests.posting import PASSWORD, USER, Running, posting
from tests.scene import NOW

LETTER = Letter(
    "ada@example.com",
    "Vision asks",
    "16 A100, €59",
    "<p>16 A100</p>",
    "notice-1@gpus.example.com",
)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with posting(tmp_path_factory.mktemp("post")) as running:
        yield running


@pytest.fixture
def post(office: Running) -> Running:
    office.forget()
    return office


def test_a_mail_arrives_with_both_bodies_and_its_id(post: Running) -> None:
    post.mail().send(LETTER, now=NOW)
    (got,) = post.got
    assert (got["to"], got["title"], got["id"]) == (
        ["ada@example.com"],
        "Vision asks",
        "<notice-1@gpus.example.com>",
    )
    assert (got["text"].strip(), got["html"].strip()) == (
        "16 A100, €59",
        "<p>16 A100</p>",
    )
    assert got["headers"]["Auto-Submitted"] == "auto-generated"
    assert not got["secure"]


def test_lines_that_begin_with_a_dot_arrive_whole(post: Running) -> None:
    post.mail().send(replace(LETTER, text=".\n..\n.hidden\n"), now=NOW)
    assert post.got[0]["text"].split() == [".", "..", ".hidden"]


def test_the_password_is_sent_after_starttls_and_only_to_whom_the_certificate_names(
    post: Running,
) -> None:
    post.server.username, post.server.password = USER, PASSWORD
    signed_in: dict[str, Any] = {
        "security": Security.STARTTLS,
        "username": USER,
        "password": PASSWORD,
    }
    post.mail(**signed_in, ca_file=str(post.ca)).send(LETTER, now=NOW)
    assert post.got[0]["secure"]
    with pytest.raises(ServerAway, match="certificate"):
        post.mail(**signed_in).send(
            LETTER, now=NOW
        )  # an authority that nobody here trusts
    assert PASSWORD not in repr(post.mail(**signed_in))


def test_a_wrong_password_is_nobodys_mails_fault(post: Running) -> None:
    post.server.username, post.server.password = USER, PASSWORD
    wrong = post.mail(
        security=Security.STARTTLS,
        username=USER,
        password="canary-wrong",
        ca_file=str(post.ca),
    )
    with pytest.raises(ServerAway) as refused:
        wrong.send(LETTER, now=NOW)
    assert "535" in refused.value.message
    assert "canary" not in refused.value.message


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (550, PermanentError),
        (451, TemporaryError),
        (421, TemporaryError),
        (552, PermanentError),
    ],
)
def test_4xx_may_be_taken_later_and_5xx_never(
    post: Running, status: int, error: type[Exception]
) -> None:
    post.fail("smtp", status)
    with pytest.raises(error, match=str(status)) as refused:
        post.mail().send(LETTER, now=NOW)
    assert not isinstance(refused.value, ServerAway)
    assert post.got == []


def test_a_silent_server_is_given_up(
    post: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "READ_SECONDS", 0.2)
    post.fail("smtp", None)
    with pytest.raises(ServerAway):
        post.mail().send(LETTER, now=NOW)


def test_a_server_that_is_slow_all_the_time_is_cut_off(
    post: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "DEADLINE_SECONDS", 0.2)
    post.fail("smtp", None)
    with pytest.raises(ServerAway):
        post.mail().send(LETTER, now=NOW)


def test_nobody_at_the_port_is_temporary() -> None:
    with pytest.raises(ServerAway, match="ConnectionRefusedError"):
        Mail("127.0.0.1", 9, "qm@example.com", Security.NONE).send(LETTER, now=NOW)


@pytest.mark.parametrize(
    "to",
    [
        "",
        "ada",
        "ada@",
        "@example.com",
        "ada@example.com\r\nBcc: all@example.com",
        "ada@example.com, b@example.com",
        "Ada <ada@example.com>",
        "ädä@example.com",
        "a@b@c",
    ],
)
def test_what_is_no_address_is_never_written_to(to: str) -> None:
    with pytest.raises(PermanentError, match="no address"):
        compose(replace(LETTER, to=to), "qm@example.com", NOW)


def test_a_subject_with_a_line_break_makes_no_header() -> None:
    with pytest.raises(PermanentError):
        compose(
            replace(LETTER, subject="Hello\r\nBcc: all@example.com"),
            "qm@example.com",
            NOW,
        )

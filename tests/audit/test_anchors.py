"""Signed heads of the log lie outside the database, and show what was done to it since."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from pytest_django import Settings

from audit import anchors, chain, signing
from audit.actors import PORTAL
from audit.anchors import Ways, leave
from audit.chain import GENESIS, Checkpoint
from audit.events import Kind
from audit.log import record
from audit.models import Anchor, Event, Head
from tests.posting import Running, posting
from tests.scene import NOW

DAY = timedelta(days=1)
LOG = "https://gpus.example.com"
KEY = signing.key_from("the secret key")
TEXT = signing.sign(Checkpoint(3, "ab" * 32), log=LOG, at=NOW, key=KEY)
OURS = [signing.public(KEY)]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with posting(tmp_path_factory.mktemp("post")) as running:
        yield running


@pytest.fixture
def post(office: Running) -> Running:
    office.forget()
    return office


def happen(number: int) -> None:
    with transaction.atomic():
        for n in range(number):
            record(Kind.BUDGET_SET, actor=PORTAL, n=n)


def rewrite(statement: str) -> None:
    """As a superuser of the database could."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET session_replication_role = replica; {statement}; SET session_replication_role = DEFAULT"
        )


def test_an_anchor_is_read_with_the_public_key_alone() -> None:
    assert signing.read(TEXT, trusted=OURS) == Checkpoint(3, "ab" * 32)
    assert signing.read(f"  {TEXT}\r\n", trusted=OURS).seq == 3


@pytest.mark.parametrize(
    "change", [{"seq": 4}, {"hash": "cd" * 32}, {"log": "x"}, {"at": "x"}, {"more": 1}]
)
def test_an_anchor_that_was_changed_is_not_genuine(change: dict[str, object]) -> None:
    with pytest.raises(signing.NotGenuine, match="changed after it was signed"):
        signing.read(json.dumps(json.loads(TEXT) | change), trusted=OURS)


def test_an_anchor_signed_by_somebody_else_is_not_genuine() -> None:
    forged = signing.sign(
        Checkpoint(3, "ab" * 32), log=LOG, at=NOW, key=signing.key_from("another")
    )
    with pytest.raises(signing.NotGenuine, match="not trusted"):
        signing.read(forged, trusted=OURS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "{}",
        "null",
        "[" * 9_000,
        TEXT[:-3],
        "x" * 20_000,
        '{"signature": 1}',
    ],
)
def test_what_is_no_anchor_is_said_to_be_none(text: str) -> None:
    with pytest.raises(signing.NotGenuine, match="no anchor"):
        signing.read(text, trusted=OURS)


@pytest.mark.django_db
def test_once_a_day_the_head_goes_out_by_mail_and_into_the_folder(
    post: Running, tmp_path: Path
) -> None:
    ways = Ways(
        mail=post.mail(), to=("audit@example.com", "board@example.com"), folder=tmp_path
    )
    happen(3)
    leave(ways, log=LOG, now=NOW)
    happen(2)
    leave(ways, log=LOG, now=NOW + timedelta(minutes=15))
    assert [got["to"] for got in post.got] == [
        ["audit@example.com"],
        ["board@example.com"],
    ]
    [path] = tmp_path.iterdir()
    assert path.name == f"audit-{NOW.date()}.json"
    assert signing.read(path.read_text(), trusted=anchors.trusted_keys()) == Checkpoint(
        3, Event.objects.get(seq=3).hash
    )
    assert path.read_text().strip() in post.got[0]["text"]

    leave(ways, log=LOG, now=NOW + DAY)
    assert len(post.got) == 4
    assert len(list(tmp_path.iterdir())) == 2
    assert Anchor.objects.get(day=(NOW + DAY).date()).seq == 5


@pytest.mark.django_db
def test_what_could_not_be_left_is_left_later(post: Running, tmp_path: Path) -> None:
    happen(1)
    away = tmp_path / "not mounted"
    ways = Ways(mail=None, to=("audit@example.com",), folder=away)
    leave(ways, log=LOG, now=NOW)
    leave(ways, log=LOG, now=NOW + DAY)
    assert post.got == []
    away.mkdir()
    leave(Ways(post.mail(), ways.to, away), log=LOG, now=NOW + DAY)
    assert len(post.got) == 2
    assert len(list(away.iterdir())) == 2
    assert not Anchor.objects.filter(mailed_at=None).exists()


@pytest.mark.django_db
def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    happen(1)
    there = tmp_path / f"audit-{NOW.date()}.json"
    there.write_text("of another installation")
    leave(Ways(None, (), tmp_path), log=LOG, now=NOW)
    assert there.read_text() == "of another installation"
    assert Anchor.objects.get().stored_at is None


@pytest.mark.django_db
def test_nothing_is_signed_where_nobody_gets_it_or_nothing_happened(
    tmp_path: Path,
) -> None:
    leave(Ways(None, (), tmp_path), log=LOG, now=NOW)
    happen(1)
    leave(Ways(None, (), None), log=LOG, now=NOW)
    assert not Anchor.objects.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.django_db
def test_the_command_compares_the_log_with_every_anchor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for days in range(2):
        happen(2)
        leave(Ways(None, (), tmp_path), log=LOG, now=NOW + days * DAY)
    call_command("verify_audit_log", "--anchor", str(tmp_path))
    assert capsys.readouterr().out == "4 events, unbroken. 2 anchors agree.\n"

    # Everything from event 4 on is cut off, the head with it: nothing in the database shows it any more.
    rewrite("DELETE FROM audit_event WHERE seq > 3")
    Head.objects.update(seq=3, hash=Event.objects.get(seq=3).hash)
    call_command("verify_audit_log")
    with pytest.raises(
        CommandError, match="Event 4, the newest that is known, is missing"
    ):
        call_command("verify_audit_log", "--anchor", str(tmp_path))


@pytest.mark.django_db
def test_a_log_that_was_rewritten_with_all_its_hashes_differs_from_its_anchor(
    tmp_path: Path,
) -> None:
    happen(3)
    leave(Ways(None, (), tmp_path), log=LOG, now=NOW)
    previous = GENESIS
    for event in Event.objects.order_by("seq"):
        event.details = {"n": 99}
        made = chain.digest(seq=event.seq, body=event.body(), previous=previous)
        rewrite(
            f"UPDATE audit_event SET details = '{{\"n\": 99}}', previous = '{previous}', hash = '{made}' "
            f"WHERE seq = {event.seq}"
        )
        previous = made
    Head.objects.update(hash=previous)
    call_command("verify_audit_log")
    with pytest.raises(CommandError, match="it was rewritten"):
        call_command(
            "verify_audit_log", "--anchor", str(tmp_path / f"audit-{NOW.date()}.json")
        )


@pytest.mark.django_db
def test_an_auditor_who_noted_the_public_key_trusts_that_one_alone(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    happen(1)
    call_command("verify_audit_log", "--show-key")
    noted = capsys.readouterr().out.strip()
    leave(Ways(None, (), tmp_path), log=LOG, now=NOW)
    settings.SECRET_KEY = "another" * 10
    with pytest.raises(CommandError, match="not trusted"):
        call_command("verify_audit_log", "--anchor", str(tmp_path))
    call_command("verify_audit_log", "--anchor", str(tmp_path), "--key", noted)
    settings.SECRET_KEY_FALLBACKS = ["tests-only-" + "k" * 50]
    call_command("verify_audit_log", "--anchor", str(tmp_path))


@pytest.mark.django_db
def test_an_anchor_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"gone\.json: it cannot be read"):
        call_command("verify_audit_log", "--anchor", str(tmp_path / "gone.json"))

"""What a page, a part of a page, and a form get once their session has ended; and how a form goes on afterwards."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts import sessions
from approvals.models import Request
from notices.sealing import seal
from portal.http import kept_forms
from tests.scene import scene

pytestmark = pytest.mark.django_db
HERE = "http://testserver"
OURS = {"Origin": HERE, "Referer": f"{HERE}/requests/new?team=vision"}
FORM = "application/x-www-form-urlencoded"
BODY = (
    "team=vision&reason=For+the+review.%0D%0ATwo+lines.&gpus=3&csrfmiddlewaretoken=old"
)


def post(client: Client, path: str, body: str = BODY, **headers: str) -> Any:
    """Send a form as a browser does."""
    return client.post(path, body, content_type=FORM, headers=headers)


def test_a_part_of_a_page_gets_401_and_nothing_to_put_on_the_page(
    client: Client,
) -> None:
    for answer in (
        client.get("/teams/vision/", headers={"HX-Request": "true"}),
        client.post("/requests/preview", {"gpus": "3"}, headers={"HX-Request": "true"}),
    ):
        assert (answer.status_code, answer.content) == (401, b"")
        assert answer["HX-Reswap"] == "none"
        assert answer["HX-Trigger"] == "session-ended"


def test_the_page_to_go_back_to_survives_a_post(client: Client) -> None:
    answer = post(
        client, "/requests/new", "x=1", Referer=f"{HERE}/requests/new?team=vision"
    )
    assert answer["Location"] == "/sign-in?next=%2Frequests%2Fnew%3Fteam%3Dvision"
    assert (
        post(client, "/requests/new", Referer="https://evil.example/x")["Location"]
        == "/sign-in?next=%2F"
    )


def test_a_form_of_an_ended_session_shows_what_was_typed_and_goes_on_after_signing_in(
    client: Client,
) -> None:
    answer = post(client, "/requests/new", **OURS)
    assert answer.status_code == 401
    assert "For the review.<br>Two lines." in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    assert answer.context["kept"].fields == [
        ("team", "vision"),
        ("reason", "For the review.\r\nTwo lines."),
        ("gpus", "3"),
    ]


def test_a_form_that_is_sent_in_parts_is_kept_too(client: Client) -> None:
    # As the form of a run is, so that its script takes no more room than it has.
    answer = client.post(
        "/teams/vision/runs/new",
        {"title": "BERT", "script": "print(1)\nprint(2)"},
        headers=OURS,
    )
    assert answer.status_code == 401
    assert answer.context["kept"].fields == [
        ("title", "BERT"),
        ("script", "print(1)\nprint(2)"),
    ]


def test_what_was_typed_is_named_as_people_write_it() -> None:
    kept = kept_forms.KeptForm(
        "/", "/", [("title", "BERT"), ("gpus", "2"), ("git_url", "x"), ("token", "t")]
    )
    assert kept.typed == [("Title", "BERT"), ("GPUs", "2"), ("Git URL", "x")]


def test_what_was_typed_is_named_as_the_form_names_it() -> None:
    said = [("flavor", "a/b"), ("purpose", "training"), ("until", "2026-11-28T02:49")]
    kept = kept_forms.KeptForm("/requests/new", "/", said)
    assert kept.typed == [
        ("Kind of GPU", "a/b"),
        ("For", "training"),
        ("Until", "2026-11-28 02:49 UTC"),
    ]


def test_what_another_site_sends_is_neither_shown_nor_kept(client: Client) -> None:
    for origin in ("https://evil.example", "null", ""):
        answer = post(client, "/requests/new", **{**OURS, "Origin": origin})
        assert (answer.status_code, answer["Location"].startswith("/sign-in")) == (
            302,
            True,
        )


def test_a_kept_form_is_sealed_ours_and_minutes_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = kept_forms.KeptForm("/requests/new", "/", [("reason", "Secret plans")])
    text = kept_forms.sealed(kept)
    assert "Secret" not in text
    assert kept_forms.unsealed(text) == kept
    assert kept_forms.unsealed(text[:-9] + "AAAAAAAA=") is None
    assert kept_forms.unsealed(seal("{}")) is None
    monkeypatch.setattr(kept_forms, "KEPT_SECONDS", -1)
    assert kept_forms.unsealed(text) is None


def test_what_is_too_long_to_keep_leads_to_sign_in(client: Client) -> None:
    body = "reason=" + "x" * kept_forms.MAX_KEPT_BYTES
    assert post(client, "/requests/new", body, **OURS).status_code == 302


def test_a_form_with_the_token_of_an_older_session_is_sent_again_as_it_is() -> None:
    here, strict = scene(), Client(enforce_csrf_checks=True)
    strict.force_login(here.ada)
    page = post(strict, "/requests/new", **OURS)
    assert page.status_code == 403
    assert "You are signed in as Ada Okafor" in page.content.decode()
    assert 'name="reason" value="For the review.' in page.content.decode()
    foreign = post(
        strict, "/requests/new", **{**OURS, "Origin": "https://evil.example"}
    )
    assert foreign.status_code == 403
    assert "For the review." not in foreign.content.decode()
    assert not Request.objects.exists()


def test_a_form_in_parts_with_the_token_of_an_older_session_is_sent_again_as_it_is() -> (
    None
):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(scene().ada)
    answer = strict.post("/requests/new", {"team": "vision", "gpus": "3"}, headers=OURS)
    assert answer.context["kept"].fields == [("team", "vision"), ("gpus", "3")]


def test_the_session_says_whether_it_holds_and_whose_it_is(client: Client) -> None:
    assert client.get("/session").json() == {"signed_in": False}
    here = scene()
    client.force_login(here.ada)
    said = client.get("/session").json()
    assert (said["signed_in"], said["person"]) == (True, str(here.ada.pk))
    assert len(said["token"]) == 64


def test_asking_for_the_session_keeps_nobody_signed_in(client: Client) -> None:
    client.force_login(scene().ada)
    before = Session.objects.get().expire_date - timedelta(hours=2)
    Session.objects.update(expire_date=before)
    client.get("/session")
    client.get("/", headers={"HX-Request": "true"})
    by_clock = {"HX-Request": "true", "QM-By-Clock": "true"}
    client.post("/requests/preview", {"gpus": "3"}, headers=by_clock)
    assert Session.objects.get().expire_date == before


def test_a_session_beyond_its_absolute_limit_is_over(client: Client) -> None:
    client.force_login(scene().ada)
    session = client.session
    session[sessions.STARTED] = (timezone.now() - timedelta(hours=25)).isoformat()
    session.save()
    assert client.get("/session").json() == {"signed_in": False}
    assert client.get("/teams/")["Location"].startswith("/sign-in")
    assert not Session.objects.filter(session_key=session.session_key).exists()


def test_a_page_that_somebody_opens_moves_the_end_of_the_session(
    client: Client,
) -> None:
    client.force_login(scene().ada)
    session = client.session
    session.set_expiry(timezone.now() + timedelta(hours=1))
    session.save()
    client.get("/teams/")
    assert Session.objects.get().expire_date > timezone.now() + timedelta(hours=7)


def test_the_page_after_signing_in_again_is_for_the_signed_in_only(
    client: Client,
) -> None:
    assert client.get("/sign-in/done")["Location"] == "/sign-in"
    assert client.get("/sign-in/kept")["Location"] == "/sign-in"
    client.force_login(scene().ada)
    assert "You are signed in again" in client.get("/sign-in/done").content.decode()
    assert client.get("/sign-in/kept")["Location"] == "/"

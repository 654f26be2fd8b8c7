"""Who may scrape /metrics: the holder of its own token alone, and only by reading."""

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pydantic import ValidationError

from accounts.roles import Role
from portal.env import read
from tests import factories
from tests.calling import token_of
from tests.portal.scraping import TOKEN, scrape, token, told

__all__ = ["token"]


def test_the_right_token_is_answered_in_the_text_format(token: str) -> None:
    answer = scrape()
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "no-store" in answer["Cache-Control"]
    assert not answer.cookies
    assert told()


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer é",
    ],
)
def test_any_other_is_asked_for_it(token: str, header: str) -> None:
    answer = scrape(Authorization=header)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="metrics"'
    assert b"quartermaster_" not in answer.content
    assert TOKEN.encode() not in answer.content


def test_without_the_setting_there_is_no_such_address(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENV, "metrics_token", None)
    for header in ("", f"Bearer {TOKEN}", "Bearer None", "Bearer "):
        answer = scrape(Authorization=header)
        assert answer.status_code == 404
        assert "WWW-Authenticate" not in answer


def test_nobody_scrapes_by_a_session_or_a_personal_token(
    token: str, client: Client
) -> None:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    client.force_login(priya)
    assert client.get("/metrics").status_code == 401
    assert scrape(Authorization=f"Bearer {token_of(priya)}").status_code == 401


def test_no_session_is_read_or_made(token: str, client: Client) -> None:
    client.force_login(factories.person("Ada Okafor"))
    with CaptureQueriesContext(connection) as asked:
        assert scrape(client).status_code == 200
    assert not [one for one in asked if "django_session" in one["sql"]]
    with CaptureQueriesContext(connection) as asked:
        assert scrape(client, Authorization="Bearer x").status_code == 401
    assert not asked.captured_queries


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_it_is_only_read(token: str, method: str) -> None:
    answer = getattr(Client(), method)(
        "/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    assert (answer.status_code, answer.content) == (405, b"")


def test_head_is_answered_too(token: str) -> None:
    answer = Client().head("/metrics", headers={"Authorization": f"bearer {TOKEN}"})
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("given", ["guess-me", "x" * 31])
def test_a_token_that_can_be_guessed_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("QM_METRICS_TOKEN", given)
    with pytest.raises(ValidationError) as refused:
        read(None)
    assert given not in str(refused.value)


def test_an_empty_setting_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QM_METRICS_TOKEN", "")
    assert read(None).metrics_token is None

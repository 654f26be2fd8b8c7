"""Pages have rates as the API has: shared by every process, said in seconds, and nothing typed is lost by one."""

import re
import time

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import ApiToken
from tests import factories
from tests.attacks.browsing import as_, text_of
from tests.calling import Caller
from web import counters as counting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _a_closed_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "breaker", counting.Breaker())
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)


def test_pages_have_the_rates_of_the_api(settings: Settings) -> None:
    settings.RATES = {"read": "2/h", "write": "1/h"}
    ada, ben = factories.person("Ada"), factories.person("Ben")
    first, second = as_(ada), as_(ada)
    assert [first.get("/teams/").status_code, second.get("/teams/").status_code] == [
        200,
        200,
    ]
    assert first.post("/tokens/", {}).status_code == 422
    refused = [first.get("/teams/"), second.post("/tokens/", {})]
    assert [answer.status_code for answer in refused] == [429, 429]
    assert all(1 <= int(answer["Retry-After"]) <= 3601 for answer in refused)
    # The API counts for itself, and so does everybody else.
    assert Caller(ada).get("me/").status_code == 200
    assert as_(ben).get("/teams/").status_code == 200


def test_what_was_typed_stands_in_the_page_and_is_sent_again_by_its_button(
    settings: Settings,
) -> None:
    settings.RATES = {"read": "9/h", "write": "0/h"}
    browser = as_(factories.person("Ada"))
    typed = {"name": "nightly “run” <b>", "scope": "read", "days": "30"}
    page = text_of(browser.post("/tokens/", typed))
    assert "Go on in " in page
    assert 'class="frame"' in page
    kept = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert kept.pop("csrfmiddlewaretoken")
    kept.pop("next", None)  # the frame's own
    assert kept == typed | {"name": "nightly “run” &lt;b&gt;"}
    settings.RATES = {"read": "9/h", "write": "9/h"}
    browser.post("/tokens/", typed)
    assert ApiToken.objects.get().name == "nightly “run” <b>"


def test_previews_count_as_reads(settings: Settings) -> None:
    settings.RATES = {"read": "1/h", "write": "0/h"}
    browser = as_(factories.person("Ada"))
    assert [browser.post("/requests/preview/gpus", {}).status_code for _ in range(2)][
        1
    ] == 429
    assert browser.get("/teams/").status_code == 429


def test_probes_streams_and_leaving_are_not_counted(settings: Settings) -> None:
    settings.RATES = {"read": "0/h", "write": "0/h", "sign-in": "9/min"}
    browser = as_(factories.person("Ada"))
    assert [browser.get(path).status_code for path in ("/healthz", "/events")] == [
        200,
        204,
    ]
    assert browser.post("/sign-out").status_code == 302
    assert Client().get("/sign-in").status_code == 200


def test_who_is_signed_in_reads_refusals_inside_the_frame_with_its_search() -> None:
    browser = as_(factories.person("Ada"))
    for answer, status in (
        (browser.get("/nowhere/"), 404),
        (browser.post("/audit/check"), 403),
    ):
        page = text_of(answer)
        assert answer.status_code == status
        assert 'class="frame"' in page
        assert "<dialog" in page

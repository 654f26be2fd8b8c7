"""Pages that say what did not work: inside the frame for who is signed in, and never by asking what has failed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import BadRequest
from django.db import OperationalError, ProgrammingError
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.roles import Role
from portal.http.wrong_method import SAID, page_of
from portal.pages import home_board
from tests import factories
from tests.calling import Caller
from tests.portal.permission_matrix import Prober, routes
from tests.world import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Client:
    made = Client(raise_request_exception=False)
    made.force_login(factories.person("Ada"))
    return made


def in_frame(answer: Any) -> bool:
    page = answer.content.decode()
    return 'class="frame"' in page and "<dialog" in page and "data-palette-open" in page


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/audit/?team=%00", 400, "That could not be read"),
        ("POST", "/audit/check", 403, "This is not yours to open"),
        ("GET", "/nowhere/", 404, "There is nothing here"),
        ("POST", "/audit/", 405, "Not possible here"),
        ("PUT", "/requests/", 405, "Not possible here"),
    ],
)
def test_refusals_stand_inside_the_frame_with_its_search(
    browser: Client, method: str, path: str, status: int, words: str
) -> None:
    answer = browser.generic(method, path)
    assert answer.status_code == status
    assert in_frame(answer)
    assert words in answer.content.decode()


def test_what_nobody_expected_stands_inside_the_frame(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_board, "board", lambda *_, **__: 1 / 0)
    answer = browser.get("/")
    assert answer.status_code == 500
    assert in_frame(answer)
    assert "Something broke on our side" in answer.content.decode()


def test_a_program_reads_a_problem_for_what_nobody_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "allocations.api.AllocationEndpoint.get_queryset", lambda *_: 1 / 0
    )
    answer = Caller(factories.person("Ben")).get("allocations/")
    assert (answer.status_code, answer["Content-Type"]) == (
        500,
        "application/problem+json",
    )
    assert answer.json()["code"] == "unexpected"
    assert answer.json()["request_id"]


def by_the_database() -> None:
    """A failure of the database under another one."""
    raise RuntimeError("The list cannot be made.") from ProgrammingError(
        "no such table"
    )


def gone() -> None:
    """A database that does not answer."""
    raise OperationalError("gone")


@pytest.mark.parametrize(("failure", "status"), [(by_the_database, 500), (gone, 503)])
def test_a_failure_of_the_database_is_told_without_asking_it(
    browser: Client,
    monkeypatch: pytest.MonkeyPatch,
    failure: Callable[[], None],
    status: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    monkeypatch.setattr(home_board, "board", lambda *_, **__: failure())
    # The session and the person, before the page begins, are all that is asked for.
    with django_assert_num_queries(3):
        answer = browser.get("/")
    assert answer.status_code == status
    assert not in_frame(answer)
    assert "Go home" in answer.content.decode()


def test_a_frame_that_fails_leaves_the_plain_page(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.context.rail", lambda *_, **__: 1 / 0)
    answer = browser.get("/")
    assert answer.status_code == 500
    assert not in_frame(answer)
    assert "Something broke on our side" in answer.content.decode()


def test_a_stranger_reads_plain_pages() -> None:
    answer = Client(raise_request_exception=False).get("/sign-in/callback?state=x")
    assert answer.status_code == 400
    assert not in_frame(answer)


def test_programs_are_answered_with_the_status_alone(browser: Client) -> None:
    for path in ("/healthz", "/readyz"):
        answer = browser.post(path)
        assert (answer.status_code, answer.content) == (405, b"")
    answer = browser.post("/audit/")
    assert "GET" in answer["Allow"]


@pytest.mark.slow
def test_the_address_of_every_button_leads_back_to_a_page_that_is_there() -> None:
    prober = Prober(world())
    lead, browser = prober.here.people["platform_lead"], prober.pages["platform_lead"]
    led = {}
    for route in routes():
        # Who is signed in already is led home from the page to sign in.
        if route.startswith(("api/", "sign-in")):
            continue
        path = "/" + prober.path(route, "platform_lead", "own")
        answer = browser.get(path)
        if answer.status_code == 302 and answer["Location"] == page_of(path, lead):
            # The address of a model leads on to the request for it.
            page = browser.get(answer["Location"], follow=True)
            assert page.status_code == 200, path
            assert SAID in page.content.decode(), path
            led[route] = answer["Location"]
    own = prober.here.own
    assert len(led) >= 28
    assert led["requests/<int:pk>/withdraw"] == reverse(
        "request", args=[own.waiting.pk]
    )
    assert led["tokens/<slug:prefix>/revoke"] == "/tokens/"
    assert led["tokens/identities/<int:pk>/remove"] == "/tokens/"
    assert led["tenancies/<int:pk>/protection"] == reverse(
        "leaving", args=[own.team.slug]
    )
    assert led["policy/drafts/<int:pk>/activate"] == reverse(
        "policy-draft", args=[prober.here.draft.pk]
    )
    assert {route for route, page in led.items() if page == "/"} == {
        "sign-out",
        "theme",
    }


def test_a_place_that_one_may_not_see_leads_to_the_list_of_teams() -> None:
    here = world()
    browser = Client()
    browser.force_login(here.people["outsider"])
    for pk in (here.own.tenancy.pk, 10**6):
        assert browser.get(f"/tenancies/{pk}/protection")["Location"] == "/teams/"


def test_a_link_changes_nothing_and_a_stranger_is_sent_to_sign_in() -> None:
    assert Client().get("/sign-in/start")["Location"] == "/sign-in"
    ada = Client()
    ada.force_login(factories.person("Ada", Role.AUDITOR))
    assert ada.get("/sign-out")["Location"] == "/"
    assert ada.get("/").status_code == 200


def test_a_request_that_cannot_be_read_is_a_page_whoever_sent_it(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object, **__: object) -> None:
        raise BadRequest("x")

    monkeypatch.setattr(home_board, "board", unreadable)
    answer = browser.get("/")
    assert answer.status_code == 400
    assert in_frame(answer)

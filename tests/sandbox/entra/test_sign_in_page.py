"""The sign-in page and what the authorize endpoint refuses."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from sandbox.entra.authorize import is_registered
from sandbox.world import CLIENT_ID, person_id
from tests.sandbox.entra.running import CALLBACK, Running

CHALLENGE = "a" * 43


def url(world: Running, **changes: str | None) -> str:
    """An authorize request, good unless changed; None leaves a parameter out."""
    query = {
        "client_id": CLIENT_ID,
        "response_type": "code",
        "redirect_uri": CALLBACK,
        "scope": "openid profile",
        "state": "s&t",
        "nonce": "n",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    } | changes
    return f"{world.tenant}/oauth2/v2.0/authorize?" + urlencode(
        {k: v for k, v in query.items() if v is not None}
    )


def test_it_lists_everybody_with_name_and_role(world: Running) -> None:
    with world.client() as client:
        page = client.get(url(world))
    assert page.status_code == 200
    for person in world.sandbox.directory.people.values():
        assert person.name in page.text
        assert f"{person.title} · {person.mail}" in page.text


def test_the_page_works_without_scripts_and_loads_nothing(world: Running) -> None:
    with world.client() as client:
        page = client.get(url(world))
    assert "<script" not in page.text
    assert "src=" not in page.text
    assert 'lang="en"' in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("hint", ["marcus@example.com", "MARCUS@example.com"])
def test_a_login_hint_shows_that_person_first(world: Running, hint: str) -> None:
    with world.client() as client:
        page = client.get(url(world, login_hint=hint)).text
    assert (
        page.index("Marcus Weber")
        < page.index("Somebody else")
        < page.index("Ada Okafor")
    )
    assert page.count("Marcus Weber") == 1


def test_the_answer_carries_code_and_state(world: Running) -> None:
    answer = world.sign_in(url(world), person_id(1))
    assert set(answer) == {"code", "state"}
    assert answer["state"] == "s&t"


def test_an_unknown_person_sees_why(world: Running) -> None:
    with world.client() as client:
        page = client.post(url(world), data={"person": "<script>"})
    assert page.status_code == 403
    assert "AADSTS50034" in page.text
    assert "<script" not in page.text


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"client_id": "another"}, "AADSTS700016"),
        ({"redirect_uri": "https://evil.example/"}, "AADSTS50011"),
        ({"redirect_uri": None}, "AADSTS50011"),
    ],
)
def test_bad_applications_are_not_sent_back(
    world: Running, changes: dict[str, str | None], number: str
) -> None:
    with world.client() as client:
        answer = client.get(url(world, **changes))
    assert answer.status_code == 400
    assert number in answer.text


@pytest.mark.parametrize(
    ("changes", "error", "number"),
    [
        ({"response_type": "token"}, "unsupported_response_type", "AADSTS700051"),
        ({"code_challenge": None}, "invalid_request", "AADSTS9002325"),
        ({"code_challenge_method": "plain"}, "invalid_request", "AADSTS9002325"),
        ({"response_mode": "fragment"}, "invalid_request", "AADSTS9002313"),
        ({"scope": None}, "invalid_request", "AADSTS900144"),
        ({"prompt": "none"}, "login_required", "AADSTS50058"),
    ],
)
def test_bad_requests_go_back_with_an_error(
    world: Running, changes: dict[str, str | None], error: str, number: str
) -> None:
    with world.client() as client:
        answer = client.get(url(world, **changes))
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert (query["error"], query["state"]) == (error, "s&t")
    assert query["error_description"].startswith(number)


@pytest.mark.parametrize(
    ("redirect", "answer"),
    [
        ("http://127.0.0.1:8000/accounts/callback", True),
        ("http://localhost:1/", True),
        ("http://localhost.evil.example/", False),
        ("http://localhost@evil.example/", False),
        ("http://evil@localhost/", False),
        ("http://localhost/#x", False),
        ("javascript://localhost/", False),
        ("//localhost/", False),
        ("", False),
    ],
)
def test_only_loopback_addresses_are_registered(redirect: str, answer: bool) -> None:
    assert is_registered(redirect) is answer


def test_sign_out_goes_nowhere_strange(world: Running) -> None:
    with world.client() as client:
        answer = client.get(
            f"{world.tenant}/oauth2/v2.0/logout?post_logout_redirect_uri=https://evil.example/"
        )
    assert answer.status_code == 200
    assert "signed out" in answer.text

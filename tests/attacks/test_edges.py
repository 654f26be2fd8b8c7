"""What arrives crooked is answered with 400 or 405, and what is answered stays in no cache."""

import base64
import json
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster
from tests.attacks.browsing import as_
from tests.calling import Caller
from tests.world import World

LISTS = {
    "requests": "-created_at",
    "approvals": "created_at",
    "tasks": "created_at",
    "teams": "name",
    "tokens": "-created_at",
    "channels": "name",
    "clusters": "name",
    "deliveries": "-created_at",
}
MOMENTS = (
    "0001-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "9999-12-31T23:59:59Z",
    "2026-11-22T12:00:00",
    "2026-11-22",
)
VALUES: tuple[object, ...] = (
    *MOMENTS,
    "a\x00b",
    "\ud800",
    "x" * 100_000,
    "",
    1,
    None,
    True,
    [],
    {},
    "NaN",
)
KEYS: tuple[object, ...] = (1, 0, -1, 2**63, 2**200, True, None, "1", 1.5, [])


def cursor(*parts: object) -> str:
    """A cursor as the portal writes it, of any parts."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.slow
def test_no_crafted_cursor_of_any_list_is_a_server_error(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    for name, field in LISTS.items():
        other = "name" if field != "name" else "-created_at"
        crafted = [cursor(field, False, value, 1) for value in VALUES]
        crafted += [cursor(field, False, "2026-11-22T12:00:00Z", key) for key in KEYS]
        crafted += [
            cursor(field, "x", "a", 1),
            cursor(other, False, "a", 1),
            cursor(field),
            "!",
            "ä",
            "",
        ]
        for text in crafted:
            answer = caller.client.get(
                f"/api/v1/{name}/", {"cursor": text}, headers=caller.headers
            )
            assert answer.status_code in (200, 400), (name, text, answer.status_code)
            if answer.status_code == 400:
                assert answer.json()["code"] == "bad_query"


def test_crafted_moments_and_keys_are_refused_by_name(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    for value, key in [
        *product(MOMENTS[:2] + MOMENTS[2:], [1]),
        ("2026-11-22T12:00:00Z", 2**63),
    ]:
        answer = caller.get(
            f"requests/?cursor={cursor('-created_at', False, value, key)}"
        )
        assert answer.status_code == 400, (value, key)
        assert answer.json()["errors"][0] == {
            "pointer": "/cursor",
            "code": "bad_cursor",
            "detail": "This cursor is not from this list in this order.",
        }


@pytest.mark.parametrize(
    "body", ['{"count": 1, "count": 5}', '{"x": {"gpus": 1, "y": 2, "gpus": 3}}']
)
def test_a_key_that_stands_twice_is_refused_by_name(here: World, body: str) -> None:
    twice = "gpus" if "gpus" in body else "count"
    caller = Caller(here.people["platform_lead"])
    answer = caller.post(
        f"requests/{here.own.waiting.pk}/approve/", body, **{"If-Match": '"1"'}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
    assert f"“{twice}”" in answer.json()["detail"]
    here.own.waiting.refresh_from_db()
    assert here.own.waiting.decided_at is None


@pytest.mark.parametrize(
    "body",
    ['{"gpus": NaN}', '{"gpus": Infinity}', b"\xff", "[1]", '{"a": 1', "9" * 5000],
)
def test_what_is_no_json_object_is_400(here: World, body: str | bytes) -> None:
    assert Caller(here.people["member"]).post("requests/", body).status_code == 400


def test_a_method_that_is_not_offered_is_405_whatever_its_parameters(
    here: World,
) -> None:
    caller = Caller(here.people["platform_lead"])
    for path in (
        "me/",
        "requests/",
        "events/",
        f"requests/{here.own.waiting.pk}/approve/",
    ):
        for method in ("PUT", "TRACE", "PROPFIND"):
            assert (
                caller.send(method, f"{path}?nothing=1&nothing=2", {}).status_code
                == 405
            ), (method, path)


@pytest.mark.slow
def test_private_answers_stay_in_no_cache(here: World) -> None:
    lead = here.people["platform_lead"]
    browser, caller = as_(lead), Caller(lead)
    found = f"requests/{here.own.waiting.pk}/"
    answers = [
        browser.get(path)
        for path in ("/", "/requests/", f"/{found}", "/nowhere", "/tokens/", "/audit/")
    ]
    answers += [
        caller.get(path)
        for path in ("me/", "requests/", found, "requests/999999/", "me/?x=1")
    ]
    answers += [
        browser.post("/tokens/", {}),
        Client().get("/"),
        Client().get("/api/v1/me/"),
    ]
    for answer in answers:
        assert "no-store" in answer["Cache-Control"], answer.request["PATH_INFO"]
        assert "private" in answer["Cache-Control"]


def test_static_files_say_themselves_how_long_they_stay() -> None:
    assert "no-store" not in Client().get("/static/favicon.svg")["Cache-Control"]


@pytest.mark.parametrize(
    "content",
    [None, "", "apiVersion: v1\nkind: Config\n", "clusters: []\ncontexts: []"],
)
def test_what_is_wrong_with_a_kubeconfig_names_no_path(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "secret-place" / "kubeconfig.yaml"
    if content is not None:
        file.parent.mkdir()
        file.write_text(content)
    with pytest.raises(PermanentError) as refused:
        Cluster.from_kubeconfig(file)
    assert "secret-place" not in refused.value.message
    assert str(settings.BASE_DIR) not in refused.value.message

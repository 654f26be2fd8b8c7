"""What every call of the API can rely on."""

import ast
import json
from typing import Any, cast

import pytest
from django.conf import settings
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from accounts.models import ApiToken
from audit.models import Event
from portal.http.problem_codes import CODES
from portal.http.problems import TITLES
from scripts.packages import LAYERS
from tests.calling import Caller
from tests.described import description, parsed
from tests.world import World, world

pytestmark = pytest.mark.django_db
META_SCHEMA = Draft202012Validator(Draft202012Validator.META_SCHEMA)
PROBLEM = {
    "type",
    "title",
    "status",
    "code",
    "detail",
    "instance",
    "errors",
    "request_id",
}


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


def plain(answer: Any) -> dict[str, Any]:
    """A problem without what names the one call."""
    assert answer["Content-Type"] == "application/problem+json"
    return {
        key: value
        for key, value in answer.json().items()
        if key not in ("instance", "request_id")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "status", "headers"),
    [
        ("post", "requests/", "201", {"Location", "Idempotency-Replayed"}),
        ("post", "requests/", "429", {"Retry-After"}),
        ("post", "requests/preview/", "200", set[str]()),
        ("get", "runs/{id}/logs/", "409", set[str]()),
        ("post", "tasks/{id}/take/", "412", set[str]()),
    ],
)
def test_what_an_answer_bears_is_described(
    method: str, path: str, status: str, headers: set[str]
) -> None:
    responses = description()["paths"][f"/api/v1/{path}"][method]["responses"]
    assert set(responses[status].get("headers", {})) == headers


@pytest.mark.slow
def test_every_schema_is_one() -> None:
    for name, schema in description()["components"]["schemas"].items():
        faults = META_SCHEMA.iter_errors(schema)
        assert [fault.message for fault in faults] == [], name


def test_what_takes_no_body_refuses_one() -> None:
    paths, generator = description()["paths"], cast("Any", SchemaGenerator)()
    generator._initialise_endpoints()
    for path, _, method, view in generator._get_paths_and_endpoints():
        operation = paths.get(path, {}).get(method.lower())
        if operation and method != "GET":
            is_bodyless = view.action in getattr(view, "bodyless", ())
            assert is_bodyless == ("requestBody" not in operation), (method, path)


def test_a_value_where_none_is_taken_is_named_and_nothing_changes(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    [token] = ApiToken.objects.filter(user=here.people["platform_lead"])
    answer = caller.send("DELETE", f"tokens/{token.prefix}/", {"dry_run": True})
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["code"]) == (422, "unknown_field")
    token.refresh_from_db()
    assert token.revoked_at is None


@pytest.mark.slow
def test_the_root_leads_everywhere_without_a_token(here: World) -> None:
    client = Client()
    root = client.get("/api/").json()
    caller = Caller(here.people["platform_lead"])
    for name, path in root["v1"].items():
        if name in ("directory_groups", "options_flavors"):
            continue  # one asks Entra ID, the other needs to know for which team
        # What is only sent to takes no GET.
        assert caller.get(path).status_code == (
            405 if name == "decisions_effect" else 200
        ), path
    for name in ("description", "documentation", "problems"):
        assert client.get(root[name]).status_code == 200, name


@pytest.mark.slow
def test_the_description_is_what_is_committed() -> None:
    assert parsed(Client().get("/api/schema/").content) == description()


def test_the_description_is_made_once_whatever_is_asked_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes seconds of a processor, and who is not signed in may read it."""
    yaml_text = Client().get("/api/schema/").content

    def again(*_: object, **__: object) -> None:
        raise AssertionError("The description was made again.")

    monkeypatch.setattr(SchemaGenerator, "get_schema", again)
    for query in ("", "?version=2", "?lang=de", "?format=yaml"):
        assert Client().get(f"/api/schema/{query}").content == yaml_text


def test_every_operation_declares_its_problems() -> None:
    for path, methods in description()["paths"].items():
        for method, operation in methods.items():
            found = {
                status
                for status, response in operation["responses"].items()
                if "application/problem+json" in response.get("content", {})
            }
            least = {"400", "401", "403", "404", "429", "503"}
            least |= set() if method == "get" else {"409", "415", "422"}
            assert least <= found, (path, method)


def test_the_documentation_needs_no_inline_code() -> None:
    answer = Client().get("/api/docs/")
    page = answer.content.decode()
    assert "<style" not in page
    assert "style=" not in page
    assert page.count("<script") == page.count("<script src=")
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert Client().get("/api/docs/?script=").status_code == 200


def test_the_type_of_every_problem_is_explained(here: World) -> None:
    caller = Caller(here.people["member"])
    page = Client().get("/api/problems").content.decode()
    for answer in (
        Client().get("/api/v1/me/"),
        caller.get("requests/?x=1"),
        caller.get("requests/999999/"),
        caller.delete("me/"),
        caller.post("requests/", "["),
        caller.post("requests/", {"x": 1}),
        caller.post("requests/", key=None),
    ):
        problem = answer.json()
        assert set(problem) == PROBLEM
        assert problem["status"] == answer.status_code
        assert problem["title"] == TITLES[answer.status_code]
        assert problem["code"] in CODES
        path, _, anchor = problem["type"].partition("#")
        assert path == "/api/problems"
        assert f'id="{anchor}"' in page
        assert problem["request_id"] == answer["X-Request-ID"]


def test_nobody_gets_in_without_a_token_of_theirs(here: World) -> None:
    client = Client()
    good = Caller(here.people["member"]).headers["Authorization"]
    for header in (
        "",
        "Bearer",
        "Bearer qm_nothing",
        f"Basic {good[7:]}",
        good[:-1],
        f"{good} x",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
    ):
        answer = client.get(
            "/api/v1/me/", headers={"Authorization": header} if header else {}
        )
        assert answer.status_code in (401, 503), header
        assert answer["Content-Type"] == "application/problem+json"
    assert client.get(f"/api/v1/me/?token={good[7:]}").status_code == 401


def test_a_session_is_no_token(here: World) -> None:
    client = Client()
    client.force_login(here.people["platform_lead"])
    assert client.get("/api/v1/me/").status_code == 401
    assert (
        client.post(
            "/api/v1/requests/", {}, content_type="application/json"
        ).status_code
        == 401
    )


def test_a_token_ends_when_it_is_revoked_expired_or_its_person_is_blocked(
    here: World,
) -> None:
    user = here.people["member"]
    revoked, expired, blocked = (
        Caller(user),
        Caller(user),
        Caller(here.people["auditor"]),
    )
    tokens = list(ApiToken.objects.filter(user=user).order_by("pk"))
    assert revoked.delete(f"tokens/{tokens[0].prefix}/").status_code == 204
    ApiToken.objects.filter(pk=tokens[1].pk).update(
        created_at="2020-01-01T00:00Z", expires_at="2020-01-02T00:00Z"
    )
    type(user).objects.filter(pk=here.people["auditor"].pk).update(is_active=False)
    for caller in (revoked, expired, blocked):
        assert caller.get("me/").status_code == 401


def test_a_read_token_changes_nothing(here: World) -> None:
    caller = Caller(here.people["platform_lead"], scope="read")
    assert caller.get("me/").status_code == 200
    before = Event.objects.count()
    answer = caller.post("clusters/", {"name": "x"})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert Event.objects.count() == before + 1


@pytest.mark.slow
def test_anothers_things_are_like_missing_ones(here: World) -> None:
    caller, other = Caller(here.people["member"]), here.other
    pairs = [
        (f"requests/{other.waiting.pk}/", "requests/999999999/"),
        (f"requests/{other.waiting.pk}/", f"requests/{10**30}/"),
        (f"tenancies/{other.tenancy.pk}/", "tenancies/999999999/"),
        (f"allocations/{other.allocation.pk}/", "allocations/999999999/"),
        ("teams/speech/", "teams/nobody/"),
        ("teams/speech/members/", "teams/nobody/members/"),
        ("teams/speech/budgets/", "teams/nobody/budgets/"),
        ("teams/speech/onboarding/", "teams/nobody/onboarding/"),
    ]
    for theirs, missing in pairs:
        first, second = caller.get(theirs), caller.get(missing)
        assert (first.status_code, plain(first)) == (404, plain(second)), theirs
    bodies = {
        "approve": {},
        "reject": {"reason": "x"},
        "ask": {"text": "x"},
        "withdraw": {},
        "answer": {"text": "x"},
    }
    for path, body in bodies.items():
        first = caller.post(
            f"requests/{other.waiting.pk}/{path}/", body, **{"If-Match": '"1"'}
        )
        second = caller.post(f"requests/999999999/{path}/", body, **{"If-Match": '"1"'})
        assert (first.status_code, plain(first)) == (404, plain(second)), path


def test_an_address_that_is_none_is_a_problem_too(here: World) -> None:
    for path in (
        "/api/v2/",
        "/api/v1/people/",
        "/api/v1/requests/x/",
        "/api/x",
    ):
        for client in (Client(), Caller(here.people["member"]).client):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (
                path
            )


def test_methods_that_an_address_does_not_take_are_405_whatever_a_header_says(
    here: World,
) -> None:
    caller = Caller(here.people["member"])
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        answer = caller.send(method, f"requests/{here.own.waiting.pk}/")
        assert (answer.status_code, answer.json()["code"]) == (
            405,
            "method_not_allowed",
        ), method
        assert method not in answer["Allow"]
    headers = {"X-HTTP-Method-Override": "DELETE"}
    assert caller.post(f"requests/{here.own.waiting.pk}/", **headers).status_code == 405


def test_every_change_refused_for_want_of_a_right_leaves_one_event_that_names_who_and_why(
    here: World,
) -> None:
    caller = Caller(here.people["member"])
    before = Event.objects.count()
    refused = caller.post(
        f"requests/{here.own.waiting.pk}/approve/", {}, **{"If-Match": '"1"'}
    )
    assert Event.objects.count() == before + 1
    event = Event.objects.latest("seq")
    assert (event.actor_name, event.outcome) == ("Ada Okafor", "refused")
    assert event.details["status"] == refused.status_code == 403
    assert event.details["reason"] == refused.json()["detail"]
    assert event.request_id == refused["X-Request-ID"]
    caller.get("requests/?x=1")
    assert Event.objects.count() == before + 1


def test_the_secret_of_a_token_is_told_once(here: World) -> None:
    caller = Caller(here.people["member"])
    body = {"name": "nightly", "scope": "read", "days": 1}
    first = caller.post("tokens/", body, key="once")
    assert first.status_code == 201
    secret = first.json()["secret"]
    again = caller.post("tokens/", body, key="once")
    assert (again.status_code, again.json()["secret"]) == (201, None)
    assert (
        Client()
        .get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"})
        .status_code
        == 200
    )
    listed = json.dumps(caller.get("tokens/").json())
    assert secret not in listed
    assert first.json()["prefix"] in listed
    assert here.own.token.prefix not in listed


# These are told by forms on pages, and by workers to those who run the portal; the API refuses with none of them.
NOT_OF_THE_API = {
    # Why a run waits to be taken by its cluster, or is sent no more.
    "not_on_cluster",
    "run_parked",
    "claims",
    "secrets",
    "variables",
    "words",
    "another_cluster",
    "answer_is_old",
    "asked_just_now",
    "directory",
    "foreign",
    "kept_by_others",
    "kueue_too_old",
    "moment",
    "namespace_kept",
    "no_branch",
    "strange_directory",
    "no_kueue",
    "no_volcano",
    "not_json",
    "number",
    "pull_request_closed",
    "sent_already",
    "token_refused",
    "vanished",
    "volcano_too_old",
}


@pytest.mark.slow
def test_every_code_that_an_action_refuses_with_is_explained() -> None:
    used: set[str] = set()
    # The other codes of `workloads` name reasons for a wait, which nobody is refused with.
    of_workloads = {
        "workloads/runs",
        "workloads/service_levels",
        "workloads/template_desk",
    }
    for package in {*LAYERS, *of_workloads} - {"workloads"}:
        for file in (settings.BASE_DIR / package).rglob("*.py"):
            used |= codes_of(ast.parse(file.read_text()))
    assert len(used) > 60
    assert used - set(CODES) == NOT_OF_THE_API


def codes_of(tree: ast.AST) -> set[str]:
    """What stands as `code="…"` in calls; a remedy refuses nothing: its code says what would make an ask automatic."""
    return {
        keyword.value.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and not (isinstance(call.func, ast.Name) and call.func.id == "Remedy")
        for keyword in call.keywords
        if keyword.arg == "code"
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, str)
    }

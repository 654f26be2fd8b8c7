"""What Backstage is offered, and that an action is its call of the API in Backstage's words.

That a real Backstage understands it is shown by tests/integrations/test_backstage.py.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pytest_django import Settings

from approvals.models import Request
from audit.models import Event
from portal.backstage.operations import operations
from sandbox.backstage import SandboxBackstage
from tests import factories
from tests.backstages import BackstageCaller
from tests.world import World, world
from workloads.models import KeptLog

LIST = "/api/backstage/.backstage/actions/v1/actions"


@pytest.fixture
def here(db: None) -> World:
    return world()


@pytest.fixture
def asker(here: World, backend: SandboxBackstage) -> BackstageCaller:
    return BackstageCaller(backend, here.own.asker)


def listed() -> dict[str, Any]:
    answer = Client().get(LIST)
    assert answer.status_code == 200
    return {one["name"]: one for one in answer.json()["actions"]}


def wanted(**changes: Any) -> dict[str, Any]:
    """A small request."""
    until = (timezone.now() + timedelta(days=2)).isoformat()
    base = {
        "idempotency_key": "task-1",
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": 1,
        "purpose": "training",
        "until": until,
    }
    return {name: v for name, v in {**base, **changes}.items() if v is not None}


def error(answer: Any) -> tuple[int, str, str]:
    told = answer.json()
    assert told["response"] == {
        "statusCode": f"{answer.status_code}: {told['error']['message']}"
    }
    return answer.status_code, told["error"]["name"], told["error"]["message"]


def test_the_list_needs_neither_token_nor_database() -> None:
    assert len(listed()) == len(operations())


@pytest.mark.slow
def test_each_action_has_all_that_backstage_breaks_without() -> None:
    for name, one in listed().items():
        assert one["id"] == f"quartermaster:{name}"
        assert set(one["attributes"]) == {"readOnly", "destructive", "idempotent"}
        assert not (one["attributes"]["readOnly"] and one["attributes"]["destructive"])
        for schema in one["schema"].values():
            assert schema["type"] == "object", name
            Draft202012Validator.check_schema(schema)
            assert "$ref" not in json.dumps(schema), name


@pytest.mark.slow
def test_what_an_action_takes_is_told_by_other_actions_and_no_address() -> None:
    for name, one in listed().items():
        assert "/api/" not in json.dumps(one["schema"]["input"]), name
    team = listed()["show-budgets"]["schema"]["input"]["properties"]["team"]
    assert team["description"] == "The slug of a team of list-teams, such as vision."
    spec = listed()["create-request"]["schema"]["input"]["properties"]["spec"]
    assert spec["description"] == "The fields of the offering; see list-offerings."


def test_no_two_values_of_an_action_have_one_name() -> None:
    for name, one in operations().items():
        names = one.input_schema["properties"].keys()
        assert set(one.in_path) | one.in_query <= names, name
        assert set(one.input_schema["required"]) <= names, name
        assert one.path.count("{") == len(one.in_path) <= 1, name
        assert "" not in names, name


def test_what_changes_something_is_safe_to_repeat() -> None:
    for name, one in operations().items():
        assert one.reads or one.is_keyed or one.action.destructive, name


def test_a_request_is_made_once_however_often_its_step_runs(
    asker: BackstageCaller, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://gpus.example.com"
    before = Request.objects.count()
    given = wanted()
    answers = [asker.invoke("create-request", given).json() for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    made = answers[0]["output"]
    assert (made["state"], made["team"]["slug"]) == ("approved", "vision")
    assert made["page"] == f"https://gpus.example.com/requests/{made['id']}/"
    assert Request.objects.count() == before + 1


@pytest.mark.slow
def test_the_answer_is_what_the_list_says(asker: BackstageCaller) -> None:
    calls = {
        "create-request": wanted(),
        "list-requests": {"team": "vision", "limit": 1},
        "who-am-i": None,
        "list-offerings": {},
        "list-choices": {"offering": "gpus", "team": "vision"},
        "preview-request": wanted(idempotency_key=None),
        "list-places": {},
        "explain-work": {"team": "vision"},
    }
    for name, given in calls.items():
        answer = asker.invoke(name, given)
        assert answer.status_code == 200, (name, answer.content)
        schema = listed()[name]["schema"]["output"]
        Draft202012Validator(schema).validate(answer.json()["output"])


def test_a_value_of_the_address_reaches_it(here: World, asker: BackstageCaller) -> None:
    found = asker.invoke("list-requests", {"limit": 1, "state": "approved"}).json()
    assert [one["id"] for one in found["output"]["results"]] == [here.own.granted.pk]
    assert asker.invoke("list-allocations", {"held": True}).status_code == 200


def test_a_key_that_is_null_is_none(asker: BackstageCaller) -> None:
    given = wanted() | {"idempotency_key": None}
    assert error(asker.invoke("create-request", given))[:2] == (422, "InputError")


def test_the_next_page_is_had_by_its_cursor(
    here: World, asker: BackstageCaller
) -> None:
    first = asker.invoke("list-requests", {"limit": 1}).json()["output"]
    given = {"limit": 1, "cursor": first["next"]}
    second = asker.invoke("list-requests", given).json()["output"]
    assert first["results"][0]["id"] != second["results"][0]["id"]
    assert second["next"] is None


def test_more_values_than_an_address_can_hold_are_refused(
    asker: BackstageCaller,
) -> None:
    many = {f"value{number}": 1 for number in range(2000)}
    assert error(asker.invoke("list-requests", many))[:2] == (400, "InputError")


def test_conditions_of_a_call_are_not_those_of_the_apis(
    here: World, asker: BackstageCaller
) -> None:
    path = f"requests/{here.own.waiting.pk}/"
    asker.headers |= {"If-None-Match": asker.get(path)["ETag"]}
    answer = asker.invoke("show-request", {"request": here.own.waiting.pk})
    assert answer.status_code == 200


def test_the_sentence_of_a_refusal_reaches_whoever_waits(
    asker: BackstageCaller,
) -> None:
    status, name, message = error(asker.invoke("create-request", wanted(gpus=0)))
    assert (status, name) == (422, "InputError")
    assert message.startswith("/gpus: ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"color": "red"}, "/color"),
        ({"idempotency_key": None}, "/idempotency_key"),
        ({"idempotency_key": "two words"}, "/idempotency_key"),
        ({"idempotency_key": 7}, "/idempotency_key"),
        ({"team": 7}, "/team"),
    ],
)
def test_bad_input_changes_nothing_and_says_what_is_wrong(
    asker: BackstageCaller, given: dict[str, Any], said: str
) -> None:
    before = Request.objects.count()
    status, name, message = error(asker.invoke("create-request", wanted(**given)))
    assert (status in (400, 422), name) == (True, "InputError")
    assert said in message
    assert Request.objects.count() == before


def test_what_no_address_can_hold_is_refused_in_it(asker: BackstageCaller) -> None:
    answer = asker.invoke("list-requests", {"state": "\ud800"})
    assert error(answer)[:2] == (400, "InputError")


def test_an_unknown_name_is_refused_where_something_is_only_read(
    asker: BackstageCaller,
) -> None:
    status, _, message = error(asker.invoke("list-requests", {"color": "red"}))
    assert status == 400
    assert "color" in message


@pytest.mark.parametrize("body", ["[]", "{", '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_what_is_no_object_is_refused(asker: BackstageCaller, body: str) -> None:
    assert error(asker.invoke("list-requests", body))[:2] == (400, "InputError")


def test_a_value_that_the_address_needs_is_asked_for(asker: BackstageCaller) -> None:
    assert error(asker.invoke("show-request")) == (
        422,
        "InputError",
        "/request: This field is needed.",
    )


@pytest.mark.parametrize(
    "value",
    ["../teams", "1/../2", "%2e%2e", "", "preview", None, [1], "1?team=x", 0, "\ud800"],
)
def test_an_id_leads_to_no_other_address(asker: BackstageCaller, value: object) -> None:
    answer = asker.invoke("show-request", {"request": value})
    assert answer.status_code in (404, 405)


def test_an_id_goes_no_further_than_its_place(
    here: World, asker: BackstageCaller
) -> None:
    own = f"{here.own.waiting.pk}/comments"
    assert asker.invoke("show-request", {"request": own}).status_code == 404


def test_what_is_not_there_or_not_yours_is_not_found(
    here: World, asker: BackstageCaller
) -> None:
    for number in (here.other.waiting.pk, 10**9):
        status, name, _ = error(asker.invoke("show-request", {"request": number}))
        assert (status, name) == (404, "NotFoundError")


def test_an_action_that_is_none_is_not_found(asker: BackstageCaller) -> None:
    assert error(asker.invoke("approve-request", {})) == (
        404,
        "NotFoundError",
        "There is no such action.",
    )


def test_without_a_good_token_nothing_is_done(
    here: World, backend: SandboxBackstage
) -> None:
    for caller in (
        BackstageCaller(backend, None),
        BackstageCaller(backend, here.own.asker, aud="catalog"),
    ):
        answer = caller.invoke("create-request", wanted())
        assert error(answer)[:2] == (401, "AuthenticationError")
    nobody = BackstageCaller(backend, None)
    nobody.headers = {}
    assert error(nobody.invoke("who-am-i"))[:2] == (401, "AuthenticationError")


def test_a_session_of_a_browser_counts_for_nothing(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, None)
    caller.headers = {}
    caller.client.force_login(here.own.asker)
    before = Event.objects.count()
    assert caller.invoke("create-request", wanted()).status_code == 401
    caller.headers = {"Authorization": "Bearer none"}
    assert caller.invoke("approve-request").status_code == 404
    assert Event.objects.count() == before


def test_calls_are_counted_as_the_apis(
    asker: BackstageCaller, settings: Settings
) -> None:
    settings.RATES = settings.RATES | {"read": "2/h", "write": "1/h"}
    statuses = [asker.invoke("who-am-i").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    asker.invoke("create-request", wanted())
    answer = asker.invoke("create-request", wanted(idempotency_key="task-2"))
    status, name, message = error(answer)
    assert (status, name) == (429, "ServiceUnavailableError")
    assert f"in {answer['Retry-After']} seconds" in message


def test_a_refusal_is_in_the_audit_log_as_the_api_call_that_it_was(
    here: World, asker: BackstageCaller
) -> None:
    asker.invoke(
        "answer-question",
        {"request": here.own.waiting.pk, "idempotency_key": "task-1", "text": "So."},
    )
    event = Event.objects.latest("seq")
    assert event.actor_name == here.own.asker.name
    assert event.details["where"] == "api/v1/requests/<int:pk>/answer/"


def test_what_is_only_looked_for_leaves_no_refusal(
    asker: BackstageCaller,
) -> None:
    before = Event.objects.count()
    asker.invoke("show-request", {"request": 10**9})
    assert Event.objects.count() == before


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_an_action_is_invoked_by_post_alone(
    asker: BackstageCaller, method: str
) -> None:
    answer = asker.send(method, f"{LIST}/quartermaster:who-am-i/invoke")
    assert answer.status_code == 405


def test_the_log_of_a_run_is_read_and_never_streamed(
    asker: BackstageCaller, here: World
) -> None:
    taken = listed()["read-run-log"]["schema"]["input"]["properties"]
    assert set(taken) == {"run", "pod", "attempt", "tail", "after"}
    now, ada = timezone.now(), here.people["member"]
    run = factories.run(here.own.tenancy, ada, state="finished", ended_at=now)
    lines = "2026-11-28T10:00:00Z.0 epoch 1\n2026-11-28T10:00:01Z.0 epoch 2"
    KeptLog.objects.create(run=run, pod=f"{run.name}-0", lines=lines, kept_at=now)
    told = asker.invoke("read-run-log", {"run": run.pk, "tail": 1})
    assert told.status_code == 200, told.content
    assert [line["text"] for line in told.json()["output"]["lines"]] == ["epoch 2"]
    assert (
        asker.invoke("read-run-log", {"run": run.pk, "follow": "true"}).status_code
        == 422
    )

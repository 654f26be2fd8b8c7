"""The catalogue over the API: told with schemas and choices, changed by platform leads, and asked from."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pydantic import TypeAdapter

from approvals.models import Request
from approvals.requests.pointers import SPEC_FIELDS
from approvals.requests.serializers import AskSerializer
from catalogue import actions as offering_actions
from catalogue.models import OfferingSetting, is_by_person
from catalogue.offerings import OFFERINGS
from portal.http.problem_codes import CODES
from tests import factories
from tests.approvals.shop import SPECS
from tests.calling import Caller
from tests.scene import Scene

# What a single field is refused with; the code of the whole is another one.
OF_FIELDS = ("unknown_field", "required", "invalid")


@pytest.fixture
def ada(scene: Scene) -> Caller:
    """A member of Vision; there is a second cluster, and the first one starts notebooks."""
    factories.cluster("dev")
    factories.notebooks_on(scene.flavor.cluster)
    return Caller(scene.ada)


def ask(key: str, **changes: Any) -> dict[str, Any]:
    """An ask of an offering."""
    until = (timezone.now() + timedelta(days=2)).isoformat()
    usual = {
        "team": "vision",
        "offering": key,
        "spec": SPECS[key],
        "until": until,
        "reason": "The review on Friday needs it.",
    }
    return usual | changes


def test_it_tells_every_offering_with_the_schema_of_its_spec(ada: Caller) -> None:
    found = ada.get("offerings/").json()["results"]
    assert [row["key"] for row in found] == list(OFFERINGS)
    volume = next(row for row in found if row["key"] == "volume")
    assert (volume["gate"], volume["counted"], volume["position"]) == (
        "self_service",
        "gib",
        3,
    )
    assert volume["prices"] == {"ReadWriteOnce": "0.12", "ReadWriteMany": "0.16"}
    assert volume["spec"]["properties"]["access"]["enum"] == [
        "ReadWriteOnce",
        "ReadWriteMany",
    ]
    assert volume["after_approval"]
    assert ada.get("offerings/volume/").json() == volume


@pytest.mark.slow
@pytest.mark.parametrize("key", SPECS)
def test_every_offering_is_previewed_and_asked_for_with_one_answer(
    ada: Caller, key: str
) -> None:
    preview = ada.post("requests/preview/", ask(key)).json()
    answer = ada.post("requests/", ask(key))
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["spec"] == SPECS[key]
    assert made["evaluations"][0]["answer"] == preview["answer"]
    assert preview["formula"]
    assert [task["kind"] for task in made["tasks"]] == (
        ["set_up"]
        if is_by_person(OFFERINGS[key]) and made["state"] == "approved"
        else []
    )


@pytest.mark.parametrize(
    ("key", "spec", "pointer", "code"),
    [
        ("volume", {"gib": "100"}, "/spec/gib", "invalid"),
        ("volume", {"gib": 0}, "/spec/gib", "invalid"),
        ("volume", {"gib": True}, "/spec/gib", "invalid"),
        ("volume", {"name": "A b"}, "/spec/name", "invalid"),
        ("volume", {"size": 3}, "/spec/size", "unknown_field"),
        ("volume", {"a/b~c": 3}, "/spec/a~1b~0c", "unknown_field"),
        ("volume", {"\ud800": 3}, "/spec", "invalid"),
        ("volume", {"x" * 200: 3}, f"/spec/{'x' * 100}", "unknown_field"),
        ("volume", {"until": 3}, "/spec/until", "unknown_field"),
        ("volume", {"cluster": "dev"}, "/spec/cluster", "not_there"),
        ("volume", {"access": "All"}, "/spec/access", "invalid"),
        ("namespace", {"cluster": "training"}, "/spec/cluster", "already_there"),
        ("openai", {"region": "moon"}, "/spec/region", "no_such_region"),
        ("openai", {"model": "gpt-9"}, "/spec/model", "no_price"),
        ("cluster", {"vm_size": "Standard_None"}, "/spec/vm_size", "no_price"),
        ("training", {"gpus": 7}, "/spec/gpus", "invalid"),
        ("training", {"purpose": "x"}, "/spec/purpose", "invalid"),
        ("notebook", {"flavor": "training/none"}, "/spec/flavor", "not_there"),
    ],
)
def test_a_wrong_spec_is_refused_at_its_field(
    ada: Caller, key: str, spec: dict[str, Any], pointer: str, code: str
) -> None:
    answer = ada.post("requests/", ask(key, spec={**SPECS[key], **spec}))
    assert answer.status_code in (409, 422), answer.content
    body = answer.json()
    assert [(error["pointer"], error["code"]) for error in body["errors"]] == [
        (pointer, code)
    ], body
    assert body["code"] == ("not_taken" if code in OF_FIELDS else code)
    assert body["code"] in CODES
    assert not Request.objects.exists()


def test_the_short_form_is_refused_at_its_own_fields(ada: Caller) -> None:
    body = ask("gpus")
    short = {name: body[name] for name in ("team", "until", "reason")}
    spec = {"flavor": "training/none", "gpus": 1}
    for path in ("requests/", "requests/preview/"):
        answer = ada.post(path, short | spec).json()
        assert [each["pointer"] for each in answer["errors"]] == ["/flavor"]
        answer = ada.post(path, short | {"spec": spec}).json()
        assert [each["pointer"] for each in answer["errors"]] == ["/spec/flavor"]
        answer = ada.post(path, short | {"spec": {}}).json()
        assert pointed(answer) == {
            "/spec/flavor": "required",
            "/spec/gpus": "required",
        }


def pointed(problem: dict[str, Any]) -> dict[str, str]:
    """The code at each pointer of a refusal."""
    return {each["pointer"]: each["code"] for each in problem["errors"]}


def test_each_value_at_fault_is_named(ada: Caller) -> None:
    body = ask("volume", spec={"name": "-", "gib": "a", "colour": 1})
    assert pointed(ada.post("requests/preview/", body).json()) == {
        "/spec/name": "invalid",
        "/spec/gib": "invalid",
        "/spec/colour": "unknown_field",
        "/spec/cluster": "required",
    }
    short = {"team": "vision", "gpus": 0, "colour": 1}
    assert pointed(ada.post("requests/preview/", short).json()) == {
        "/colour": "unknown_field",
        "/gpus": "min_value",
        "/until": "required",
    }


def test_an_offering_without_its_spec_is_told_where_its_fields_go(ada: Caller) -> None:
    body = ask("volume")
    del body["spec"]
    answer = ada.post("requests/preview/", body)
    assert pointed(answer.json()) == {"/spec": "required"}


def test_no_field_of_a_spec_is_called_like_one_beside_it() -> None:
    beside = AskSerializer().fields.keys() - {"flavor", "gpus", "purpose"}
    assert not SPEC_FIELDS & beside


def test_choices_are_told_with_why_not(ada: Caller, scene: Scene) -> None:
    found = ada.get("offerings/namespace/options/?team=vision").json()["choices"]
    lines = {line["value"]: line["reason"] for line in found["cluster"]}
    assert lines == {"dev": "", "training": ""}
    assert [line["value"] for line in found["project"]] == ["main"]
    sizes = ada.get("offerings/cluster/options/?team=vision").json()["choices"][
        "vm_size"
    ]
    assert all("$" in line["label"] for line in sizes)
    assert ada.get("offerings/volume/options/?team=nobody").status_code == 404
    assert ada.get("offerings/volume/options/").status_code == 400
    assert (
        Caller(scene.mallory).get("offerings/volume/options/?team=vision").status_code
        == 404
    )


def test_platform_leads_change_it_and_nobody_else(ada: Caller, scene: Scene) -> None:
    change = {
        "enabled": False,
        "gate": "approval",
        "position": 1,
        "prices": {"ReadWriteOnce": None},
    }
    assert (
        ada.patch("offerings/volume/", change).json()["code"] == "not_a_platform_lead"
    )
    assert not OfferingSetting.objects.exists()
    lead = Caller(scene.priya)
    told = lead.patch("offerings/volume/", change).json()
    assert (told["enabled"], told["gate"], told["position"]) == (False, "approval", 1)
    assert told["prices"] == {"ReadWriteMany": "0.16"}
    assert ada.get("offerings/volume/").status_code == 404
    assert "volume" not in [
        row["key"] for row in ada.get("offerings/").json()["results"]
    ]
    assert "volume" in [row["key"] for row in lead.get("offerings/").json()["results"]]
    refused = ada.post("requests/", ask("volume"))
    assert (refused.status_code, refused.json()["code"]) == (409, "offering_off")


@pytest.mark.parametrize(
    "body",
    [
        {"enabled": "yes"},
        {"gate": "nobody"},
        {"position": 0},
        {"position": 10},
        {"prices": {"x": "1"}},
        {"prices": {"ReadWriteOnce": 1}},
        {"prices": {"ReadWriteOnce": "-1"}},
        {"prices": []},
        {"name": "x"},
    ],
)
def test_what_does_not_fit_changes_nothing(
    ada: Caller, scene: Scene, body: dict[str, Any]
) -> None:
    assert Caller(scene.priya).patch("offerings/volume/", body).status_code == 422
    assert not OfferingSetting.objects.filter(enabled=False).exists()


def test_the_schema_is_one_that_a_form_can_be_made_from(ada: Caller) -> None:
    for row in ada.get("offerings/").json()["results"]:
        TypeAdapter(dict[str, Any]).validate_python(row["spec"])
        assert row["spec"]["additionalProperties"] is False
        assert all("title" in field for field in row["spec"]["properties"].values())


def test_it_asks_the_database_as_often_for_one_price_as_for_many(
    ada: Caller, scene: Scene, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(6):
        ada.get("offerings/")
    offering_actions.move("volume", by=scene.priya, up=True)
    with django_assert_max_num_queries(6):
        ada.get("offerings/")

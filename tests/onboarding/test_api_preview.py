"""What bringing a team on board would make and be answered, before it is sent."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Team
from audit.models import Event
from fleet.models import Flavor
from sandbox.world import group_id
from tests import factories
from tests.calling import Caller
from tests.onboarding.test_api_onboarding import body, person
from tests.sandbox.entra.running import Running

pytestmark = pytest.mark.django_db
PREVIEW = "teams/new/preview/"


@pytest.fixture
def ada(directory: Running) -> Caller:
    """A member of the climate team's group, and GPUs to ask for."""
    factories.flavor(factories.cluster("training-eastus"), "a100")
    return Caller(person(1))


def test_it_names_what_the_call_then_makes(ada: Caller) -> None:
    said = body()
    plan = ada.post(PREVIEW, said).json()
    made = ada.post("teams/", said).json()
    assert plan["slug"] == made["team"]["slug"]
    assert plan["namespace"] == made["tenancy"]["namespace"]
    assert plan["entra_group_name"] == made["team"]["entra_group_name"]
    planned = {(one["kind"], one["name"]) for one in plan["objects"]}
    assert ("Namespace", made["tenancy"]["namespace"]) in planned


def test_the_policys_answer_is_the_one_that_the_first_ask_then_gets(
    ada: Caller,
) -> None:
    said = body()
    start = ada.post(PREVIEW, said).json()["start"]
    made = ada.post("teams/", said).json()["request"]
    stored = made["evaluations"][0]["answer"]
    assert start["answer"]["outcome"] == stored["outcome"] == "automatic"
    assert start["answer"]["sentence"] == stored["sentence"]
    assert start["quota"] == {"before": 0, "after": 2}


def test_a_large_start_names_who_decides_before_a_reason_is_written(
    ada: Caller,
) -> None:
    start = body()["start"] | {"gpus": 9}
    plan = ada.post(PREVIEW, body(start=start)).json()["start"]
    assert plan["answer"]["outcome"] == "people"
    assert plan["answer"]["steps"]
    assert plan["remedies"]


def test_without_gpus_there_is_no_answer_to_tell(ada: Caller) -> None:
    assert ada.post(PREVIEW, body(start=None)).json()["start"] is None


def test_who_is_in_the_group_is_counted(ada: Caller) -> None:
    plan = ada.post(PREVIEW, body()).json()
    made = ada.post("teams/", body()).json()
    members = ada.get(f"teams/{made['team']['slug']}/members/").json()
    assert plan["members"] >= len(members["results"]) > 0


def test_a_cost_centre_that_nobody_has_confirmed_is_told(ada: Caller) -> None:
    assert ada.post(PREVIEW, body()).json()["sentences"] == []
    [told] = ada.post(PREVIEW, body(cost_centre="CC-NEW")).json()["sentences"]
    assert told.startswith("Nobody has confirmed CC-NEW yet")


def test_it_stores_nothing(ada: Caller) -> None:
    events = Event.objects.count()
    assert ada.post(PREVIEW, body()).status_code == 200
    assert not Team.objects.exists()
    assert Event.objects.count() == events


def test_a_token_that_reads_may_look(ada: Caller) -> None:
    assert Caller(person(1), "read").post(PREVIEW, body()).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"entra_group": group_id(3)},
        {"entra_group": "climate-team"},
        {"name": "!!!"},
        {"name": "Vision"},
        {"project": "-"},
        {"cost_centre": "a b"},
        {"cluster": "nowhere"},
        {"environment": "prod"},
        {"cluster": "closed"},
    ],
    ids=str,
)
def test_it_refuses_what_the_call_refuses(ada: Caller, changed: dict[str, Any]) -> None:
    factories.team("Vision", slug="vision")
    factories.cluster("closed", enabled=False)
    said = body(start=None, **changed)
    seen, sent = ada.post(PREVIEW, said), ada.post("teams/", said)
    assert seen.status_code == sent.status_code >= 400
    assert seen.json()["code"] == sent.json()["code"]
    assert seen.json()["errors"] == sent.json()["errors"]


def test_the_name_of_a_team_that_was_renamed_is_taken(ada: Caller) -> None:
    factories.team("Climate", slug="vision")
    seen = ada.post(PREVIEW, body())
    assert (seen.status_code, seen.json()["code"]) == (409, "name_taken")


def test_a_directory_that_does_not_answer_is_503(
    ada: Caller, directory: Running
) -> None:
    directory.admin("POST", "/sandbox/faults", path="/v1.0", status=503)
    answer = ada.post(PREVIEW, body())
    assert (answer.status_code, answer.json()["code"]) == (503, "outside_system_away")


def test_an_end_in_the_past_is_refused_at_its_field(ada: Caller) -> None:
    past = (timezone.now() - timedelta(days=1)).isoformat()
    said = body(start=body()["start"] | {"until": past})
    seen, sent = ada.post(PREVIEW, said), ada.post("teams/", said)
    assert (seen.status_code, seen.json()["errors"]) == (
        sent.status_code,
        sent.json()["errors"],
    )


def test_what_is_wrong_about_the_start_is_named_inside_it(ada: Caller) -> None:
    past = (timezone.now() - timedelta(days=1)).isoformat()
    said = body(start=body()["start"] | {"until": past})
    for path in (PREVIEW, "teams/"):
        [error] = ada.post(path, said).json()["errors"]
        assert error["pointer"] == "/start/until", path


def test_what_is_booked_meanwhile_is_not_free_for_the_first_gpus(ada: Caller) -> None:
    Flavor.objects.update(gpus_total=3)
    other, now = factories.team(), timezone.now()
    factories.tenancy(other, Flavor.objects.get().cluster)
    booked = {
        "team": other.slug,
        "flavor": "training-eastus/a100",
        "gpus": 2,
        "starts_at": (now + timedelta(days=1)).isoformat(),
        "until": (now + timedelta(days=2)).isoformat(),
        "purpose": "training",
    }
    by = Caller(factories.person(teams=[other]))
    assert by.post("requests/", booked).json()["state"] == "approved"
    reason = {"reason": "For the review of the model."}
    said = body(start=body()["start"] | reason)
    before = ada.post(PREVIEW, said).json()["start"]["answer"]
    made = ada.post("teams/", said).json()["request"]["evaluations"][0]["answer"]
    assert made["outcome"] == "people"
    assert before["outcome"] == made["outcome"]
    assert before["sentence"] == made["sentence"]

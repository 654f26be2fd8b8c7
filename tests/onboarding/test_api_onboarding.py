"""A team on board in one call."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.actions import take_over
from accounts.directory.client import graph
from accounts.models import Team, User
from connectors.entra import Claims
from onboarding.models import Onboarding
from sandbox.world import group_id, person_id
from tests import factories
from tests.calling import Caller
from tests.sandbox.entra.running import Running

pytestmark = pytest.mark.django_db


def person(number: int) -> User:
    """A sample person who has signed in."""
    claims = Claims(
        oid=person_id(number), tid=str(factories.TENANT), name=f"Person {number}"
    )
    return take_over(claims, groups=graph().groups_of(claims.oid), now=timezone.now())


@pytest.fixture
def ada(directory: Running) -> Caller:
    """A member of the climate team's group, and something to ask for."""
    factories.flavor(factories.cluster("training-eastus"), "a100")
    return Caller(person(1))


def body(**changed: Any) -> dict[str, Any]:
    """A team with the GPUs it starts with."""
    until = (timezone.now() + timedelta(days=3)).isoformat()
    usual = {
        "name": "Climate",
        "entra_group": group_id(9),
        "cost_centre": "CC-9",
        "project": "models",
        "environment": "dev",
        "cluster": "training-eastus",
        "start": {"flavor": "a100", "gpus": 2, "until": until, "purpose": "training"},
    }
    return usual | changed


@pytest.mark.slow
def test_one_call_stores_team_tenancy_and_first_request(ada: Caller) -> None:
    answer = ada.post("teams/", body())
    assert answer.status_code == 201, answer.content
    said = answer.json()
    assert answer["Location"] == "/api/v1/teams/climate/"
    assert (said["team"]["slug"], said["team"]["projects"]) == ("climate", ["models"])
    assert said["request"]["approved_count"] == 2
    assert said["tenancy"]["ready"]["reason"] == "NotLookedYet"
    assert said["tenancy"]["generation"] == 2
    assert said["tenancy"]["quotas"] == [{"name": "a100", "gpus": 2, "borrow": 0}]
    assert ada.get("teams/climate/onboarding/").json()["seconds"] is None
    assert ada.get("teams/climate/members/").json()["results"][0]["part"] == "lead"


def test_a_team_may_start_without_gpus(ada: Caller) -> None:
    assert ada.post("teams/", body(start=None)).json()["request"] is None


def test_the_call_again_gives_the_same_answer(ada: Caller) -> None:
    said = body()
    first, again = (
        ada.post("teams/", said, key="one"),
        ada.post("teams/", said, key="one"),
    )
    assert (again.status_code, again.json()) == (201, first.json())
    assert ada.post("teams/", said).json()["code"] == "group_taken"


@pytest.mark.slow
def test_what_cannot_be_is_refused_at_its_field_and_leaves_nothing(ada: Caller) -> None:
    start = body()["start"]
    wrong: list[tuple[dict[str, Any], int, str]] = [
        ({"entra_group": group_id(3)}, 422, "/entra_group"),
        ({"entra_group": "climate-team"}, 422, "/entra_group"),
        ({"entra_group": "00000000-0000-4000-9000-999999999999"}, 422, "/entra_group"),
        ({"name": "!!!"}, 422, "/name"),
        ({"project": "-"}, 422, "/project"),
        ({"cost_centre": "a b"}, 422, "/cost_centre"),
        ({"cluster": "nowhere"}, 422, "/cluster"),
        ({"environment": "prod"}, 422, "/environment"),
        ({"start": start | {"flavor": "none"}}, 422, "/start/flavor"),
        ({"start": start | {"gpus": 0}}, 422, "/start/gpus"),
        ({"start": start | {"x": 1}}, 422, "/start/x"),
        (
            {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
            422,
            "/labels",
        ),
    ]
    for changed, status, pointer in wrong:
        answer = ada.post("teams/", body(**changed))
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (
            status,
            pointer,
        ), answer.content
    assert not Team.objects.exists()


@pytest.mark.slow
def test_the_groups_to_bring_say_why_not_the_others(ada: Caller) -> None:
    rows = {
        row["label"]: row
        for row in ada.get("directory/groups/?q=climate").json()["results"]
    }
    assert (rows["climate-team"]["value"], rows["climate-team"]["disabled"]) == (
        group_id(9),
        False,
    )
    ada.post("teams/", body())
    taken = ada.get("directory/groups/?q=climate").json()["results"][0]
    assert taken["disabled"]
    assert "Climate" in taken["reason"]
    assert (
        ada.get("directory/groups/?q=speech").json()["results"][0]["reason"]
        == "You are not a member of it."
    )


def test_a_directory_that_does_not_answer_is_503_and_leaves_nothing(
    ada: Caller, directory: Running
) -> None:
    directory.admin("POST", "/sandbox/faults", path="/v1.0", status=503)
    answer = ada.post("teams/", body())
    assert (answer.status_code, answer.json()["code"]) == (503, "outside_system_away")
    assert int(answer["Retry-After"]) > 0
    assert not Team.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_call_many_times_at_once_makes_one_team(ada: Caller) -> None:
    said = body()

    def send(_: int) -> tuple[int, str]:
        try:
            answer = ada.post("teams/", said, key="one")
            return answer.status_code, answer.json()["team"]["slug"]
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(send, range(6))) == {(201, "climate")}
    assert Onboarding.objects.count() == 1

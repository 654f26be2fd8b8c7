"""Places on clusters over the API: what is wanted, what was seen."""

from datetime import timedelta

import pytest
from django.utils import timezone

from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


def test_a_place_tells_its_generations_conditions_and_objects(here: World) -> None:
    ada = Caller(here.people["member"])
    path = f"tenancies/{here.own.tenancy.pk}/"
    before = ada.get(path).json()
    assert (before["is_settled"], before["ready"]["status"], before["objects"]) == (
        False,
        "Unknown",
        [],
    )
    factories.make_true(here.own.tenancy)
    after = ada.get(path).json()
    assert after["is_settled"]
    assert after["observed_generation"] == after["generation"] == before["generation"]
    assert [condition["type"] for condition in after["conditions"]] == ["Ready"]
    assert {seen["state"] for seen in after["objects"]} == {"true"}
    assert after["quotas"] == [{"name": "a100", "gpus": 1, "borrow": 0}]


def test_a_failed_object_is_named_with_its_reason(here: World) -> None:
    factories.make_true(here.own.tenancy, failed="ResourceQuota", message="forbidden")
    body = Caller(here.people["member"]).get(f"tenancies/{here.own.tenancy.pk}/").json()
    assert (
        body["ready"]["status"],
        body["ready"]["reason"],
        body["ready"]["message"],
    ) == (
        "False",
        "Refused",
        "forbidden",
    )
    failed = [seen for seen in body["objects"] if seen["state"] == "failed"]
    assert [(seen["kind"], seen["message"]) for seen in failed] == [
        ("ResourceQuota", "forbidden")
    ]


def test_a_list_holds_ones_own_places_and_is_short(here: World) -> None:
    rows = Caller(here.people["member"]).get("tenancies/").json()["results"]
    assert [row["id"] for row in rows] == [here.own.tenancy.pk]
    assert "objects" not in rows[0]
    lead = Caller(here.people["platform_lead"])
    assert [
        row["team"]["slug"]
        for row in lead.get("tenancies/?team=speech").json()["results"]
    ] == ["speech"]
    assert lead.get("tenancies/?cluster=nowhere").json()["results"] == []


def test_looking_again_is_for_the_team_and_platform_leads(here: World) -> None:
    path = f"tenancies/{here.own.tenancy.pk}/look-again/"
    later = timezone.now() + timedelta(hours=1)
    Tenancy.objects.update(requeue_at=later, attempts=4)
    assert Caller(here.people["auditor"]).post(path).json()["code"] == "not_of_the_team"
    for _ in range(2):
        assert Caller(here.people["member"]).post(path, key=None).status_code == 202
    found = Tenancy.objects.get(pk=here.own.tenancy.pk)
    assert (found.requeue_at < later, found.attempts) == (True, 0)

"""A team's leaving over the API: the same actions as on its pages, with an ETag for what was seen."""

from typing import Any

import pytest

from fleet.models import Environment
from offboarding.models import Departure
from offboarding.notices import what
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.onboarding.parting import Parting, parting
from tests.provisioning.conftest import Place

BODY = {
    "team": "vision",
    "clusters": ["training"],
    "reason": "The project is over.",
    "retention_days": 7,
}


@pytest.fixture
def vision(place: Place) -> Parting:
    """The team on its cluster."""
    return parting(place)


def asked(vision: Parting, **changes: Any) -> Any:
    return Caller(vision.ada).post("departures/", BODY | changes)


@pytest.mark.slow
def test_preview_ask_confirm_and_restore(vision: Parting) -> None:
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, now=vision.place.time
    )
    ada, priya = Caller(vision.ada), Caller(vision.priya)
    assert ada.get("departures/preview/?team=vision&cluster=nope").status_code == 404
    shown = ada.get("departures/preview/?team=vision").json()
    assert [claim["name"] for claim in shown["places"][0]["contents"]["claims"]] == [
        "datasets"
    ]
    assert (shown["gpus"], shown["members"], len(shown["stays"])) == (
        1,
        ["Ada Okafor"],
        4,
    )
    answer = asked(vision)
    found = answer.json()
    assert (
        answer.status_code,
        found["state"],
        found["clusters"],
        found["is_whole"],
    ) == (
        201,
        "asked",
        ["training"],
        False,
    )
    where = f"departures/{found['id']}/"
    place = f"tenancies/{vision.place.tenancy.pk}/protection/"
    assert priya.put(place, {"is_protected": False}).json() == {"is_protected": False}
    etag = priya.get(f"{where}content/").headers["ETag"]
    confirmed = priya.post(f"{where}confirm/", {"name": "Vision"}, **{"If-Match": etag})
    assert (confirmed.status_code, confirmed.json()["confirmed_by"]["name"]) == (
        200,
        "Priya Raman",
    )
    assert [step["phase"] for step in confirmed.json()["steps"]][:2] == ["past", "past"]
    restored = priya.post(f"{where}restore/")
    assert restored.json()["state"] == "restored"
    assert Tenancy.objects.get(pk=vision.place.tenancy.pk).is_here


def test_confirming_says_what_was_seen(vision: Parting) -> None:
    where = f"departures/{asked(vision).json()['id']}/"
    vision.unprotect()
    priya = Caller(vision.priya)
    etag = priya.get(where).headers["ETag"]
    assert priya.post(f"{where}confirm/", {"name": "Vision"}).status_code == 428
    assert (
        priya.post(
            f"{where}confirm/", {"name": "Vision"}, **{"If-Match": "*"}
        ).status_code
        == 428
    )
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, now=vision.place.time
    )
    assert (
        priya.post(
            f"{where}confirm/", {"name": "Vision"}, **{"If-Match": etag}
        ).status_code
        == 412
    )
    assert Departure.objects.get().confirmed_at is None


def test_the_same_call_again_asks_once(vision: Parting) -> None:
    ada = Caller(vision.ada)
    first = ada.post("departures/", BODY, key="one").json()
    assert ada.post("departures/", BODY, key="one").json() == first
    assert Departure.objects.count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"clusters": ["nowhere"]}, 422, "no_such_place"),
        ({"clusters": []}, 422, None),
        ({"reason": "x"}, 422, "reason_needed"),
        ({"retention_days": 400}, 422, None),
        ({"surprise": 1}, 422, None),
    ],
)
def test_what_makes_no_sense_is_refused(
    vision: Parting, changes: dict[str, Any], status: int, code: str | None
) -> None:
    answer = asked(vision, **changes)
    assert answer.status_code == status
    assert code is None or answer.json()["code"] == code


def test_another_teams_departure_is_like_a_missing_one(vision: Parting) -> None:
    where = f"departures/{asked(vision).json()['id']}/"
    mallory = Caller(vision.mallory)
    for path in (where, f"{where}content/", f"{where}export/"):
        assert mallory.get(path).status_code == 404
    assert mallory.post(f"{where}withdraw/").status_code == 404
    assert mallory.get("departures/").json()["results"] == []


def test_members_do_not_take_the_protection_off(vision: Parting) -> None:
    answer = Caller(vision.ada).put(
        f"tenancies/{vision.place.tenancy.pk}/protection/", {"is_protected": False}
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "not_a_platform_lead")


@pytest.mark.slow
def test_it_is_taken_back_and_exported(vision: Parting) -> None:
    where = f"departures/{asked(vision).json()['id']}/"
    ada = Caller(vision.ada)
    ada.get(f"{where}content/")
    assert [claim["size"] for claim in ada.get(f"{where}export/").json()["claims"]] == [
        "100Gi"
    ]
    assert ada.post(f"{where}withdraw/").json()["state"] == "withdrawn"


@pytest.mark.slow
def test_who_leaves_the_platform_leaves_the_clusters_of_now(vision: Parting) -> None:
    ada, whole = Caller(vision.ada), {"team": "vision", "reason": "It is over."}
    made = ada.post("departures/", whole).json()
    assert (made["clusters"], made["needs_second"]) == (["training"], False)
    elsewhere = factories.cluster("elsewhere")
    team = vision.tenancy.team
    factories.tenancy(team, elsewhere, environment=Environment.PRODUCTION)
    came = factories.tenancy(team, elsewhere)
    factories.allocation(vision.ada, came, factories.flavor(elsewhere))
    found = ada.get(f"departures/{made['id']}/").json()
    assert (found["clusters"], found["needs_second"]) == (
        ["elsewhere", "training"],
        True,
    )
    [listed] = ada.get("departures/").json()["results"]
    assert listed["clusters"] == ["elsewhere", "training"]
    taken = ada.get(f"departures/{made['id']}/export/").json()["holdings"]
    assert [one["cluster"] for one in taken] == ["elsewhere"]
    ada.post(f"departures/{made['id']}/withdraw/")
    found = ada.get(f"departures/{made['id']}/").json()
    assert found["clusters"] == ["training"]


def test_a_cluster_that_is_left_with_two_namespaces_is_named_once(
    vision: Parting,
) -> None:
    tenancy = vision.tenancy
    factories.tenancy(tenancy.team, tenancy.cluster, environment=Environment.PRODUCTION)
    found = asked(vision).json()
    assert found["clusters"] == ["training"]
    departure = Departure.objects.get(pk=found["id"])
    assert what(departure) == tenancy.cluster.title


def test_a_list_takes_the_same_queries_however_long(
    vision: Parting, django_assert_num_queries: Any
) -> None:
    for number in range(6):
        team = factories.team(f"Team {number} of many")
        tenancy = factories.tenancy(team, vision.place.cluster)
        found = Departure.objects.create(
            team=team,
            is_whole=True,
            leaves_at=vision.place.time,
            hold=False,
            retention_days=1,
            reason="Over.",
            needs_second=False,
            asked_by=vision.ada,
            asked_at=vision.place.time,
        )
        found.places.create(tenancy=tenancy)
    lead = Caller(vision.priya)
    lead.get("departures/")
    with django_assert_num_queries(6, exact=False):
        assert len(lead.get("departures/").json()["results"]) == 6

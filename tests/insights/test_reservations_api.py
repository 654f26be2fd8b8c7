"""Capacity reservations over the API: lists, one with its use and cost, machines given back, tried again, orphans."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiToken
from accounts.roles import Role
from allocations.models import Allocation
from capacity.models import Orphan, Reservation
from provisioning.clusters.installation import mark
from tests import factories
from tests.calling import Caller
from tests.capacity.connected import Site
from tests.capacity.orphan_attacks import orphan
from tests.scene import Scene, scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(db: None) -> Scene:
    """Ada's team, without Azure."""
    return scene()


def numbers(answer: Any) -> list[int]:
    """The ids of a list."""
    assert answer.status_code == 200, answer.content
    return [one["id"] for one in answer.json()["results"]]


def queries(caller: Caller, path: str) -> int:
    """How many queries a call takes."""
    with CaptureQueriesContext(connection) as seen:
        assert caller.get(path).status_code == 200
    return len(seen)


def test_each_sees_their_teams_ones_and_another_teams_is_like_a_missing_one(
    team: Scene,
) -> None:
    own, other = (
        factories.reservation(team.team),
        factories.reservation(factories.team("Speech")),
    )
    ada, sam = Caller(team.ada), Caller(factories.person("Sam Achebe", Role.AUDITOR))
    assert numbers(ada.get("reservations/")) == [own.pk]
    assert numbers(sam.get("reservations/")) == [other.pk, own.pk]
    assert numbers(Caller(team.mallory).get("reservations/")) == []
    theirs, missing = (ada.get(f"reservations/{pk}/") for pk in (other.pk, 10**9))
    assert (theirs.status_code, missing.status_code) == (404, 404)
    assert theirs.json()["code"] == missing.json()["code"]


def test_a_list_is_narrowed_by_team_and_state_and_goes_on_by_a_cursor(
    team: Scene,
) -> None:
    rows = [factories.reservation(team.team) for _ in range(3)]
    gone = factories.reservation(
        factories.team("Speech"),
        machines=0,
        state="released",
        released_at=timezone.now(),
    )
    priya = Caller(team.priya)
    assert numbers(priya.get("reservations/?state=released")) == [gone.pk]
    assert numbers(priya.get("reservations/?team=vision")) == [
        one.pk for one in reversed(rows)
    ]
    first = priya.get("reservations/?team=vision&limit=2")
    assert numbers(priya.get(first.json()["next"].partition("/api/v1/")[2])) == [
        rows[0].pk
    ]


@pytest.mark.parametrize(
    "query", ["?state=any", "?colour=red", "?state=reserved&state=pending", "?limit=0"]
)
def test_what_is_no_filter_is_refused(team: Scene, query: str) -> None:
    assert Caller(team.ada).get(f"reservations/{query}").status_code == 400


def test_one_comes_with_its_use_cost_advice_grants_and_names(team: Scene) -> None:
    row = factories.reservation(team.team, machines=4, used=1, flavor=team.flavor)
    factories.reserved_days(row, [2, 1, 2])
    grant = factories.machines_of(row, team.ada, count=4)
    said = Caller(team.ada).get(f"reservations/{row.pk}/").json()
    assert (said["machines"], said["held"], said["used"], said["idle"]) == (4, 4, 1, 3)
    assert said["sentence"] == "1 of 4 are in use; 3 are idle, and paid."
    assert said["advice"]["deed"] == "release"
    assert said["advice"]["machines"] == 2
    assert [(one["id"], one["machines"]) for one in said["grants"]] == [(grant.pk, 4)]
    assert said["until"] is not None
    assert [one["most"] for one in said["days"]][-3:] == [2, 1, 2]
    assert 0 < float(said["costs"]["idle_usd"]) < float(said["costs"]["usd"])
    assert said["azure"]["group"].endswith(f"-vision-{row.pk}")
    assert (said["cluster"], said["azure"]["pool"][:2]) == (
        team.flavor.cluster.name,
        "qm",
    )


@pytest.mark.slow
def test_as_many_queries_for_fifty_as_for_five(team: Scene) -> None:
    priya, counts = Caller(team.priya), []
    # Read once in a process, and written at a token's first call.
    mark()
    priya.get("reservations/")
    for more in (5, 45):
        rows = [factories.reservation(team.team) for _ in range(more)]
        for number, row in enumerate(rows):
            orphan(key=f"{more}-{number}")
            factories.machines_of(row, team.ada)
            Reservation.objects.filter(pk=row.pk).update(
                refusal="quota", refused_generation=row.generation
            )
        factories.reserved_days(rows[-1], [1] * more)
        paths = (
            "reservations/?limit=100",
            f"reservations/{rows[-1].pk}/",
            "reservations/orphans/?limit=100",
        )
        counts.append([queries(priya, path) for path in paths])
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 6, counts


@pytest.mark.slow
def test_machines_are_given_back_and_azure_gets_less(here: Site) -> None:
    grant = here.grant(3)
    here.work()
    ada = Caller(here.scene.ada)
    answer = ada.post(f"allocations/{grant.pk}/give-back/", {"machines": 2}, key="once")
    assert (answer.status_code, answer.json()["rest"]["id"]) == (200, grant.pk)
    again = ada.post(f"allocations/{grant.pk}/give-back/", {"machines": 2}, key="once")
    assert again.json() == answer.json()
    here.work()
    assert list(here.in_azure().values()) == [1]
    assert ada.post(f"allocations/{grant.pk}/give-back/", {"machines": 1}).json() == {
        "rest": None
    }
    here.work()
    assert here.in_azure() == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"machines": 4}, 409, "not_held"),
        ({"machines": 0}, 422, None),
        ({"machines": 1001}, 422, None),
        ({"machines": "1"}, 422, None),
        ({"machines": True}, 422, None),
        ({"machines": 1, "gpus": 1}, 422, None),
        ({"machines": 1, "colour": "red"}, 422, None),
        ({"gpus": 1}, 409, "no_gpus_to_give_back"),
    ],
)
def test_what_cannot_be_given_back_is_refused_and_changes_nothing(
    here: Site, body: dict[str, Any], status: int, code: str | None
) -> None:
    grant = here.grant(3)
    answer = Caller(here.scene.ada).post(f"allocations/{grant.pk}/give-back/", body)
    assert answer.status_code == status, answer.content
    if code:
        assert answer.json()["code"] == code
    grant.refresh_from_db()
    assert (grant.count, grant.ended_at) == (3, None)


def test_what_giving_machines_back_changes_is_told_and_changes_nothing(
    here: Site,
) -> None:
    grant = here.grant(3)
    Allocation.objects.update(charged_from=grant.starts_at)
    path = f"allocations/{grant.pk}/give-back/preview/"
    found = Caller(here.scene.ada).post(path, {"machines": 2}).json()
    assert (found["unit"], found["count"], found["stays"]) == ("machine", 2, 1)
    assert (found["held"], found["held_after"]) == (3, 1)
    before, after = Decimal(found["usd_per_day"]), Decimal(found["usd_per_day_after"])
    assert before == grant.usd_per_day > after > 0
    assert Decimal(found["freed_usd"]) > 0
    assert (found["in_use"], found["renewal"]) == ("", None)
    grant.refresh_from_db()
    assert (grant.count, grant.ended_at) == (3, None)


def test_giving_the_last_machines_back_says_that_the_reservation_is_released(
    here: Site,
) -> None:
    grant = here.grant(3)
    found = Caller(here.scene.ada).post(
        f"allocations/{grant.pk}/give-back/preview/", {"machines": 3}
    )
    said = found.json()["in_use"]
    assert said.startswith("Nothing stays: the portal releases the reservation")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"machines": 4}, 409, "not_held"),
        ({"machines": 1, "gpus": 1}, 422, "not_taken"),
        ({}, 409, "no_gpus_to_give_back"),
    ],
)
def test_what_cannot_go_back_is_refused_by_its_preview(
    here: Site, body: dict[str, Any], status: int, code: str
) -> None:
    grant = here.grant(3)
    answer = Caller(here.scene.ada).post(
        f"allocations/{grant.pk}/give-back/preview/", body
    )
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_gpus_of_a_pool_are_no_machines(team: Scene) -> None:
    factories.allocation(team.ada, team.tenancy, team.flavor)
    grant = Allocation.objects.get()
    answer = Caller(team.ada).post(
        f"allocations/{grant.pk}/give-back/", {"machines": 1}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "no_reservation")


def test_platform_leads_alone_have_one_tried_again(team: Scene) -> None:
    row = factories.reservation(
        team.team, parked_at=timezone.now(), message="5 tries ended."
    )
    path = f"reservations/{row.pk}/retry/"
    assert Caller(team.ada).post(path).json()["code"] == "not_a_platform_lead"
    assert Caller(team.mallory).post(path).status_code == 404
    assert Caller(team.priya, ApiToken.Scope.ASK).post(path).status_code == 403
    assert Caller(team.priya).post(path, {"x": 1}).status_code == 422
    answer = Caller(team.priya).post(path)
    assert (answer.status_code, answer.json()["is_parked"]) == (200, False)
    Reservation.objects.filter(pk=row.pk).update(state="releasing", machines=0)
    Reservation.objects.filter(pk=row.pk).update(
        state="released", released_at=timezone.now() + timedelta(seconds=1), held=0
    )
    assert Caller(team.priya).post(path).json()["code"] == "reservation_is_released"


def test_orphans_are_for_platform_leads_with_their_cost(team: Scene) -> None:
    row = orphan(vm_size="Standard_NC24ads_A100_v4", machines=2)
    theirs = orphan(kind="foreign", key="x", vm_size="Standard_Unpriced")
    for person in (team.ada, team.elena):
        assert Caller(person).get("reservations/orphans/").status_code == 403
        assert Caller(person).get(f"reservations/orphans/{row.pk}/").status_code == 403
    priya = Caller(team.priya)
    said = priya.get("reservations/orphans/").json()["results"]
    assert [(one["kind"], one["usd_per_hour"]) for one in said] == [
        ("orphaned", "7.35"),
        ("foreign", None),
    ]
    assert numbers(priya.get("reservations/orphans/?kind=foreign")) == [theirs.pk]
    assert priya.get("reservations/orphans/?kind=lost").status_code == 400


def test_a_platform_lead_releases_an_orphan_and_nothing_else(team: Scene) -> None:
    row, used = orphan(), orphan(key="used", associated=1)
    theirs = orphan(key="theirs", kind="foreign")
    priya = Caller(team.priya)
    assert (
        Caller(team.ada).post(f"reservations/orphans/{row.pk}/release/").status_code
        == 403
    )
    for other, code in ((used, "machines_use_it"), (theirs, "not_an_orphan")):
        answer = priya.post(f"reservations/orphans/{other.pk}/release/")
        assert (answer.status_code, answer.json()["code"]) == (409, code)
    answer = priya.post(f"reservations/orphans/{row.pk}/release/")
    assert (answer.status_code, answer.json()["release_asked_at"] is None) == (
        200,
        False,
    )
    assert [one.pk for one in Orphan.objects.releasing()] == [row.pk]
    assert priya.post(f"reservations/orphans/{10**9}/release/").status_code == 404

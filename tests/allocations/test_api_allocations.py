"""Holdings over the API."""

from decimal import Decimal

import pytest

from allocations.models import Allocation
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


def test_holdings_are_listed_with_what_they_cost_in_text(here: World) -> None:
    rows = (
        Caller(here.people["member"])
        .get("allocations/?held=true&team=vision")
        .json()["results"]
    )
    assert [row["id"] for row in rows] == [here.own.allocation.pk]
    assert (rows[0]["usd_per_day"], rows[0]["price_per_gpu_hour"]) == (
        "88.08",
        "3.6700",
    )
    assert rows[0]["reference"] == f"request-{here.own.granted.pk}"
    assert (
        Caller(here.people["member"]).get("allocations/?held=false").json()["results"]
        == []
    )


def test_a_part_is_given_back_and_the_rest_stays(here: World) -> None:
    asker = Caller(here.own.asker)
    Allocation.objects.filter(pk=here.own.allocation.pk).update(gpus=2)
    here.flavor.take(1)
    answer = asker.post(f"allocations/{here.own.allocation.pk}/give-back/", {"gpus": 1})
    assert answer.status_code == 200, answer.content
    assert answer.json()["rest"]["gpus"] == 1
    assert answer.json()["rest"]["id"] == here.own.allocation.pk
    [part] = [
        row
        for row in asker.get("allocations/?held=false").json()["results"]
        if row["end_reason"] == "returned"
    ]
    assert (part["gpus"], part["part_of"]) == (1, here.own.allocation.pk)


def test_more_than_is_held_is_not_given_back(here: World) -> None:
    asker = Caller(here.own.asker)
    path = f"allocations/{here.own.allocation.pk}/give-back/"
    assert asker.post(path, {"gpus": 2}).json()["code"] == "not_held"
    for gpus in (0, -1, 1.5, "1", True):
        assert asker.post(path, {"gpus": gpus}).status_code == 422
    assert Allocation.objects.get(pk=here.own.allocation.pk).ended_at is None


def test_a_preview_of_giving_back_tells_what_it_changes_and_changes_nothing(
    here: World,
) -> None:
    """As the page shows it; the auditor, who changes nothing, may see it, too."""
    Allocation.objects.filter(pk=here.own.allocation.pk).update(
        gpus=3, usd_per_hour=Decimal("11.01")
    )
    path = f"allocations/{here.own.allocation.pk}/give-back/"
    for person in (here.own.asker, here.people["auditor"]):
        answer = Caller(person, "read").post(f"{path}preview/", {"gpus": 1})
        assert answer.status_code == 200, answer.content
        found = answer.json()
        assert (found["count"], found["stays"]) == (1, 2)
        assert (found["held"], found["held_after"]) == (3, 2)
        assert (found["usd_per_day"], found["usd_per_day_after"]) == (
            "264.24",
            "176.16",
        )
        assert Decimal(found["freed_usd"]) > 0
        assert (found["notebook"], found["renewal"]) == (None, None)
    assert Allocation.objects.get(pk=here.own.allocation.pk).gpus == 3


@pytest.mark.parametrize(
    ("gpus", "status", "code"), [(4, 409, "not_held"), (0, 422, "not_taken")]
)
def test_what_cannot_be_given_back_is_refused_in_the_preview_too(
    here: World, gpus: int, status: int, code: str
) -> None:
    path = f"allocations/{here.own.allocation.pk}/give-back/preview/"
    answer = Caller(here.own.asker).post(path, {"gpus": gpus})
    assert (answer.status_code, answer.json()["code"]) == (status, code)

"""Holdings and budgets over the API."""

from typing import Any

import pytest
from django.utils import timezone

from allocations.models import Allocation, Budget
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


def test_holdings_are_listed_with_what_they_cost_in_text(here: World) -> None:
    rows = Caller(here.people["member"]).get("allocations/?held=true&team=vision").json()["results"]
    assert [row["id"] for row in rows] == [here.own.allocation.pk]
    assert (rows[0]["usd_per_day"], rows[0]["price_per_gpu_hour"]) == ("88.08", "3.6700")
    assert rows[0]["reference"] == f"request-{here.own.granted.pk}"
    assert Caller(here.people["member"]).get("allocations/?held=false").json()["results"] == []


def test_a_part_is_given_back_and_the_rest_stays(here: World) -> None:
    asker = Caller(here.own.asker)
    Allocation.objects.filter(pk=here.own.allocation.pk).update(gpus=2)
    here.flavor.take(1)
    answer = asker.post(f"allocations/{here.own.allocation.pk}/give-back/", {"gpus": 1})
    assert answer.status_code == 200, answer.content
    assert answer.json()["rest"]["gpus"] == 1
    assert asker.get(f"allocations/{here.own.allocation.pk}/").json()["end_reason"] == "replaced"


def test_more_than_is_held_is_not_given_back(here: World) -> None:
    asker = Caller(here.own.asker)
    path = f"allocations/{here.own.allocation.pk}/give-back/"
    assert asker.post(path, {"gpus": 2}).json()["code"] == "not_held"
    for gpus in (0, -1, 1.5, "1", True):
        assert asker.post(path, {"gpus": gpus}).status_code == 422
    assert Allocation.objects.get(pk=here.own.allocation.pk).ended_at is None


def test_budgets_are_read_by_the_team_and_set_by_platform_leads(here: World) -> None:
    month = f"{timezone.now():%Y-%m}"
    path = f"teams/vision/budgets/{month}/"
    seen: dict[str, Any] = Caller(here.people["member"]).get("teams/vision/budgets/").json()["results"][0]
    assert (seen["month"], seen["limit_usd"]) == (month, "12000.00")
    assert float(seen["held_usd"]) > 0
    lead = Caller(here.people["platform_lead"])
    assert lead.put(path, {"limit_usd": "20000.50"}).json()["limit_usd"] == "20000.50"
    assert lead.put(path, {"limit_usd": "1.00"}).json()["code"] == "below_what_is_held"
    for limit in ("-1", "1e5", "NaN", 20000, "1.234", "", None, "99999999999"):
        assert lead.put(path, {"limit_usd": limit}).status_code == 422, limit
    assert (
        Caller(here.people["member"]).put(path, {"limit_usd": "1.00"}).json()["code"] == "not_a_platform_lead"
    )
    assert Budget.objects.filter(team=here.own.team, limit_usd="20000.50").exists()


def test_a_month_that_is_none_is_not_there(here: World) -> None:
    lead = Caller(here.people["platform_lead"])
    for month in ("2026-13", "2026-00", "1999-01", "x", "2026-1", "２０２６-01"):
        assert lead.put(f"teams/vision/budgets/{month}/", {"limit_usd": "1.00"}).status_code == 404, month


def test_a_month_without_a_budget_shows_the_usual_one(here: World) -> None:
    rows = Caller(here.people["outsider"]).get("teams/robotics/budgets/").json()["results"]
    assert [(row["month"], row["held_usd"], row["left_usd"]) for row in rows] == [
        (f"{timezone.now():%Y-%m}", "0.00", "12000.00")
    ]

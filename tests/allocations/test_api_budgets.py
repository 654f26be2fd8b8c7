"""Budgets over the API: months, limits, where the current one leads, and the ledger behind them."""

from typing import Any

import pytest
from django.utils import timezone

from allocations.models import Budget, LedgerEntry
from tests import factories
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


@pytest.fixture
def lead(here: World) -> Caller:
    """A platform lead."""
    return Caller(here.people["platform_lead"])


@pytest.fixture
def path() -> str:
    """This month of Vision."""
    return f"teams/vision/budgets/{timezone.now():%Y-%m}/"


def of_month(caller: Caller, month: str) -> dict[str, Any]:
    """Vision's budget of a month; near its end what the team holds reaches into the next, which has one as well."""
    rows = caller.get("teams/vision/budgets/").json()["results"]
    months = [row["month"] for row in rows]
    assert months == sorted(months, reverse=True)
    found: dict[str, Any] = rows[months.index(month)]
    return found


def test_budgets_are_read_by_the_team_and_set_by_platform_leads(here: World) -> None:
    month = f"{timezone.now():%Y-%m}"
    path = f"teams/vision/budgets/{month}/"
    seen = of_month(Caller(here.people["member"]), month)
    assert (seen["month"], seen["limit_usd"]) == (month, "12000.00")
    assert float(seen["held_usd"]) > 0
    lead = Caller(here.people["platform_lead"])
    assert lead.put(path, {"limit_usd": "20000.50"}).json()["limit_usd"] == "20000.50"
    assert lead.put(path, {"limit_usd": "1.00"}).json()["code"] == "below_what_is_held"
    for limit in ("-1", "1e5", "NaN", 20000, "1.234", "", None, "99999999999"):
        assert lead.put(path, {"limit_usd": limit}).status_code == 422, limit
    assert (
        Caller(here.people["member"]).put(path, {"limit_usd": "1.00"}).json()["code"]
        == "not_a_platform_lead"
    )
    assert Budget.objects.filter(team=here.own.team, limit_usd="20000.50").exists()


def test_a_month_that_is_none_is_not_there(here: World) -> None:
    lead = Caller(here.people["platform_lead"])
    for month in ("2026-13", "2026-00", "1999-01", "x", "2026-1", "２０２６-01"):
        assert (
            lead.put(
                f"teams/vision/budgets/{month}/", {"limit_usd": "1.00"}
            ).status_code
            == 404
        ), month


def test_limits_are_set_for_this_month_and_the_next_ones_only(lead: Caller) -> None:
    for month in ("2062-11", "2020-01"):
        refused = lead.put(f"teams/vision/budgets/{month}/", {"limit_usd": "1.00"})
        assert (refused.status_code, refused.json()["code"]) == (422, "month_not_open")
    assert not Budget.objects.filter(limit_usd=1).exists()


def test_a_month_without_a_budget_shows_the_usual_one(here: World) -> None:
    rows = (
        Caller(here.people["outsider"]).get("teams/robotics/budgets/").json()["results"]
    )
    assert [(row["month"], row["held_usd"], row["left_usd"]) for row in rows] == [
        (f"{timezone.now():%Y-%m}", "0.00", "12000.00")
    ]


def test_limits_are_set_one_by_one_or_together(lead: Caller, path: str) -> None:
    first = lead.put(path, {"gpu_hours_limit": "5000.00", "soft_percent": 60}).json()
    assert (first["limit_usd"], first["gpu_hours_limit"], first["soft_percent"]) == (
        "12000.00",
        "5000.00",
        60,
    )
    assert first["left_gpu_hours"] == f"{5000 - float(first['held_gpu_hours']):.2f}"
    again = lead.put(path, {"limit_usd": "9000.00", "gpu_hours_limit": None}).json()
    assert (again["limit_usd"], again["gpu_hours_limit"], again["left_gpu_hours"]) == (
        "9000.00",
        None,
        None,
    )
    assert again["soft_percent"] == 60


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"soft_percent": 0},
        {"soft_percent": 101},
        {"soft_percent": "60"},
        {"soft_percent": None},
        {"gpu_hours_limit": 5},
        {"gpu_hours_limit": "-1"},
        {"limit_usd": "1.00", "hard_percent": 1},
    ],
)
def test_what_is_no_limit_is_refused(
    lead: Caller, path: str, body: dict[str, Any]
) -> None:
    answer = lead.put(path, body)
    assert (answer.status_code, answer.headers["Content-Type"]) == (
        422,
        "application/problem+json",
    )


def test_gpu_hours_do_not_go_below_what_is_held(lead: Caller, path: str) -> None:
    answer = lead.put(path, {"gpu_hours_limit": "1.00"})
    assert (answer.status_code, answer.json()["code"]) == (409, "below_what_is_held")


def test_the_month_under_way_says_where_it_leads(here: World, lead: Caller) -> None:
    Budget.objects.create(team=here.own.team, month="2099-01-01", limit_usd=1)
    later = lead.get("teams/vision/budgets/").json()["results"][0]
    assert (later["month"], later["pace"]) == ("2099-01", None)
    now = of_month(lead, f"{timezone.now():%Y-%m}")
    assert now["is_close"] is False
    pace = now["pace"]
    assert pace["gpu_hours"] is None
    assert pace["usd"]["used_up"] is None
    assert float(pace["usd"]["spent"]) <= float(pace["usd"]["at_pace"])
    assert pace["sentences"][0].startswith("At this pace the month ends at $")


def test_the_ledger_is_read_page_by_page_newest_first(here: World, path: str) -> None:
    member = Caller(here.people["member"])
    row = (
        Budget.objects.filter(team=here.own.team, held_usd__gt=0)
        .order_by("month")
        .first()
    )
    assert row is not None
    path = f"teams/vision/budgets/{row.month:%Y-%m}/ledger/"
    known = LedgerEntry.objects.filter(budget=row).count()
    hold = factories.hold(here.own.team)
    LedgerEntry.objects.bulk_create(
        LedgerEntry(
            budget=row,
            hold=hold,
            usd=-n,
            gpu_hours=n,
            at=timezone.now(),
            why="given back",
        )
        for n in range(12)
    )
    seen, link = [], f"{path}?limit=5"
    while link:
        body = member.get(link).json()
        seen += body["results"]
        link = (body["next"] or "").removeprefix("http://testserver")
    assert [line["id"] for line in seen] == sorted(
        {line["id"] for line in seen}, reverse=True
    )
    assert len(seen) == known + 12
    newest = seen[0]
    assert (
        newest["reference"],
        newest["request"],
        newest["usd"],
        newest["gpu_hours"],
        newest["why"],
    ) == (
        f"hold-{hold.pk}",
        None,
        "-11.00",
        "11.00",
        "given back",
    )
    assert seen[-1]["request"] is not None
    assert seen[-1]["reference"] == f"request-{seen[-1]['request']}"


def test_a_ledger_costs_the_same_however_long_it_is(
    here: World, lead: Caller, path: str, django_assert_max_num_queries: Any
) -> None:
    row = Budget.objects.filter(team=here.own.team, held_usd__gt=0).first()
    assert row is not None
    hold = here.own.granted.hold
    for more in (1, 60):
        LedgerEntry.objects.bulk_create(
            LedgerEntry(budget=row, hold=hold, usd=0, at=timezone.now(), why="x")
            for _ in range(more)
        )
        with django_assert_max_num_queries(6):
            lead.get(f"teams/vision/budgets/{row.month:%Y-%m}/ledger/?limit=100")


def test_a_strangers_ledger_looks_like_a_missing_one(here: World, path: str) -> None:
    stranger = Caller(here.people["outsider"])
    assert stranger.get(f"{path}ledger/").status_code == 404
    assert (
        Caller(here.people["member"])
        .get("teams/vision/budgets/2026-13/ledger/")
        .status_code
        == 404
    )

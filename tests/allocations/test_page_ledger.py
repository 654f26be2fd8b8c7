"""A month's ledger as a page: every line once, with the way to its request."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from allocations.models import Budget, LedgerEntry
from tests import factories
from tests.scene import NOW, Scene

URL = "/teams/vision/budget/2026-11"


@pytest.fixture
def budget(scene: Scene) -> Budget:
    """November, of which nothing is set aside."""
    return Budget.objects.create(
        team=scene.team, month=NOW.date().replace(day=1), limit_usd=1000
    )


def line(budget: Budget, number: int) -> LedgerEntry:
    hold = factories.hold(budget.team, number + 1)
    return LedgerEntry(
        budget=budget, hold=hold, usd=Decimal(number), at=NOW, why="set aside"
    )


def test_a_line_leads_to_its_request_and_a_release_has_a_minus(
    client: Client, scene: Scene, budget: Budget
) -> None:
    request = scene.ask(2, days=3)
    LedgerEntry.objects.create(
        budget=budget,
        hold=factories.hold(scene.team, 3_000),
        usd=Decimal("-1234.5"),
        gpu_hours=Decimal(-8),
        at=NOW,
        why="given back",
    )
    client.force_login(scene.ada)
    said = client.get(URL).content.decode()
    assert (
        f'href="/requests/{request.pk}/"' in said
        or f'href="/requests/{request.pk}"' in said
    )
    for text in (
        "−1,234.50",
        "−8.00",
        "+144.00",
        "hold-3000",
        "Given back",
        "Set aside",
    ):
        assert text in said


def test_an_empty_month_says_so(client: Client, scene: Scene) -> None:
    client.force_login(scene.ada)
    assert (
        "Nothing was set aside in this month."
        in client.get("/teams/vision/budget/2027-01").content.decode()
    )
    assert not Budget.objects.exists()


def test_pages_follow_each_other_both_ways(
    client: Client, scene: Scene, budget: Budget
) -> None:
    LedgerEntry.objects.bulk_create(line(budget, number) for number in range(120))
    client.force_login(scene.ada)
    there, link, said = [], "", ""
    for _ in range(3):
        said = client.get(URL + link).content.decode()
        there.append(re.findall(r"hold-\d+", said))
        link = next(iter(re.findall(r'href="(\?before=\d+)"', said)), "")
    assert [len(page) for page in there] == [50, 50, 20]
    assert [name for page in there for name in page] == [
        f"hold-{number + 1}" for number in reversed(range(120))
    ]
    assert link == ""
    back = re.findall(r'href="(\?after=\d+)"', said)
    assert (
        re.findall(r"hold-\d+", client.get(URL + back[0]).content.decode()) == there[1]
    )


@pytest.mark.parametrize(
    "cursor", ["?before=x", "?after=-1", "?before=", "?before=" + "9" * 30]
)
def test_a_cursor_that_nobody_gave_out_is_the_first_page(
    client: Client, scene: Scene, budget: Budget, cursor: str
) -> None:
    LedgerEntry.objects.bulk_create([line(budget, 1)])
    client.force_login(scene.ada)
    assert "hold-2" in client.get(URL + cursor).content.decode()


def test_a_month_that_is_none_and_a_strangers_team_are_not_there(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    for month in ("2026-13", "1999-01", "x", "2026-1"):
        assert client.get(f"/teams/vision/budget/{month}").status_code == 404
    client.force_login(scene.mallory)
    assert client.get(URL).status_code == 404


@pytest.mark.parametrize("page", [URL, "/teams/vision/budget"])
def test_more_lines_cost_no_more_queries(
    client: Client,
    scene: Scene,
    budget: Budget,
    page: str,
    django_assert_max_num_queries: Any,
) -> None:
    client.force_login(scene.priya)
    for more in (1, 45):
        LedgerEntry.objects.bulk_create(line(budget, number) for number in range(more))
        with django_assert_max_num_queries(12):
            client.get(page)

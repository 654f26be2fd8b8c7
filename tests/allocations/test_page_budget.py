"""A team's money by month: everybody of the team reads, platform leads set, nothing goes below what is set aside."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from allocations.budgets.months import months_from
from allocations.models import Budget
from approvals.decisions.actions import approve
from tests import factories
from tests.pages import parsed
from tests.scene import Scene

URL = "/teams/vision/budget"


@pytest.fixture
def month() -> str:
    """This month, as the form names it."""
    return months_from(timezone.now())[0].isoformat()


def test_a_member_reads_it_and_is_told_who_sets_it(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    said = client.get(URL).content.decode()
    assert "Platform leads set the limits" in said
    assert "Set the limits" not in said


def test_a_platform_lead_sets_a_limit(client: Client, scene: Scene, month: str) -> None:
    client.force_login(scene.priya)
    assert (
        client.post(URL, {"month": month, "limit_usd": "12345.67"}).status_code == 302
    )
    assert Budget.objects.get(team=scene.team).limit_usd == Decimal("12345.67")
    assert "is $12,345.67" in client.get(URL).content.decode()


def test_it_does_not_go_below_what_is_set_aside(
    client: Client, scene: Scene, month: str
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    month = Budget.objects.filter(held_usd__gt=0).first().month.isoformat()  # type: ignore[union-attr]
    client.force_login(scene.priya)
    response = client.post(URL, {"month": month, "limit_usd": "1"})
    assert response.status_code == 409
    assert "is set aside already" in response.content.decode()


def test_hours_and_the_soft_stage_are_set_with_it_and_none_is_a_limit_too(
    client: Client, scene: Scene, month: str
) -> None:
    client.force_login(scene.priya)
    sent = {
        "month": month,
        "limit_usd": "900",
        "gpu_hours_limit": "500.5",
        "soft_percent": "60",
    }
    said = client.post(URL, sent, follow=True).content.decode()
    assert "is $900.00 and 500.5 GPU-hours, people decide beyond 60 %." in said
    assert 'value="500.50"' in client.get(f"{URL}?month={month[:7]}").content.decode()
    client.post(
        URL,
        {"month": month, "limit_usd": "800", "gpu_hours_limit": "", "soft_percent": ""},
    )
    row = Budget.objects.get(team=scene.team)
    assert (row.limit_usd, row.gpu_hours_limit, row.soft_percent) == (
        Decimal(800),
        None,
        60,
    )


def test_what_is_not_sent_stays(client: Client, scene: Scene, month: str) -> None:
    client.force_login(scene.priya)
    client.post(
        URL,
        {
            "month": month,
            "limit_usd": "900",
            "gpu_hours_limit": "50",
            "soft_percent": "60",
        },
    )
    client.post(URL, {"month": month, "limit_usd": "800"})
    row = Budget.objects.get(team=scene.team)
    assert (row.limit_usd, row.gpu_hours_limit, row.soft_percent) == (
        Decimal(800),
        Decimal(50),
        60,
    )


def test_it_says_where_the_month_leads_and_that_it_is_close(
    client: Client, scene: Scene, month: str
) -> None:
    this = date.fromisoformat(month)
    Budget.objects.create(
        team=scene.team, month=this, limit_usd=100, held_usd=80, gpu_hours_limit=50
    )
    client.force_login(scene.ada)
    for page in (URL, "/teams/vision/"):
        said = client.get(page).content.decode()
        assert "At this pace the month ends at $0 of $100, if" in said
        assert "At this pace the month ends at 0 of 50 GPU-hours, if" in said
        assert (
            f"80 % of {this:%B} is set aside. From 80 % of the money on, people decide what goes on top, unless the "
            "policy says otherwise." in said
        )


def test_what_is_planned_is_one_sum_with_one_name_on_all_pages(
    client: Client, scene: Scene
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    client.force_login(scene.ada)
    told = set()
    # Cents go by between one page and the next.
    with time_machine.travel(timezone.now(), tick=False):
        pages = [client.get(page) for page in (URL, "/costs/?team=vision")]
    for page in pages:
        said = " ".join(strip_tags(page.content.decode()).split())
        told |= set(re.findall(r"Planned for the month (\S+) (if [^.]*? date)", said))
    [(amount, condition)] = told
    assert amount != "$0"
    assert condition == "if everything held and booked ends on its date"


def test_last_month_stands_there_as_over_with_its_ledger_and_is_not_set(
    client: Client, scene: Scene
) -> None:
    with time_machine.travel(datetime(2026, 12, 1, tzinfo=UTC), tick=False):
        client.force_login(scene.priya)
        before = client.get(URL).content.decode()
        assert "December 2026" in before
        assert "November 2026" not in before
        for month in (10, 11):
            Budget.objects.create(
                team=scene.team,
                month=date(2026, month, 1),
                limit_usd=100,
                held_usd=85,
            )
        said = client.get(f"{URL}?month=2026-11").content.decode()
        assert 'href="/teams/vision/budget/2026-11"' in said
        assert "2026-10" not in said
        assert (
            "the month is over, $15 was left Ledger of November" in parsed(said).words
        )
        assert 'href="?month=2026-12#limits"' in said
        assert "?month=2026-11#limits" not in said
        sent = {"month": "2026-11-01", "limit_usd": "500"}
        assert client.post(URL, sent).status_code == 422


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu_hours_limit": "-1"},
        {"gpu_hours_limit": "x"},
        {"soft_percent": "0"},
        {"soft_percent": "101"},
        {"limit_usd": "-1"},
        {"limit_usd": "NaN"},
        {"limit_usd": "1e400"},
        {"limit_usd": ""},
        {"month": "2020-01-01"},
        {"limit_usd": "1.001"},
        {"team": "nlp"},
    ],
)
def test_it_refuses_what_is_no_limit(
    client: Client, scene: Scene, month: str, wrong: dict[str, str]
) -> None:
    client.force_login(scene.priya)
    response = client.post(URL, {"month": month, "limit_usd": "100"} | wrong)
    assert response.status_code == 422
    assert "The budget was not changed." in response.content.decode()


def test_only_platform_leads_set_it(client: Client, scene: Scene, month: str) -> None:
    for user, status in ((scene.ada, 403), (scene.elena, 403), (scene.mallory, 404)):
        client.force_login(user)
        assert (
            client.post(URL, {"month": month, "limit_usd": "100"}).status_code == status
        )


def test_the_ledger_says_what_each_line_is_about(
    client: Client, scene: Scene, month: str
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    client.force_login(scene.ada)
    shown = client.get(f"{URL}/{month[:7]}").content.decode()
    assert f'href="/requests/{asked.pk}/"' in shown
    assert "A100" in shown
    assert f"request {asked.pk}" in shown


def test_no_line_of_the_ledger_says_another_number_later(
    client: Client, scene: Scene, month: str
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=4)
    client.force_login(scene.ada)
    before = lines(client.get(f"{URL}/{month[:7]}").content.decode())
    now = timezone.now()
    approve(asked.pk, by=scene.priya, expected_version=1, count=3, now=now)
    after = lines(client.get(f"{URL}/{month[:7]}").content.decode())
    assert len(before) == 1
    assert before[0] in after


def lines(html: str) -> list[str]:
    """The ledger's lines, as people read them."""
    return [
        row.words
        for row in parsed(html).walk()
        if row.tag == "tr" and "A100" in row.words
    ]


@pytest.mark.slow
def test_a_ledger_asks_the_database_as_often_for_many_lines(
    client: Client, scene: Scene, month: str, django_assert_max_num_queries: Any
) -> None:
    client.force_login(scene.ada)
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    client.get(f"{URL}/{month[:7]}")
    with django_assert_max_num_queries(12) as few:
        client.get(f"{URL}/{month[:7]}")
    for _ in range(4):
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    with django_assert_max_num_queries(12) as many:
        client.get(f"{URL}/{month[:7]}")
    assert len(few) == len(many)

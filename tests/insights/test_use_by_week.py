"""Use by week on the page of utilisation, and as its file."""

from collections.abc import Iterator
from typing import Any

import pytest
import time_machine
from django.test import Client

from accounts.models import Team
from allocations.models import Allocation
from insights.utilisation.history import history_of
from insights.utilisation.presenting import trend_words
from tests import factories
from tests.insights.charged import granted
from tests.insights.used import (
    FILE,
    MONDAY,
    PAGE,
    WEEK,
    four_for_weeks,
    held,
    lines,
    measured,
    of_others,
    seen,
)
from tests.pages import parsed
from tests.scene import DAY, NOW, Scene


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Pages and calls are made at NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


def test_the_page_draws_the_weeks_and_has_them_as_a_table(
    scene: Scene, client: Client
) -> None:
    four_for_weeks(scene)
    measured(scene, 1, weeks_ago=3, days=3)
    measured(scene, 0, weeks_ago=1)
    client.force_login(scene.ada)
    answer = client.get(PAGE)
    words = parsed(answer.content.decode()).words
    chart = answer.context["weeks"]["chart"]
    assert (len(chart.held), len(chart.used), chart.top) == (1, 2, 4)
    assert "16 Nov – 22 Nov 2026 2026-W47, under way 432 – – not measured –" in words
    assert "9 Nov – 15 Nov 2026 2026-W46 672 0 0 % $672" in words
    assert "26 Oct – 1 Nov 2026 2026-W44 672 72 25 % of 288 measured $216" in words
    # Before that nothing was held.
    assert "2026-W43" not in words
    assert f'href="{FILE}"' in answer.content.decode()


def test_a_row_leads_to_its_own_weeks(scene: Scene, client: Client) -> None:
    four_for_weeks(scene)
    measured(scene, 1, weeks_ago=1)
    h100 = factories.flavor(scene.tenancy.cluster, "h100")
    factories.allocation(scene.ada, scene.tenancy, h100, gpus=1)
    client.force_login(scene.ada)
    place = f"?namespace={scene.tenancy.namespace}&flavor=training%2Fa100"
    assert f'href="{place.replace("&", "&amp;")}#weeks"' in (
        client.get(PAGE).content.decode()
    )
    answer = client.get(PAGE + place)
    assert len(answer.context["rows"]) == 1
    assert answer.context["file"] == FILE + place
    [line, *_] = answer.context["weeks"]["rows"]
    assert line["cells"][1] == {"text": "432"}


def test_who_holds_nothing_any_more_still_sees_the_weeks(
    scene: Scene, client: Client
) -> None:
    held(scene, 4, start=MONDAY - 2 * WEEK, end=MONDAY - DAY)
    measured(scene, 4, weeks_ago=1)
    client.force_login(scene.ada)
    answer = client.get(f"{PAGE}?team=vision&flavor=training/a100")
    assert answer.context["rows"] == []
    words = parsed(answer.content.decode()).words
    assert "This team holds no GPUs" in words
    assert "2026-W46 576 576 100 % $0" in words
    client.force_login(scene.mallory)
    page = client.get(PAGE)
    assert page.context["weeks"] is None
    assert "Download CSV" not in page.content.decode()


@pytest.mark.slow
def test_the_page_asks_as_much_for_few_as_for_many(
    scene: Scene, client: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        flavor = factories.flavor(scene.tenancy.cluster, f"kind{number}")
        granted(scene.ada, scene.tenancy, flavor, 1, start=MONDAY, end=NOW + DAY)
        seen(scene.tenancy, flavor, NOW.date(), 1)
    client.force_login(scene.ada)
    client.get(PAGE)
    with django_assert_max_num_queries(12):
        assert len(client.get(PAGE).context["rows"]) == 20


def test_the_last_four_whole_weeks_are_compared_with_those_before(scene: Scene) -> None:
    four_for_weeks(scene, 6)
    for weeks_ago, used in ((1, 3), (4, 1), (5, 1), (6, 0)):
        measured(scene, used, weeks_ago=weeks_ago)
    measured(scene, 4, weeks_ago=0, days=5)
    [found] = history_of(Allocation.objects.all(), now=NOW)
    assert trend_words(found.weeks) == (
        "Work used 50 % of the GPU-hours that were measured in the last four whole weeks, 12 % in the four before."
    )
    assert trend_words(found.weeks[-4:]) == (
        "Work used 75 % of the GPU-hours that were measured in the last four whole weeks."
    )
    assert trend_words(found.weeks[:4]) == ""


# The file


def test_the_file_has_a_line_for_each_week_in_which_something_was_held(
    scene: Scene, client: Client
) -> None:
    four_for_weeks(scene, 1)
    measured(scene, 1, weeks_ago=1)
    client.force_login(scene.priya)
    answer = client.get(FILE)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == (
        'attachment; filename="use-by-week-2026-W47.csv"'
    )
    last, now = lines(answer.content.decode())
    assert last == {
        "week": "2026-W46",
        "begins": "2026-11-09",
        "is_over": "yes",
        "team": "vision",
        "team_name": "Vision",
        "namespace": scene.tenancy.namespace,
        "flavor": "training/a100",
        "kind": "A100",
        "held_gpu_hours": "672.00",
        "measured_gpu_hours": "672.00",
        "used_gpu_hours": "168.00",
        "used_percent": "25.0",
        "unused_usd": "504.00",
    }
    assert (now["week"], now["is_over"]) == ("2026-W47", "no")
    # A gap is empty: a spreadsheet would count a zero.
    gap = ("used_gpu_hours", "used_percent", "unused_usd")
    assert [now[name] for name in gap] == ["", "", ""]


def test_the_file_of_the_page_follows_its_filter_and_runs_nothing(
    scene: Scene, client: Client
) -> None:
    four_for_weeks(scene, 1)
    speech = of_others(scene)
    Team.objects.filter(pk=speech.pk).update(name="=1+1")
    client.force_login(scene.priya)
    both = lines(client.get(FILE).content.decode())
    # Of a week in the order of the teams.
    assert [(one["week"], one["team"]) for one in both] == [
        ("2026-W46", "speech"),
        ("2026-W46", "vision"),
        ("2026-W47", "vision"),
    ]
    assert both[0]["team_name"] == "'=1+1"
    [one] = lines(client.get(f"{FILE}?team=speech").content.decode())
    assert (one["team"], one["unused_usd"]) == ("speech", "36.00")
    assert client.get(f"{FILE}?team=nobody").status_code == 404
    client.force_login(scene.ada)
    own = lines(client.get(FILE).content.decode())
    assert {one["team"] for one in own} == {"vision"}
    assert client.get(f"{FILE}?team=speech").status_code == 404

"""Utilisation over twelve weeks in a real browser: the chart with its table, a row that leads to its own, the file."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from allocations.models import UseDay
from fleet.models import Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations
from tests.insights.charged import granted
from tests.scene import Scene

pytestmark = pytest.mark.slow
WEEK = timedelta(weeks=1)


def held(
    scene: Scene, at: Tenancy, flavor: Flavor, gpus: int, used: list[int | None]
) -> None:
    """GPUs held for as many weeks as there are shares of use, in percent, the last one under way; None is no look."""
    now = timezone.now()
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    first = today - timedelta(days=today.weekday()) - WEEK * (len(used) - 1)
    granted(scene.ada, at, flavor, gpus, start=first, end=now + 2 * WEEK, now=now)
    UseDay.objects.bulk_create(
        UseDay(
            tenancy=at,
            flavor=flavor,
            day=first.date() + timedelta(days=7 * number + day),
            samples=100,
            held_sum=100 * gpus,
            used_sum=share * gpus,
            last_at=now,
        )
        for number, share in enumerate(used)
        for day in range(7)
        if share is not None
        and first.date() + timedelta(days=7 * number + day) <= today.date()
    )


def two_teams(scene: Scene) -> None:
    """Vision got better after two weeks without a look; Speech holds two kinds, and uses one of them ever less."""
    held(
        scene,
        scene.tenancy,
        scene.flavor,
        8,
        [12, 15, 14, 22, None, None, 30, 41, 38, 52, 60, 58, 63],
    )
    speech = factories.team("Speech and language understanding")
    other = factories.tenancy(speech, scene.tenancy.cluster)
    held(scene, other, scene.flavor, 2, [80, 70, 40, 20, 0, 0, 0])
    h100 = factories.flavor(
        scene.tenancy.cluster, "h100", product="H100", price_per_gpu_hour=Decimal("4.5")
    )
    held(scene, other, h100, 4, [10, 90, 95])


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_weeks_are_drawn_and_a_row_leads_to_its_own(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    two_teams(scene)
    page = open_page(scene.priya, "/capacity/utilisation", size=size, theme=theme)
    arrives(page, "Utilisation")
    looks_right(page)
    page.get_by_text("The same as a table").click()
    looks_right(page)
    page.get_by_role("link", name="Weeks of 8 × A100 in qm-vision").click()
    expect(page.get_by_label("Namespace")).to_have_value(scene.tenancy.namespace)
    page.get_by_text("The same as a table").click()
    expect(page.get_by_text("not measured").first).to_be_visible()
    looks_right(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename.startswith("use-by-week-")
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert text.startswith("week,")
    assert "speech" not in text


def test_where_no_chart_is_drawn_the_table_stands_by_itself(
    scene: Scene, open_page: Open
) -> None:
    held(scene, scene.tenancy, scene.flavor, 8, [12])
    page = open_page(scene.priya, "/capacity/utilisation")
    arrives(page, "Utilisation")
    expect(page.get_by_role("table", name="Use by week, newest first")).to_be_visible()
    expect(page.get_by_text("The same as a table")).to_have_count(0)
    looks_right(page)


def looks_right(page: Page) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    assert violations(page) == []
    assert overflow(page) <= 0

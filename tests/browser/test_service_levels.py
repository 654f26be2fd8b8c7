"""Service levels in a real browser: what needs care first, a service by its days, and the form that adds one."""

from datetime import UTC, timedelta

import pytest
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from tests import factories
from tests.browser.conftest import (
    LOOKS,
    Open,
    arrives,
    lines,
    overflow,
    violations,
)
from tests.scene import Scene
from workloads.models import ServiceDay, ServiceLevel

pytestmark = pytest.mark.slow


def service(
    scene: Scene, name: str, tier: str, *failed: float, p99: float
) -> ServiceLevel:
    """A service with a million requests a day until today, of which so many failed, the last day last."""
    now = timezone.now()
    level = factories.service_level(
        scene.tenancy,
        scene.ada,
        service=name,
        tier=tier,
        measured_until=now,
        seen_at=now,
    )
    today = now.astimezone(UTC).date()
    # It is measured as long as its budget is counted.
    if len(failed) < 30:
        level.days.create(day=today - timedelta(29), requests=0, failed=0)
    ServiceDay.objects.bulk_create(
        ServiceDay(
            level=level,
            day=today - timedelta(len(failed) - 1 - number),
            requests=1_000_000 + 13_731 * number,
            failed=many,
            p99=p99,
        )
        for number, many in enumerate(failed)
    )
    return level


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_the_list_leads_from_what_needs_care_to_its_days(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    service(scene, "embed-documents", "batch", 40, 60, 31, p99=2.4)
    service(scene, "rank-search", "real_time", 100, 120, 2_400, p99=0.24)
    service(
        scene,
        "mistral-7b-chat-with-customers-of-the-shop",
        "near_real_time",
        10,
        1_200,
        900,
        p99=1.4,
    )
    page = open_page(scene.priya, "/capacity/service-levels", size=size, theme=theme)
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("rank-search")
    expect(first).to_contain_text("Budget used up")
    assert overflow(page) == 0
    assert violations(page) == []
    page.get_by_role("link", name="rank-search").click()
    arrives(page, "rank-search")
    expect(page.get_by_text("It is slow: 99 of 100 requests")).to_be_visible()
    assert overflow(page) == 0
    assert violations(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_month_of_days_is_a_table_of_one_line_each_on_a_phone(
    scene: Scene, open_page: Open, theme: str
) -> None:
    failed = [40, 1_200, 0, 18_431.5, 3] * 6
    level = service(scene, "rank-search", "real_time", *failed, p99=0.24)
    level.days.update(requests=F("requests") * 10)
    level.days.filter(failed=3).update(p99=2.5, is_beyond=True)
    where = f"/capacity/service-levels/{level.pk}"

    page = open_page(scene.priya, where, size="phone", theme=theme)

    rows = page.locator("#service-level tbody tr")
    assert rows.count() == 30
    assert {lines(row) for row in rows.all()} == {1}
    table = page.locator("#service-level .table-wrap")
    assert table.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0
    screens = table.evaluate("(one) => one.offsetHeight / window.innerHeight")
    assert screens < 1.5
    for head in ("Day (UTC)", "Requests", "Of the budget"):
        expect(table.get_by_role("columnheader", name=head)).to_be_visible()
    assert overflow(page) == 0
    assert violations(page) == []


def test_a_lead_adds_a_service_by_the_form(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.priya, "/teams/vision/service-levels/new", size="phone")
    page.get_by_label("Name of its Service").fill("mistral-7b")
    page.get_by_text("Near real-time").click()
    page.get_by_text("Istio").click()
    assert overflow(page) == 0
    page.get_by_role("button", name="Measure it").click()
    arrives(page, "mistral-7b")
    expect(page.get_by_text("No Prometheus of")).to_be_visible()

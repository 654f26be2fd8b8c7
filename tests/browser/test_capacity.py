"""Capacity, a limit and the quota chain in a real browser: asked, answered and looked at in both themes."""

import os
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from capacity.models import Meter, QuotaIncrease, Subscription
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.insights.fleet import VCPUS, Site, connect, read_for_weeks, site
from tests.scene import Scene

pytestmark = pytest.mark.slow
PICTURES = os.environ.get("QM_PICTURES", "")


@pytest.fixture
def here(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A fleet whose family of machines is nearly used up after ten weeks."""
    connect(monkeypatch)
    made, now = site(scene), timezone.now()
    Meter.objects.filter(pk=made.meter().pk).update(used=10 * VCPUS)
    read_for_weeks(made.meter(), weeks=10, per_week=VCPUS, now=now)
    read_for_weeks(made.meter("cores"), weeks=10, per_week=0, now=now)
    lacking = {"ask for more quota": ["Microsoft.Quota/quotas/write"]}
    Subscription.objects.update(missing_rights=lacking, rights_checked_at=now)
    return made


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_a_lead_sees_what_comes_near_and_asks_azure_for_more(
    here: Site, open_page: Open, size: str, theme: str
) -> None:
    page = open_page(here.scene.priya, "/capacity/", size=size, theme=theme)
    expect(page.get_by_role("heading", name="Limits that come near")).to_be_visible()
    expect(page.get_by_text("Microsoft.Quota/quotas/write")).to_be_visible()
    looks_right(page, f"capacity-{size}-{theme}")
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("A worker reads the subscription now")).to_be_visible()
    page.get_by_role("link", name=here.meter().title).first.click()
    expect(page.get_by_role("heading", name="More from Azure")).to_be_visible()
    has_a_table(page, "The same as a table")
    looks_right(page, f"limit-{size}-{theme}")
    page.get_by_label("New limit").fill(str(30 * VCPUS))
    expect(page.locator("#gives")).to_have_text(
        "1,152 → 2,880 vCPUs: 18 more Standard_NC96ads_A100_v4 (72 GPUs)."
    )
    page.get_by_label("New limit").fill("5")
    expect(page.locator("#gives")).to_contain_text("Write a whole number of vCPUs")
    page.get_by_role("button", name="Ask Azure for more").click()
    expect(page.get_by_text("Azure was not asked.")).to_be_visible()
    looks_right(page, f"limit-refused-{size}-{theme}")
    page.get_by_label("New limit").fill(str(30 * VCPUS))
    page.get_by_label("Why").fill("Vision trains from January on.")
    page.get_by_role("button", name="Ask Azure for more").click()
    expect(page.get_by_text("The portal sends it now.")).to_be_visible()
    looks_right(page, f"limit-asked-{size}-{theme}")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Withdrawn: Azure is not asked.")).to_be_visible()
    QuotaIncrease.objects.all().delete()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_the_chain_leads_from_the_link_that_stops_to_the_quota(
    here: Site, open_page: Open, size: str, theme: str
) -> None:
    page = open_page(
        here.scene.priya, f"{here.address}?gpus=16", size=size, theme=theme
    )
    expect(page.get_by_text("16 × A100 more can be granted.")).to_be_visible()
    looks_right(page, f"chain-fits-{size}-{theme}")
    here.quota(limit=4)
    page.get_by_label("GPUs more").fill("20")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("stopped at the subscription quota of")).to_be_visible()
    has_a_table(page, "The same as a table")
    looks_right(page, f"chain-stopped-{size}-{theme}")
    page.get_by_role("link", name="Ask Azure for more").click()
    expect(page.get_by_label("New limit")).to_have_value("480")
    page.goto(f"{here.address}?gpus=0")
    expect(page.get_by_text("This cannot be answered")).to_be_visible()
    looks_right(page, f"chain-refused-{size}-{theme}")


def test_everything_works_without_scripts(here: Site, open_page: Open) -> None:
    page = open_page(
        here.scene.priya, f"/capacity/limits/{here.meter().pk}?limit=1920", script=False
    )
    expect(page.locator("#gives")).to_contain_text("8 more Standard_NC96ads_A100_v4")
    page.get_by_label("Why").fill("Vision trains from January on.")
    page.get_by_role("button", name="Ask Azure for more").click()
    expect(page.get_by_text("The portal sends it now.")).to_be_visible()


def has_a_table(page: Page, words: str) -> None:
    """Unfolds the table beside a drawing, and looks that it has rows."""
    page.get_by_text(words).first.click()
    expect(page.get_by_role("table").last.get_by_role("row").nth(1)).to_be_visible()


def looks_right(page: Page, name: str) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
    assert violations(page) == [], name
    assert overflow(page) <= 0, name

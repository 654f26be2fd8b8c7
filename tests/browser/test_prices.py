"""Azure's list prices in a real browser: side by side, one machine's history, and a doubtful one that is confirmed."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from capacity.models import DoubtedPrice, MachinePrice, PastPrice, PriceRegion
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations
from tests.scene import Scene

pytestmark = pytest.mark.slow
SIZE = "Standard_NC96ads_A100_v4"


def listed() -> MachinePrice:
    """A machine of four GPUs whose price changed a month ago, and that costs ten times as much since today."""
    now = timezone.now()
    usual = {
        "spot": Decimal("4.4"),
        "one_year": Decimal("9.55"),
        "three_years": Decimal("6.61"),
    }
    PriceRegion.objects.create(
        name="eastus", read_at=now, next_read_at=now + timedelta(days=1)
    )
    row = MachinePrice.objects.create(
        region="eastus",
        size=SIZE,
        on_demand=Decimal("14.69"),
        since=now,
        seen_at=now,
        **usual,
    )
    for days, usd in ((60, "15.5"), (30, "14.69")):
        PastPrice.objects.create(
            price=row, at=now - timedelta(days=days), on_demand=Decimal(usd), **usual
        )
    DoubtedPrice.objects.create(price=row, at=now, on_demand=Decimal("146.9"))
    return row


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_prices_are_compared_and_a_doubtful_one_is_confirmed(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    row = listed()
    page = open_page(scene.priya, "/capacity/", size=size, theme=theme)
    page.get_by_role("link", name="Prices").click()
    arrives(page, "Prices")
    looks_right(page)
    page.get_by_role("link", name=SIZE).click()
    arrives(page, SIZE)
    expect(page.get_by_text("on demand $146.90 instead of $14.69")).to_be_visible()
    page.get_by_text("The same as a table").click()
    looks_right(page)
    page.get_by_role("button", name="Use these prices").click()
    expect(page.get_by_text("Confirmed.")).to_be_visible()
    looks_right(page)
    row.refresh_from_db()
    assert row.on_demand == Decimal("146.9")


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_without_azure_the_shipped_list_looks_right(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    page = open_page(scene.ada, "/capacity/prices", size=size, theme=theme)
    expect(page.get_by_text("November 2026").first).to_be_visible()
    looks_right(page)
    page.get_by_role("link", name="Where prices come from").click()
    arrives(page, "Prices")


def looks_right(page: Page) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    assert violations(page) == []
    assert overflow(page) <= 0

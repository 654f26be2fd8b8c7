"""Capacity reservations in a real browser: from the list to machines given back, and an orphan that is released."""

import pytest
from playwright.sync_api import Page, expect

from capacity.models import Reservation
from tests import factories
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations
from tests.capacity.orphan_attacks import orphan
from tests.scene import Scene

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_idle_machines_are_seen_and_given_back(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    row = factories.reservation(scene.team, machines=4, used=2, flavor=scene.flavor)
    factories.reserved_days(row, [3, 2, 1, 2, 2, 2])
    grant = factories.machines_of(row, scene.ada, count=4)
    page = open_page(scene.ada, "/capacity/", size=size, theme=theme)
    page.get_by_role("link", name="Reservations").click()
    arrives(page, "Reservations")
    looks_right(page)
    page.get_by_role("link", name="4 × Standard_NC24ads_A100_v4").click()
    expect(page.get_by_text("2 of 4 are in use; 2 are idle, and paid.")).to_be_visible()
    looks_right(page)
    page.get_by_text("The same as a table").click()
    looks_right(page)
    page.get_by_role("link", name="Give machines back").click()
    page.get_by_label("Machines to give back").fill("3")
    button = page.get_by_role("button", name="Give back 3 machines")
    expect(button).to_be_visible()
    looks_right(page)
    button.click()
    expect(page.get_by_text("3 machines go back")).to_be_visible()
    grant.refresh_from_db()
    assert grant.count == 1
    assert Reservation.objects.get().machines == 1
    looks_right(page)


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_what_is_orphaned_is_released_by_a_platform_lead(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    orphan(vm_size="Standard_NC24ads_A100_v4", group="qm-1a2b3c4d-vision-9")
    orphan(kind="foreign", key="theirs", group="team-blue-capacity", machines=8, used=5)
    page = open_page(scene.priya, "/capacity/reservations/", size=size, theme=theme)
    looks_right(page)
    page.get_by_role("link", name="2 × Standard_NC24ads_A100_v4").click()
    looks_right(page)
    page.get_by_role("button", name="Release it").click()
    expect(page.get_by_text("A worker releases it now.")).to_be_visible()
    expect(page.get_by_text("Being released").first).to_be_visible()
    page.get_by_text("Other people’s reservations").first.click()
    looks_right(page)


def looks_right(page: Page) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    assert violations(page) == []
    assert overflow(page) <= 0

"""Lists on a phone: a row is read in few lines and opens from anywhere, and choices have their words beside them."""

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browser.conftest import Open, lines, overflow, violations
from tests.scene import Scene


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "most"), [("/requests/", 4), ("/teams/", 3), ("/audit/", 6)]
)
def test_a_row_is_read_in_few_lines(
    open_page: Open, scene: Scene, path: str, most: int
) -> None:
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, path, size="phone", theme="dark")
    rows = page.locator("tbody tr")
    assert rows.count() > 0
    assert max(map(lines, rows.all())) <= most
    assert violations(page) == []
    assert overflow(page) == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/policy/", "/requests/{}/", "/clusters/training/"])
def test_a_fact_leaves_its_value_room(open_page: Open, scene: Scene, path: str) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, path.format(asked.pk), size="phone")
    values = page.locator(".facts dd")
    widths = values.evaluate_all("all => all.map(one => one.clientWidth)")
    assert widths
    assert min(widths) >= 110


@pytest.mark.slow
def test_a_unit_is_not_wider_than_its_room(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, "/tokens/", size="phone")
    unit = page.get_by_text("days", exact=True)
    assert unit.evaluate("one => one.scrollWidth - one.clientWidth") == 0


@pytest.mark.slow
def test_a_request_is_opened_from_anywhere_in_its_row(
    open_page: Open, scene: Scene
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, "/requests/", size="phone")
    box = page.locator("tbody tr").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 16)
    page.wait_for_url(f"**/requests/{asked.pk}/")


@pytest.mark.slow
def test_a_notice_is_chosen_by_its_words(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, "/settings/notices/", size="phone")
    row = page.get_by_role("row", name="Your request was decided")
    assert lines(row) <= 2
    row.get_by_text("Not at all").last.click()
    expect(row.get_by_role("radio").last).to_be_checked()

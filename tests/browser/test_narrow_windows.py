"""Windows between a phone's and a desk's: half a screen, and a tablet held upright."""

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browser.conftest import Open, lines, overflow, violations
from tests.browser.test_prices import listed
from tests.scene import Scene

PATHS = (
    "/clusters/training/",
    "/teams/vision/",
    "/teams/vision/projects",
    "/cost-centres/",
    "/approvals/",
)
WIDE = (
    "/requests/",
    "/capacity/",
    "/capacity/utilisation",
    "/capacity/prices",
    "/hubs",
    "/policy/",
)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["half", "tablet"])
@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_no_wider_than_its_window_and_its_title_keeps_its_words(
    open_page: Open, scene: Scene, path: str, size: str
) -> None:
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, path, size=size)
    assert overflow(page) == 0
    assert lines(page.locator("h1")) == 1
    assert violations(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("size", ["desk", "half", "tablet"])
def test_the_days_of_a_filter_stand_beside_each_other(
    open_page: Open, scene: Scene, size: str
) -> None:
    page = open_page(scene.priya, "/audit/", size=size)
    tops = [
        page.get_by_label(name, exact=True).evaluate(
            "element => element.getBoundingClientRect().top"
        )
        for name in ("From", "To")
    ]
    assert tops[0] == tops[1]


@pytest.mark.slow
@pytest.mark.parametrize("size", ["half", "tablet"])
@pytest.mark.parametrize("path", [*PATHS, *WIDE])
def test_no_table_has_columns_beyond_its_box(
    open_page: Open, scene: Scene, path: str, size: str
) -> None:
    listed()
    factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, path, size=size)
    boxes = page.locator(".table-wrap")
    beyond = boxes.evaluate_all(
        "all => all.map(one => one.scrollWidth - one.clientWidth)"
    )
    assert beyond
    assert max(beyond) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("size", "display"), [("half", "flex"), ("desk", "table-row")])
def test_rows_are_cards_where_a_table_has_no_room_for_its_columns(
    open_page: Open, scene: Scene, size: str, display: str
) -> None:
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, "/requests/", size=size)
    expect(page.locator(".table--requests tbody tr").first).to_have_css(
        "display", display
    )

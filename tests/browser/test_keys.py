"""The palette and the menus by keyboard, in a real browser."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Open
from tests.scene import Scene

pytestmark = pytest.mark.slow


def test_enter_in_the_palette_goes_where_the_typed_words_lead(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/help/")
    page.wait_for_load_state("load")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or do something")
    # Without a word typed it lists what one can do.
    expect(palette.get_by_role("option").first).to_be_visible()
    assert "Vision" not in palette.get_by_role("option").first.inner_text()
    # Faster than any answer: what is listed still is that of before.
    page.keyboard.insert_text("Vision")
    page.keyboard.press("Enter")
    page.wait_for_url("**/teams/vision/**")


def test_the_palette_says_how_much_it_found(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, "/help/")
    page.wait_for_load_state("load")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or do something")
    said = palette.get_by_role("status")
    page.keyboard.insert_text("there is no such thing")
    expect(said).to_have_text("Nothing found")
    expect(palette.get_by_role("option")).to_have_count(1)
    palette.get_by_role("combobox").fill("Vision")
    found = palette.get_by_role("option")
    expect(found.first).to_contain_text("Vision")
    expect(said).to_have_text(f"{found.count()} found")


def loses(page: Page, answers: int, *, status: int) -> None:
    """Let the next lists of the palette be lost: with a status, or with the connection where it is 0."""
    left = iter(range(answers))

    def lose(route: Route) -> None:
        if next(left, None) is None:
            route.fallback()
        elif status:
            route.fulfill(status=status, content_type="text/html", body="<p>No</p>")
        else:
            route.abort()

    page.route("**/palette?*", lose)


@pytest.mark.parametrize("status", [0, 429, 500])
def test_a_list_of_the_palette_that_is_lost_is_fetched_again(
    open_page: Open, scene: Scene, status: int
) -> None:
    page = open_page(scene.ada, "/help/")
    page.wait_for_load_state("load")
    loses(page, 2, status=status)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or do something")
    expect(palette.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).not_to_have_url("**/help/")


def test_the_palette_fetches_its_list_whenever_it_is_opened(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/help/")
    page.wait_for_load_state("load")
    palette = page.get_by_role("dialog", name="Search or do something")
    for _ in range(2):
        with page.expect_response("**/palette?*"):
            page.keyboard.press("Control+k")
        expect(palette.get_by_role("option").first).to_be_visible()
        page.keyboard.press("Escape")
        expect(palette).to_be_hidden()


def test_a_menu_closes_where_the_focus_leaves_it(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, "/")
    page.wait_for_load_state("load")
    menu = page.locator(".head details[data-menu]").first
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Tab")
    expect(menu).to_have_attribute("open", "")
    menu.locator("a, button").last.focus()
    page.keyboard.press("Tab")
    expect(menu).not_to_have_attribute("open", "")

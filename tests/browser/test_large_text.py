"""Text at twice its size, as the browser's own setting makes it, and colours that the system chooses."""

import pytest
from playwright.sync_api import Page, expect

from tests import factories
from tests.browser.conftest import Open, overflow
from tests.scene import Scene

pytestmark = pytest.mark.slow

# Elements whose own words have lines closer together than they can be read.
CRAMPED = """() => [...document.querySelectorAll("body *")].filter((each) => {
  const words = [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  if (!words || each.closest("svg, script, style, .person__face")) return false;
  const style = getComputedStyle(each);
  return parseFloat(style.lineHeight) < 1.15 * parseFloat(style.fontSize);
}).map((each) => `${each.tagName}.${each.className}: ${each.textContent.trim().slice(0, 40)}`)"""


def enlarge(page: Page) -> None:
    page.evaluate("document.documentElement.style.fontSize = '200%'")


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_no_page_is_wider_than_the_screen_and_no_lines_run_into_each_other(
    open_page: Open, scene: Scene, size: str
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    run = factories.run(scene.tenancy, scene.ada, flavor=scene.flavor)
    page = open_page(scene.ada, "/", size=size)
    wide, cramped = {}, {}
    for path in (
        "/",
        "/requests/new",
        "/requests/new/volume",
        "/catalogue/",
        "/clusters/",
        "/policy/",
        f"/requests/{asked.pk}/",
        f"/runs/{run.pk}",
    ):
        answer = page.goto(path)
        assert answer is not None
        assert answer.ok, path
        enlarge(page)
        if (pixels := overflow(page)) > 0:
            wide[path] = pixels
        if found := page.evaluate(CRAMPED):
            cramped[path] = found
    assert (wide, cramped) == ({}, {})


def test_the_link_past_the_frame_is_out_of_sight_until_it_has_the_focus(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/")
    enlarge(page)
    skip = page.locator(".skip")
    expect(skip).not_to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()


def test_the_rail_has_room_for_the_name_and_the_bar_for_its_words(
    open_page: Open, scene: Scene
) -> None:
    cut = "each => each.scrollWidth - each.clientWidth"
    page = open_page(scene.ada, "/")
    enlarge(page)
    assert page.locator(".rail").evaluate(cut) <= 0
    page = open_page(scene.priya, "/", size="phone")
    enlarge(page)
    beyond = page.locator(".bar__link").evaluate_all(f"all => all.map({cut})")
    assert beyond
    assert max(beyond) <= 0


def test_in_forced_colours_a_choice_is_seen(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, "/requests/new")
    page.emulate_media(forced_colors="active")
    drawn = "each => getComputedStyle(each).appearance"
    assert page.get_by_label("Team").evaluate(drawn) == "auto"
    filled = "each => getComputedStyle(each).backgroundColor"
    theme = page.get_by_role("group", name="Theme")
    pressed = theme.get_by_role("button", pressed=True).evaluate(filled)
    assert pressed != theme.get_by_role("button", name="Dark").evaluate(filled)

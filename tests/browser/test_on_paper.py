"""What a page is on paper: dark words on white for everybody, and nothing to press."""

import pytest

from tests import factories
from tests.browser.conftest import Open
from tests.scene import Scene

DARKNESS = """() => {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = getComputedStyle(document.body).color;
  context.fillRect(0, 0, 1, 1);
  return Math.max(...context.getImageData(0, 0, 1, 1).data.slice(0, 3));
}"""


@pytest.mark.slow
def test_paper_is_white_also_for_who_reads_in_the_dark(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/teams/vision/", theme="dark")
    page.get_by_role("radio", name="Dark").or_(
        page.get_by_role("button", name="Dark")
    ).first.click()
    assert page.evaluate(DARKNESS) > 128
    page.emulate_media(media="print")
    assert page.evaluate(DARKNESS) < 128


@pytest.mark.slow
def test_nothing_is_printed_that_can_only_be_pressed(
    open_page: Open, scene: Scene
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    page = open_page(scene.ada, "/teams/vision/")
    give_back = page.get_by_role("link", name="Give back")
    assert give_back.first.is_visible()
    page.emulate_media(media="print")
    seen = page.locator("a.button, button").evaluate_all(
        "all => all.filter(one => one.checkVisibility()).map(one => one.outerHTML)"
    )
    assert seen == []

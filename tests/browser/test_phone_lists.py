"""Lists on a phone: a row is read in few lines and opens from anywhere, and choices have their words beside them."""

from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import Team
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


ARABIC = "فريق أبحاث معالجة اللغة العربية والكلام"
# Cells in which the label takes more lines than the value beside it, or leaves that no room.
SQUEEZED = """all => all.filter(cell => {
  const value = cell.firstElementChild;
  return value && (cell.clientHeight > value.offsetHeight + 12 || value.offsetWidth < 8);
}).map(cell => cell.dataset.label + ": " + cell.textContent.trim())"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [ARABIC, "Computer Vision and Perception Research, Northern"]
)
@pytest.mark.parametrize("path", ["/audit/", "/capacity/", "/teams/", "/teams/vision/"])
def test_a_label_stands_whole_beside_its_value(
    open_page: Open, scene: Scene, path: str, name: str
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    Team.objects.filter(pk=scene.team.pk).update(name=name)
    page = open_page(scene.priya, path, size="phone")
    cells = page.locator(".table--cards td[data-label]:not([data-label=''])")
    assert cells.count() > 0
    assert cells.evaluate_all(SQUEEZED) == []


@pytest.mark.slow
def test_a_run_is_read_in_few_lines(open_page: Open, scene: Scene) -> None:
    factories.run(scene.tenancy, scene.ada, title="Evaluate on night scenes")
    page = open_page(scene.ada, "/teams/vision/runs", size="phone", theme="dark")
    row = page.locator("tbody tr")
    assert lines(row) <= 4
    assert violations(page) == []
    row.click(position={"x": 300, "y": 60})
    page.wait_for_url("**/runs/*")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/teams/vision/"])
def test_what_is_held_is_read_in_few_lines(
    open_page: Open, scene: Scene, path: str
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    page = open_page(scene.ada, path, size="phone", theme="dark")
    row = page.locator(".table--held tbody tr")
    assert lines(row) <= 5
    name, badge = row.locator("th").bounding_box(), row.locator(".badge").bounding_box()
    assert name is not None
    assert badge is not None
    assert abs(name["y"] - badge["y"]) < 12, "the state stands below the name"
    assert violations(page) == []
    assert overflow(page) == 0


@pytest.mark.slow
def test_home_says_once_that_there_is_nothing_to_do(
    open_page: Open, scene: Scene
) -> None:
    for gpus in (8, 12):
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=gpus)
    page = open_page(scene.ada, "/", size="phone")
    expect(page.get_by_text("there is nothing to do unless")).to_have_count(1)
    expect(page.get_by_text("Nothing to do;")).to_have_count(0)
    assert max(map(lines, page.locator(".notice").all())) <= 5


@pytest.mark.slow
def test_a_breadcrumb_of_one_digit_is_as_wide_as_a_finger_needs(
    open_page: Open, scene: Scene
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.ada, f"/requests/{asked.pk}/edit", size="phone")
    place = page.locator(".crumbs li", has=page.get_by_role("link")).nth(1)
    box = place.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 24
    page.mouse.click(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1)
    page.wait_for_url(f"**/requests/{asked.pk}/")


WORDS_AND_NUMBER = """all => all.map(
  rule => [...rule.children].slice(-2).map(one => one.getBoundingClientRect().toJSON()))"""


@pytest.mark.slow
def test_the_number_of_a_rule_stands_beside_its_words_or_below_them(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/requests/new?gpus=16", size="phone")
    page.locator(".verdict__rest > summary").first.click()
    rules = page.locator(".rules li:has(.rules__number:not(:empty))")
    pairs = rules.evaluate_all(WORDS_AND_NUMBER)
    assert pairs
    for words, number in pairs:
        beside = number["left"] >= words["right"]
        below = number["top"] >= words["bottom"] - 4
        assert beside or (below and abs(number["left"] - words["left"]) < 1)
        assert below or number["height"] < 30, "two columns of broken words"


# Where the lines of a name begin on the page: how far in the one does that is furthest in.
BEGINS = """(name) => {
  const range = document.createRange();
  range.selectNodeContents(name);
  return Math.max(...[...range.getClientRects()].map(line => line.left));
}"""


@pytest.mark.slow
def test_a_name_from_right_to_left_begins_where_the_others_do(
    open_page: Open, scene: Scene
) -> None:
    factories.team("Speech")
    Team.objects.filter(pk=scene.team.pk).update(name=f"{ARABIC} {ARABIC}"[:60])
    page = open_page(scene.priya, "/teams/", size="phone")
    names = page.locator("tbody th .table__link")
    begin = {name.evaluate(BEGINS) for name in names.all()}
    assert names.count() == 2
    assert max(begin) - min(begin) < 2


@pytest.mark.slow
def test_what_nothing_can_be_done_with_has_no_line_for_it(
    open_page: Open, scene: Scene
) -> None:
    factories.machines_of(factories.reservation(scene.team), scene.ada)
    page = open_page(scene.ada, "/", size="phone")
    expect(page.get_by_role("row", name="reserved")).to_be_visible()
    expect(page.locator("tbody td[data-label='']")).to_be_hidden()


@pytest.mark.slow
def test_choices_that_are_sentences_stand_one_below_the_other(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/tokens/")
    tops = page.locator("[name='scope']").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().top)"
    )
    assert len(tops) > 2
    assert len({*tops}) == len(tops)


@pytest.mark.slow
def test_a_difference_leaves_both_sides_room(
    open_page: Open, scene: Scene, settings: Any
) -> None:
    settings.DEMO = True
    page = open_page(scene.priya, "/styleguide", size="phone", theme="dark")
    sides = page.locator(".diff tbody td")
    widths = sides.evaluate_all("all => all.map(one => one.clientWidth)")
    assert widths
    assert min(widths) >= 130
    assert overflow(page) == 0


@pytest.mark.slow
def test_what_is_found_begins_at_the_left_in_whatever_direction_it_is_written(
    open_page: Open, scene: Scene
) -> None:
    Team.objects.filter(pk=scene.team.pk).update(name=ARABIC)
    page = open_page(scene.ada, "/", size="phone")
    page.wait_for_load_state("load")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(ARABIC[:4])
    found = page.get_by_role("option").filter(has_text=ARABIC).first
    words, name = found.locator("span"), found.locator("bdi").first
    assert name.evaluate(BEGINS) - words.evaluate(BEGINS) < 2
    expect(words).to_have_css("direction", "ltr")

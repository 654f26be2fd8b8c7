"""Asking in a real browser: the answer while typing, the offer that fits, and the same without script."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from approvals.models import Request
from approvals.request_form.quick_ends import end_of_day_words
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.scene import Scene

pytestmark = pytest.mark.slow

NEW = "/requests/new"


@pytest.mark.parametrize(("size", "theme"), LOOKS)
@pytest.mark.parametrize("query", ["", "?gpus=16", "?gpus=0"])
def test_everybody_can_use_it(
    open_page: Open, scene: Scene, size: str, theme: str, query: str
) -> None:
    page = open_page(scene.ada, NEW + query, size=size, theme=theme)
    assert violations(page) == []
    assert overflow(page) <= 0


def test_the_answer_follows_the_fingers(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, NEW)
    expect(page.get_by_text("Automatic. Yours in about 5 seconds.")).to_be_visible()
    expect(page.get_by_label("Why")).to_have_count(0)
    page.get_by_label("GPUs", exact=True).fill("16")
    expect(
        page.get_by_text("Platform leads, then engineering leadership decide.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Ask for 16 × A100").first).to_be_visible()
    page.get_by_label("Why").fill("Pretrain the detector on the November tiles.")
    page.get_by_label("GPUs", exact=True).fill("12")
    expect(page.get_by_role("button", name="Ask for 12 × A100").first).to_be_visible()
    expect(page.get_by_label("Why")).to_have_value(
        "Pretrain the detector on the November tiles."
    )
    page.get_by_role("button", name="Ask for 12 × A100").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("12 × A100 for Vision")
    assert (
        Request.objects.get().reason == "Pretrain the detector on the November tiles."
    )


def test_typing_keeps_the_focus_and_the_place(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, NEW + "?gpus=4")
    why = page.get_by_label("Why")
    with page.expect_response(re.compile("/requests/preview")):
        why.press_sequentially("For the", delay=20)
    expect(why).to_be_focused()
    expect(why).to_have_value("For the")


def test_the_nearest_automatic_ask_is_one_click_away(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    page.get_by_role("link", name="Use that").click()
    expect(page.get_by_role("button", name="Ask for 2 × A100").first).to_be_visible()
    expect(page.get_by_text("Automatic. Yours in about 5 seconds.")).to_be_visible()


def test_a_starting_point_is_chosen_for_as_long_as_the_form_says_the_same(
    open_page: Open, scene: Scene
) -> None:
    tonight = f"1 × A100 · {end_of_day_words(timezone.now())}"
    page = open_page(scene.ada, NEW)
    chosen = page.locator(".choice[aria-current]")
    expect(chosen).to_contain_text(tonight)
    page.get_by_label("GPUs", exact=True).fill("16")
    expect(chosen).to_have_count(0)
    expect(page.get_by_role("img", name="Chosen")).to_have_count(0)
    expect(page.get_by_role("button", name="Ask for 16 × A100").first).to_be_visible()
    page.get_by_label("GPUs", exact=True).fill("1")
    expect(chosen).to_contain_text(tonight)
    expect(page.get_by_role("button", name="Ask for 1 × A100").first).to_be_visible()
    page.get_by_role("button", name="1 week").click()
    expect(chosen).to_have_count(0)


def test_a_small_ask_takes_two_clicks(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, NEW)
    page.get_by_role("link", name="2 × A100 · 1 week").click()
    page.get_by_role("button", name="Ask for 2 × A100").first.click()
    expect(page.get_by_text("2 × A100 are being set up")).to_be_visible()


def test_on_a_phone_it_is_sent_from_below_the_answer_too(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW, size="phone")
    page.get_by_label("GPUs", exact=True).fill("2")
    below = page.locator("#answer").get_by_role("button", name="Ask for 2 × A100")
    expect(below).to_be_visible()
    below.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 × A100 for Vision")


# Whether something else is on top of its first line, such as what sticks to the bottom of a phone.
COVERED = """(one) => {
  const box = one.getBoundingClientRect();
  return !one.contains(document.elementFromPoint(box.left + 8, box.top + 8));
}"""


def test_on_a_phone_the_answer_is_in_sight_while_the_fields_are_filled_in(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW, size="phone")
    line = page.locator("#answer-line").get_by_role("link")
    expect(line).to_contain_text("Automatic")
    page.get_by_label("GPUs", exact=True).fill("16")
    expect(line).to_contain_text("People decide")
    expect(line).to_contain_text(" in all")
    expect(line).to_be_in_viewport(ratio=1)
    expect(page.locator("#answer .verdict")).not_to_be_in_viewport()
    # Each field that a key leads to stands above the line, and what the line says is told by the answer alone.
    for field in page.locator("#ask :is(input, select, textarea):visible").all():
        field.focus()
        assert not field.evaluate(COVERED)
    assert line.evaluate("(one) => one.closest('[aria-live], [role=status]')") is None
    assert violations(page) == []
    page.get_by_label("GPUs", exact=True).fill("0")
    expect(line).to_contain_text("No answer yet")
    line.click()
    expect(page.locator("#answer .verdict")).to_be_in_viewport(ratio=1)
    expect(page.locator("#answer-said")).to_be_in_viewport(ratio=1)


def test_beside_the_answer_no_line_repeats_it(open_page: Open, scene: Scene) -> None:
    expect(open_page(scene.ada, NEW).locator("#answer-line")).to_be_hidden()
    plain = open_page(scene.ada, NEW, size="phone", script=False)
    expect(plain.locator("#answer-line")).to_be_hidden()


def test_on_a_desk_it_is_sent_from_behind_the_last_field_too(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    page.get_by_label("Why").fill("Pretrain the detector on the November tiles.")
    page.get_by_label("Why").press("Tab")
    send = page.locator("#ask").get_by_role("button", name="Ask for 16 × A100")
    expect(send).to_be_focused()
    send.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("16 × A100 for Vision")


def test_the_kinds_of_gpu_follow_the_team(open_page: Open, scene: Scene) -> None:
    nlp = factories.team("NLP")
    factories.join(nlp, scene.ada)
    place = factories.tenancy(nlp, factories.cluster("dev"))
    factories.flavor(place.cluster, "t4", product="T4", memory_gb=16)
    page = open_page(scene.ada, NEW + "?team=vision&flavor=training/a100")
    page.get_by_label("Team").select_option("nlp")
    expect(
        page.get_by_label("Kind of GPU").get_by_role(
            "option", name=re.compile("T4 16 GB")
        )
    ).to_have_count(1)
    page.get_by_label("Kind of GPU").select_option("dev/t4")
    expect(
        page.get_by_role("button", name=re.compile("Ask for . × T4")).first
    ).to_be_enabled()


def test_a_quick_choice_sets_the_end_without_leaving_the_page(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW)
    before = page.get_by_label("Until (UTC)").input_value()
    with page.expect_response(re.compile("/requests/preview")):
        page.get_by_role("button", name="2 weeks").click()
    expect(page.get_by_label("Until (UTC)")).not_to_have_value(before)
    assert page.url.endswith(NEW)


def test_it_works_without_script(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, NEW, script=False)
    page.get_by_label("GPUs", exact=True).fill("16")
    page.get_by_label("GPUs", exact=True).press("Enter")
    expect(
        page.get_by_text("Platform leads, then engineering leadership decide.")
    ).to_be_visible()
    page.get_by_role("link", name="Use that").click()
    page.get_by_label("GPUs", exact=True).fill("1")
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Ask for 1 × A100").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 × A100 for Vision")


def test_an_old_answer_is_never_what_is_sent(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, NEW, script=False)
    page.get_by_label("GPUs", exact=True).fill("2")
    page.get_by_role("button", name="Ask for 1 × A100").first.click()
    expect(page.get_by_text("You changed it after this answer.").first).to_be_visible()
    page.get_by_role("button", name="Ask for 2 × A100").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 × A100 for Vision")


def test_a_starting_point_is_for_the_team_one_came_for(
    open_page: Open, scene: Scene
) -> None:
    other = factories.team("Weather", by=scene.ada)
    factories.join(other, scene.ada)
    factories.make_true(factories.tenancy(other, scene.tenancy.cluster))
    for slug in ("vision", "weather"):
        page = open_page(scene.ada, f"/requests/new?team={slug}")
        page.locator("a.choice").first.click()
        expect(page.get_by_label("Team")).to_have_value(slug)


def test_a_refused_form_has_the_focus_on_what_is_wrong_and_says_so_in_the_title(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/requests/new/volume")
    assert not page.title().startswith("Error: ")
    page.get_by_label("Name").fill("My_Set 1")
    expect(page.get_by_text("The answer stands here")).to_be_visible()
    send = page.get_by_role("button", name=re.compile("^Ask for")).first
    expect(send).to_have_accessible_description(re.compile("Use small letters"))
    send.press("Enter")
    summary = page.get_by_role("alert").filter(has_text="Nothing was sent yet.")
    expect(summary).to_be_focused()
    expect(page).to_have_title(re.compile("^Error: Ask for"))
    page.get_by_label("Name").press_sequentially("x", delay=20)
    expect(page.get_by_label("Name")).to_be_focused()


def test_an_answer_that_refuses_while_one_types_takes_neither_focus_nor_title(
    open_page: Open, scene: Scene
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.ada, f"/requests/{asked.pk}/edit")
    before = page.title()
    page.get_by_label("GPUs", exact=True).fill("0")
    expect(page.get_by_text("The answer stands here")).to_be_visible()
    expect(page.get_by_label("GPUs", exact=True)).to_be_focused()
    assert page.title() == before


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
@pytest.mark.parametrize("at", ["new", "edit", "renew"])
def test_enter_in_a_field_answers_and_sends_nothing(
    open_page: Open, scene: Scene, script: bool, at: str
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    held = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    assert held.allocation is not None
    path, label = {
        "new": ("/requests/new?gpus=2", "GPUs"),
        "edit": (f"/requests/{asked.pk}/edit", "GPUs"),
        "renew": (f"/allocations/{held.allocation.pk}/renew", "Until (UTC)"),
    }[at]
    before = set(Request.objects.values_list("pk", "version", "state"))
    page = open_page(scene.ada, path, script=script)
    heading = page.get_by_role("heading", level=1).inner_text()
    with page.expect_navigation():
        page.get_by_label(label, exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    expect(page.locator("#answer .verdict__sentence")).to_be_visible()
    assert set(Request.objects.values_list("pk", "version", "state")) == before


def test_what_the_answer_refuses_is_told_at_its_field(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/requests/new/volume")
    name = page.get_by_label("Name")
    name.press_sequentially("My_Set 1")
    expect(page.get_by_text("Name: Use small letters")).to_be_visible()
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description(
        re.compile("such as street-scenes.*Use small letters")
    )
    assert violations(page) == []
    name.fill("my-set-1")
    expect(page.get_by_text("Name: Use small letters")).to_have_count(0)
    expect(name).not_to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description(re.compile("street-scenes[.]$"))


def test_a_field_that_waits_to_be_filled_in_is_not_called_wrong(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/requests/new/volume")
    page.get_by_label("Size in GiB").fill("200")
    expect(page.get_by_text("Name: Still to be written.")).to_be_visible()
    name = page.get_by_label("Name")
    expect(name).to_have_accessible_description(re.compile("Still to be written"))
    assert name.get_attribute("aria-invalid") is None

"""Deciding in a real browser: on one screen, by keyboard, on a phone, and without script."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import Team
from allocations.models import Budget
from approvals.models import Request
from approvals.requests.actions import submit
from fleet.models import Flavor
from tests import factories
from tests.approvals import shop
from tests.browser.conftest import LOOKS, Open, arrives, lines, overflow, violations
from tests.scene import Scene
from web.fields import INPUT

pytestmark = pytest.mark.slow

# What of the tiles and the bar is outside the window, or has something else on top of its middle.
SEEN = """() => {
  const inside = (box) => box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
  const parts = [...document.querySelectorAll(".tile, .actions--stay .button, .verdict__sentence, .verdict__rest")];
  return parts.filter((part) => {
    const box = part.getBoundingClientRect();
    const on = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return !inside(box) || !(part.contains(on) || on?.contains(part));
  }).map((part) => part.className + ": " + JSON.stringify(part.getBoundingClientRect()));
}"""
# What of these has the bar of actions, or nothing, at the middle of its last line.
HIDDEN = """(parts) => parts.filter((part) => {
  const box = part.getBoundingClientRect();
  return !part.contains(document.elementFromPoint(box.left + 8, box.bottom - 4));
}).map((part) => part.className + ": " + part.innerText)"""
CURRENT_IS_SEEN = """() => {
  const queue = document.querySelector("[data-queue]").getBoundingClientRect();
  const row = document.querySelector("[data-queue] [aria-current]").getBoundingClientRect();
  return row.top >= queue.top && row.bottom <= queue.bottom && queue.bottom <= innerHeight;
}"""
LESS_IS_SEEN = """() => {
  const box = document.querySelector("#less-count").getBoundingClientRect();
  return document.elementFromPoint(box.left + 8, box.top + 8)?.id === "less-count";
}"""
ACTIONS = ("Approve less…", "Ask", "Reject")
# What comes into the status line of messages once the page is there, which is what a screen reader says.
HEAR = """addEventListener("DOMContentLoaded", () => {
  const said = document.documentElement.dataset;
  const hear = (changes) => changes.forEach(({addedNodes}) => addedNodes.forEach((one) => {
    if (document.readyState === "complete") said.heard = `${said.heard ?? ""}${one.textContent.trim()}\\n`;
  }));
  const line = document.querySelector(".messages");
  if (line) new MutationObserver(hear).observe(line, {childList: true});
});"""


def ask(scene: Scene, gpus: int = 16, hours: float = 1) -> Request:
    """Ada asked some hours ago."""
    now = timezone.now() - timedelta(hours=hours)
    return factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=7, now=now
    )


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_every_page(
    open_page: Open, scene: Scene, size: str, theme: str
) -> None:
    asked = ask(scene)
    held = factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    places = [
        (scene.priya, f"/approvals/{asked.pk}/"),
        (scene.priya, "/approvals/"),
        (scene.priya, "/policy/"),
        (scene.ada, "/requests/"),
        (scene.ada, f"/requests/{asked.pk}/"),
        (scene.mallory, "/requests/"),
        (scene.ada, f"/allocations/{held.pk}/give-back"),
        (scene.priya, "/teams/vision/budget"),
    ]
    for user, path in places:
        page = open_page(user, path, size=size, theme=theme)
        assert (path, violations(page), overflow(page)) == (path, [], 0)


def test_everything_is_in_sight_without_scrolling(
    open_page: Open, scene: Scene
) -> None:
    asked = ask(scene)
    page = open_page(scene.priya, f"/approvals/{asked.pk}/")
    reason = page.get_by_text("Fine-tune the detector on the November data.")
    approve = page.get_by_role("button", name="Approve", exact=True)
    for part in (
        reason,
        approve,
        page.get_by_text("Cost a day"),
        page.get_by_text("stay free").first,
    ):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800
    reason_box, approve_box = reason.bounding_box(), approve.bounding_box()
    assert reason_box is not None
    assert approve_box is not None
    assert reason_box["y"] + reason_box["height"] <= approve_box["y"]


@pytest.fixture
def largest(scene: Scene) -> list[Request]:
    """The ten largest samples: long names and words in several scripts, all rules broken, little free, a long queue."""
    words = "Nachtraining des Großmodells für die Qualitätssicherung im Werk. "
    reasons = [
        words * 20,
        "אימון מחדש של מודל הזיהוי לפני הסקירה ביום שישי. " * 12,
        "Line\n" * 40,
        "Unbroken" * 60,
        "Two sentences. Not more.",
    ]
    team = factories.team("Robotics and automation", by=scene.ada)
    Team.objects.filter(pk=team.pk).update(name="Robotik & Großküchenautomation")
    factories.join(team, scene.ada)
    other = factories.tenancy(team, scene.tenancy.cluster)
    places = (scene.tenancy, other)

    def asked(number: int, gpus: int) -> Request:
        at, since = places[number % 2], timezone.now() - timedelta(hours=40 - number)
        reason = reasons[number % 5]
        return factories.request(
            scene.ada, at, scene.flavor, gpus=gpus, days=3, reason=reason, now=since
        )

    found = [asked(number, 24 - number) for number in range(10)]
    for number in range(20):
        asked(10 + number, 3 + number % 3)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=21)
    Budget.objects.update(limit_usd=F("held_usd"))
    return found


def test_tiles_and_buttons_of_the_largest_samples_are_in_the_window(
    open_page: Open, scene: Scene, largest: list[Request]
) -> None:
    page = open_page(scene.priya, f"/approvals/{largest[0].pk}/")
    for number, asked in enumerate(largest):
        if number:
            page.goto(f"/approvals/{asked.pk}/")
        assert page.evaluate(SEEN) == [], asked.pk
        assert page.locator(".tile").count() == 4
        assert page.evaluate(CURRENT_IS_SEEN)
        assert page.evaluate("document.documentElement.scrollHeight") < 1600
        assert overflow(page) <= 0


def test_what_decides_stands_above_the_bar_and_the_rest_is_read_by_scrolling(
    open_page: Open, scene: Scene
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    page = open_page(scene.priya, f"/approvals/{ask(scene, 6).pk}/")
    decides = page.locator(".triage__one > .grid").locator(
        ".verdict__answer, .verdict > .rules > li, .hint, .change__row"
    )
    assert decides.count() == 7
    assert decides.evaluate_all(HIDDEN) == []
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    for last in ("Lapses, if nobody has decided", "Comment"):
        words = page.locator(".triage__one").get_by_text(last).first
        assert words.evaluate_all(HIDDEN) == []


@pytest.mark.parametrize(("size", "from_bottom"), [("desk", 40), ("phone", 100)])
def test_what_a_key_leads_to_is_not_under_the_bar(
    open_page: Open, scene: Scene, size: str, from_bottom: int
) -> None:
    page = open_page(scene.priya, f"/approvals/{ask(scene, 6).pk}/", size=size)
    comment = page.locator("summary", has_text="Comment")
    comment.evaluate(
        "(it, far) => scrollBy(0, it.getBoundingClientRect().bottom - innerHeight + far)",
        from_bottom,
    )
    assert comment.evaluate_all(HIDDEN) == ["link: Comment"]
    comment.focus()
    assert comment.evaluate_all(HIDDEN) == []


def test_a_long_reason_is_cut_and_opens(
    open_page: Open, scene: Scene, largest: list[Request]
) -> None:
    page = open_page(scene.priya, f"/approvals/{largest[0].pk}/")
    reason = page.locator(".reason summary")
    before = reason.bounding_box()
    reason.click()
    after = reason.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] > before["height"] + 40
    assert violations(page) == []


def test_it_approves_as_many_as_are_possible_now(open_page: Open, scene: Scene) -> None:
    asked = ask(scene, 5)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=21)
    page = open_page(scene.priya, f"/approvals/{asked.pk}/")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Approve 3 of 5").click()
    expect(
        page.get_by_text("Approved for less: 3 of 5 × A100 for Vision.")
    ).to_be_visible()


def test_the_actions_never_move(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.priya, f"/approvals/{ask(scene).pk}/")
    buttons = [page.locator("summary", has_text=name) for name in ACTIONS]
    before = [button.bounding_box() for button in buttons]
    for place in before:
        assert place is not None
        # Where it is, as a hand does: Playwright's own click scrolls first to keep a distance from the edge.
        page.mouse.click(place["x"] + 10, place["y"] + 10)
        assert [each.bounding_box() for each in buttons] == before
        box = page.locator("details[open] form").bounding_box()
        assert box is not None
        assert box["y"] >= 0


def test_it_is_decided_by_keyboard_alone(open_page: Open, scene: Scene) -> None:
    first, second = ask(scene, 3, hours=2), ask(scene, 4, hours=1)
    page = open_page(scene.priya, "/approvals/")
    page.keyboard.press("j")
    arrives(page, "3 × A100 for Vision")
    page.keyboard.press("j")
    arrives(page, "4 × A100 for Vision")
    page.keyboard.press("k")
    arrives(page, "3 × A100 for Vision")
    page.keyboard.press("a")
    page.keyboard.type("Fits the plan.")
    page.keyboard.press("Enter")
    arrives(page, "4 × A100 for Vision")
    expect(page.get_by_text("Approved: 3 × A100 for Vision.")).to_be_visible()
    page.keyboard.press("r")
    page.get_by_label("Why, and what would be possible").fill(
        "The pool is full until Monday."
    )
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Priya Raman rejected it").first).to_be_visible()
    states = dict(Request.objects.values_list("pk", "state"))
    assert states == {first.pk: "approved", second.pk: "rejected"}


def test_single_letters_are_switched_off_for_whoever_dictates(
    open_page: Open, scene: Scene
) -> None:
    address = f"/approvals/{ask(scene, 3).pk}/"
    page = open_page(scene.priya, address)
    page.wait_for_load_state("load")
    form = page.get_by_label("Why, and what would be possible")
    page.keyboard.press("?")
    page.get_by_label("Use single letters").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    expect(form).to_be_hidden()
    page.get_by_text("You: Priya Raman").locator("..").click()
    page.get_by_role("button", name="Shortcuts").click()
    page.get_by_label("Use single letters").check()
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    expect(form).to_be_visible()


def test_a_rejection_without_a_reason_is_told_at_its_field(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.priya, f"/approvals/{ask(scene).pk}/")
    page.keyboard.press("r")
    page.get_by_role("button", name="Reject", exact=True).click()
    summary = page.get_by_role("alert").filter(has_text="Nothing was decided.")
    expect(summary).to_be_focused()
    summary.get_by_role("link").press("Enter")
    reason = page.get_by_label("Why, and what would be possible")
    expect(reason).to_be_focused()
    expect(reason).to_have_attribute("aria-invalid", "true")
    expect(reason).to_have_accessible_description(re.compile("reason|why", re.I))
    assert violations(page) == []


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("script", [True, False])
def test_less_is_approved_with_what_fits(
    open_page: Open, scene: Scene, size: str, script: bool
) -> None:
    page = open_page(
        scene.priya, f"/approvals/{ask(scene, 5).pk}/", size=size, script=script
    )
    page.locator("summary", has_text="Approve less…").click()
    expect(page.get_by_label("GPUs instead of 5")).to_have_value("2")
    page.get_by_role("button", name="Approve less", exact=True).click()
    expect(page.get_by_text("of 5 asked")).to_be_visible()
    assert Request.objects.get().approved_count == 2


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_a_shorter_time_says_what_it_changes_while_it_is_typed(
    open_page: Open, scene: Scene, size: str, theme: str
) -> None:
    now = timezone.now()
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=3, days=20, now=now
    )
    page = open_page(scene.priya, f"/approvals/{asked.pk}/", size=size, theme=theme)
    page.locator("summary", has_text="Approve less…").click()
    ends, effect = page.get_by_label("Until (UTC)"), page.locator("#less-effect")
    expect(ends).to_have_value(asked.until.strftime(INPUT))
    expect(effect).to_contain_text("GPUs")
    page.get_by_label("GPUs instead of 3").fill("3")
    shorter = (now + timedelta(days=10)).replace(second=0, microsecond=0)
    ends.fill(shorter.strftime(INPUT))
    expect(effect).to_contain_text(f"{shorter:%a} {shorter.day} {shorter:%b}")
    expect(effect).to_contain_text("No longer asks for people: 20 days")
    expect(effect).to_contain_text("$1,440")
    if size == "desk":
        # On a low screen the form reaches as far as the heading.
        page.set_viewport_size({"width": 1280, "height": 680})
        assert page.evaluate(LESS_IS_SEEN)
    assert (violations(page), overflow(page)) == ([], 0)
    page.get_by_role("button", name="Approve less", exact=True).click()
    page.wait_for_url(f"**/requests/{asked.pk}/")
    expect(page.get_by_text("Granted until").first).to_be_visible()
    assert (violations(page), overflow(page)) == ([], 0)
    assert Request.objects.get().approved_until == shorter


def test_an_end_that_is_too_early_is_told_before_and_after_it_is_sent(
    open_page: Open, scene: Scene
) -> None:
    asked = ask(scene, 5)
    page = open_page(scene.priya, f"/approvals/{asked.pk}/", script=False)
    page.locator("summary", has_text="Approve less…").click()
    soon = (timezone.now() + timedelta(hours=2)).strftime(INPUT)
    # The browser would refuse it itself.
    form = page.locator("form", has=page.locator("#less-until"))
    page.get_by_label("Until (UTC)").fill(soon)
    form.evaluate("form => { form.noValidate = true }")
    page.get_by_role("button", name="Show what changes").click()
    told = page.get_by_text("Approve an end between")
    expect(told).to_be_visible()
    expect(page.get_by_label("Until (UTC)")).to_have_value(soon)
    form.evaluate("form => { form.noValidate = true }")
    page.get_by_role("button", name="Approve less", exact=True).click()
    expect(page.get_by_label("Until (UTC)")).to_have_attribute("aria-invalid", "true")
    assert Request.objects.get().state == "waiting"


def test_a_question_goes_there_and_back(open_page: Open, scene: Scene) -> None:
    asked = ask(scene, 3)
    page = open_page(scene.priya, f"/approvals/{asked.pk}/")
    page.keyboard.press("q")
    page.get_by_label("Your question").fill("Would two do?")
    page.get_by_role("button", name="Send the question").click()
    expect(page.get_by_text("Asked: 3 × A100 for Vision.")).to_be_visible()
    mine = open_page(scene.ada, f"/requests/{asked.pk}/")
    mine.get_by_label("Your answer").fill("No, three.")
    mine.get_by_role("button", name="Send the answer").click()
    expect(mine.get_by_text("Waits for platform leads", exact=True)).to_be_visible()


def test_an_open_menu_never_turns_into_another_one_when_the_request_changes(
    open_page: Open, scene: Scene
) -> None:
    now = timezone.now()
    wanted = shop.wanted(scene, "gpus", until=now + timedelta(days=9), gpus=5)
    booking = replace(wanted, starts=now + timedelta(days=7))
    asked = submit(booking, by=scene.ada, now=now)
    page = open_page(scene.ada, f"/requests/{asked.pk}/")
    page.wait_for_load_state("load")
    page.locator("summary", has_text="Withdraw").click()
    page.get_by_role("button", name="Withdraw it").focus()
    shop.approve(asked, by=[scene.priya, scene.elena], now=now)
    page.evaluate("htmx.trigger('#progress', 'refresh')")
    expect(page.locator("summary", has_text="Cancel the booking")).to_be_visible()
    expect(page.get_by_role("button", name="Withdraw it")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel it")).to_be_hidden()
    assert page.evaluate("document.activeElement.textContent.trim()") != "Cancel it"


def test_what_changes_by_itself_and_what_was_just_done_are_announced(
    open_page: Open, scene: Scene
) -> None:
    asked = ask(scene, 3)
    mine = open_page(scene.ada, f"/requests/{asked.pk}/")
    mine.wait_for_load_state("load")
    announced = mine.locator("#announced")
    expect(announced).to_be_empty()
    page = open_page(scene.priya, f"/approvals/{asked.pk}/")
    page.add_init_script(HEAR)
    page.keyboard.press("q")
    page.get_by_label("Your question").fill("Would two do?")
    page.get_by_role("button", name="Send the question").click()
    # The page's policy refuses the `eval` with which Playwright's `wait_for_function` looks a second time.
    told = re.compile("Asked: 3 × A100 for Vision.")
    expect(page.locator("html")).to_have_attribute("data-heard", told)
    mine.evaluate("htmx.trigger('#progress', 'refresh')")
    expect(announced).to_have_text("Waits for an answer from you")


def test_giving_back_shows_its_effect_and_is_done(
    open_page: Open, scene: Scene
) -> None:
    held = factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    page = open_page(scene.ada, f"/allocations/{held.pk}/give-back")
    page.get_by_label("GPUs to give back").fill("1")
    page.get_by_role("button", name="Give back 1 × A100").click()
    expect(page.get_by_text("1 × A100 went back to the pool.")).to_be_visible()


def test_who_takes_back_keeps_the_reason_while_they_look_at_what_changes(
    open_page: Open, scene: Scene
) -> None:
    held = factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    page = open_page(scene.priya, f"/allocations/{held.pk}/give-back")
    page.get_by_label("GPUs to give back").fill("1")
    reason = page.get_by_label("Why you take it back")
    reason.fill("Idle for two days.")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("button", name="Give back 1 × A100")).to_be_visible()
    expect(reason).to_have_value("Idle for two days.")
    page.get_by_role("button", name="Give back 1 × A100").click()
    expect(page.get_by_text("1 × A100 went back to the pool.")).to_be_visible()


def test_a_form_that_a_key_opens_is_typed_into_at_once(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.priya, f"/approvals/{ask(scene).pk}/")
    page.keyboard.press("r")
    field = page.get_by_label("Why, and what would be possible")
    expect(field).to_be_focused()
    page.keyboard.type("All quiet")
    expect(field).to_have_value("All quiet")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_what_waits_is_read_in_four_lines_and_opened_from_anywhere(
    open_page: Open, scene: Scene, theme: str
) -> None:
    first, other = ask(scene, hours=5), ask(scene, 3)
    # Its price has doubled: both stand there, the longest line that there is.
    Flavor.objects.filter(pk=scene.flavor.pk).update(
        price_per_gpu_hour=F("price_per_gpu_hour") * 2
    )
    page = open_page(scene.priya, "/approvals/", size="phone", theme=theme)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    for row in rows.all():
        assert lines(row) <= 4
        for words in (scene.team.name, "Ada Okafor", "A100", "as asked;", "UTC"):
            assert words in row.inner_text()
    assert violations(page) == []
    assert overflow(page) == 0
    rows.nth(1).get_by_role("checkbox").check()
    assert page.url.endswith("/approvals/")
    box = rows.nth(1).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 16)
    page.wait_for_url(f"**/approvals/{other.pk}/")
    assert first.pk != other.pk


def test_on_a_desk_what_waits_is_a_table(open_page: Open, scene: Scene) -> None:
    ask(scene)
    row = open_page(scene.priya, "/approvals/").locator("tbody tr")
    assert row.evaluate("row => getComputedStyle(row).display") == "table-row"
    expect(row).to_contain_text("request ")
    assert lines(row) <= 3

"""Deciding in a real browser: on one screen, by keyboard, on a phone, and without script."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from approvals.models import Request
from tests import factories
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations
from tests.scene import Scene

ACTIONS = ("Approve less…", "Ask", "Reject")


def ask(scene: Scene, gpus: int = 16, hours: float = 1) -> Request:
    """Ada asked some hours ago."""
    now = timezone.now() - timedelta(hours=hours)
    return factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=7, now=now)


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_every_page(open_page: Open, scene: Scene, size: str, theme: str) -> None:
    asked = ask(scene)
    held = factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    places = [(scene.priya, f"/approvals/{asked.pk}/"), (scene.priya, "/approvals/"), (scene.priya, "/policy/"),
              (scene.ada, "/requests/"), (scene.ada, f"/requests/{asked.pk}/"), (scene.mallory, "/requests/"),
              (scene.ada, f"/allocations/{held.pk}/give-back"), (scene.priya, "/teams/vision/budget")]  # fmt: skip
    for user, path in places:
        page = open_page(user, path, size=size, theme=theme)
        assert (path, violations(page), overflow(page)) == (path, [], 0)


def test_everything_is_in_sight_without_scrolling(open_page: Open, scene: Scene) -> None:
    asked = ask(scene)
    page = open_page(scene.priya, f"/approvals/{asked.pk}/")
    reason = page.get_by_text("Fine-tune the detector on the November data.")
    approve = page.get_by_role("button", name="Approve", exact=True)
    for part in (reason, approve, page.get_by_text("Cost a day"), page.get_by_text("stay free")):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800
    reason_box, approve_box = reason.bounding_box(), approve.bounding_box()
    assert reason_box is not None
    assert approve_box is not None
    assert reason_box["y"] + reason_box["height"] <= approve_box["y"]


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
    page.get_by_label("Why, and what would be possible").fill("The pool is full until Monday.")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Priya Raman rejected it").first).to_be_visible()
    states = dict(Request.objects.values_list("pk", "state"))
    assert states == {first.pk: "approved", second.pk: "rejected"}


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("script", [True, False])
def test_less_is_approved_with_what_fits(open_page: Open, scene: Scene, size: str, script: bool) -> None:
    page = open_page(scene.priya, f"/approvals/{ask(scene, 5).pk}/", size=size, script=script)
    page.locator("summary", has_text="Approve less…").click()
    expect(page.get_by_label("GPUs instead of 5")).to_have_value("2")
    page.get_by_role("button", name="Approve less", exact=True).click()
    expect(page.get_by_text("of 5 asked")).to_be_visible()
    assert Request.objects.get().approved_count == 2


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


def test_giving_back_shows_its_effect_and_is_done(open_page: Open, scene: Scene) -> None:
    held = factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    page = open_page(scene.ada, f"/allocations/{held.pk}/give-back")
    page.get_by_label("GPUs to give back").fill("1")
    page.get_by_role("button", name="Give back 1 × A100").click()
    expect(page.get_by_text("1 × A100 went back to the pool.")).to_be_visible()


def test_a_form_that_a_key_opens_is_typed_into_at_once(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.priya, f"/approvals/{ask(scene).pk}/")
    page.keyboard.press("r")
    field = page.get_by_label("Why, and what would be possible")
    expect(field).to_be_focused()
    page.keyboard.type("All quiet")
    expect(field).to_have_value("All quiet")

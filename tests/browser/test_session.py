"""A session that ends while its page is open: nothing is blanked, nothing that was typed is lost, and it goes on."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, Response, expect

from accounts.models import User
from approvals.models import Request
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, session_of, violations
from tests.scene import Scene

pytestmark = pytest.mark.slow

NEW = "/requests/new"
WHY = "Pretrain the detector on the November tiles."
SIGNED_OUT = "You were signed out."
HTMX_REFRESH = "document.querySelectorAll('[data-live]').forEach((part) => htmx.trigger(part, 'refresh'))"
SEND_AND_STAY = "form => fetch(form.action, {method: 'POST', body: new FormData(form), redirect: 'manual'})"
# What a form that was left alone for a while does: the session was last known a minute ago.
LATER = "const then = Date.now() + 60_000; Date.now = () => then"


def deleted(page: Page) -> None:
    """The session's row is gone, as after a departure."""
    Session.objects.all().delete()


def expired(page: Page) -> None:
    """The session's hours are over."""
    Session.objects.update(expire_date=timezone.now() - timedelta(minutes=1))


def signed_out(page: Page) -> None:
    """Its person signed out in another tab."""
    other = page.context.new_page()
    other.goto("/tokens/")
    other.locator("form[action='/sign-out']").evaluate(SEND_AND_STAY)
    other.close()


def type_and_leave(page: Page) -> None:
    """Say why, leave the field, and have both answers on the page.

    One that was still on its way when the session ended would tell the page that the server knew it after all, or
    that it did not.
    """
    why = page.get_by_label("Why")
    for act in (partial(why.fill, WHY), why.blur):
        with page.expect_response(tells_why):
            act()
        expect(page.locator(".htmx-request")).to_have_count(0)


def tells_why(response: Response) -> bool:
    """Whether it answers a preview in which the reason stood: the page may have asked for others before."""
    return "/requests/preview" in response.url and "detector" in (
        response.request.post_data or ""
    )


WAYS = [deleted, expired, signed_out]
End = Callable[[Page], None]


def sign_in_again(context: BrowserContext, user: User, banner_of: Page) -> None:
    """Press the banner's link, and be signed in in the tab that it opens."""
    with context.expect_page() as opened:
        banner_of.get_by_role("link", name="Sign in again").click()
    tab = opened.value
    expect(tab.get_by_role("button", name="Sign in with Microsoft")).to_be_visible()
    cookie = {
        "name": "qm_session",
        "value": session_of(user),
        "url": tab.url.split("/sign-in")[0],
    }
    context.add_cookies([cookie])  # type: ignore[list-item]
    tab.goto("/sign-in/done")
    expect(tab.get_by_role("heading", level=1)).to_have_text("You are signed in again")


@pytest.mark.parametrize("end", WAYS)
def test_a_live_page_stays_as_it_is_and_says_so(
    open_page: Open, scene: Scene, end: End
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    for path, words in (("/teams/vision/", "What the team holds"), ("/", "A100")):
        page = open_page(scene.ada, path)
        expect(page.locator("main")).to_contain_text(words)
        end(page)
        page.evaluate(HTMX_REFRESH)
        expect(page.get_by_text(SIGNED_OUT)).to_be_visible()
        expect(page.locator("main")).to_contain_text(words)
        sign_in_again(page.context, scene.ada, page)
        expect(page.get_by_text(SIGNED_OUT)).to_be_hidden()
        page.context.close()


@pytest.mark.parametrize("end", WAYS)
def test_a_form_in_mid_typing_goes_on_after_signing_in_in_another_tab(
    open_page: Open, scene: Scene, end: End
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    expect(
        page.get_by_text("Platform leads, then engineering leadership decide.")
    ).to_be_visible()
    end(page)
    page.get_by_label("Why").fill(WHY)
    expect(page.get_by_text(SIGNED_OUT)).to_be_visible()
    expect(
        page.get_by_text("Platform leads, then engineering leadership decide.")
    ).to_be_visible()
    expect(page.get_by_text("Sign in with Microsoft")).to_have_count(0)
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(
        page.get_by_text(
            "Nothing was sent yet: it is sent as soon as you are signed in"
        )
    ).to_be_visible()
    sign_in_again(page.context, scene.ada, page)
    expect(page.get_by_role("heading", level=1)).to_have_text("16 × A100 for Vision")
    assert Request.objects.get().reason == WHY


def test_what_was_typed_is_kept_in_the_page_and_its_token_renewed(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    deleted(page)
    page.get_by_label("Why").fill(WHY)
    expect(page.get_by_text(SIGNED_OUT)).to_be_visible()
    page.context.clear_cookies(name="qm_csrf")  # signing in renews it
    sign_in_again(page.context, scene.ada, page)
    expect(page.get_by_text(SIGNED_OUT)).to_be_hidden()
    expect(page.get_by_label("Why")).to_have_value(WHY)
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("16 × A100 for Vision")


def test_a_form_whose_session_ended_unseen_is_not_sent_into_nothing(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    type_and_leave(page)
    expect(page.get_by_role("button", name="Ask for 16 × A100").first).to_be_enabled()
    deleted(page)
    page.evaluate(LATER)
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(
        page.get_by_text(
            "Nothing was sent yet: it is sent as soon as you are signed in"
        )
    ).to_be_visible()
    sign_in_again(page.context, scene.ada, page)
    expect(page.get_by_role("heading", level=1)).to_have_text("16 × A100 for Vision")
    assert Request.objects.get().reason == WHY


def test_what_one_person_typed_is_not_sent_as_another(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    deleted(page)
    page.get_by_label("Why").fill(WHY)
    expect(page.get_by_text(SIGNED_OUT)).to_be_visible()
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    sign_in_again(page.context, scene.priya, page)
    expect(page.get_by_text("Somebody else signed in meanwhile.")).to_be_visible()
    expect(page.get_by_label("Why")).to_have_value(WHY)
    assert not Request.objects.exists()


@pytest.mark.parametrize("script", [True, False])
def test_a_form_that_reaches_the_server_too_late_shows_what_was_typed(
    open_page: Open, scene: Scene, *, script: bool
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16", script=script)
    if script:
        type_and_leave(page)
    else:
        page.get_by_label("Why").fill(WHY)
    deleted(page)
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You were signed out")
    expect(page.get_by_text(WHY)).to_be_visible()
    assert not Request.objects.exists()


def test_without_script_a_form_is_sent_after_signing_in_in_another_tab(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16", script=False)
    page.get_by_label("Why").fill(WHY)
    # Signing in anew renews the token of forms: the one on this page is too old now.
    page.context.clear_cookies(name="qm_csrf")
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(page.get_by_text("You are signed in as Ada Okafor")).to_be_visible()
    expect(page.get_by_text(WHY)).to_be_visible()
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("16 × A100 for Vision")
    assert Request.objects.get().reason == WHY


def test_what_was_kept_is_looked_at_with_its_answer_before_it_is_sent(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16", script=False)
    page.get_by_label("Why").fill(WHY)
    page.context.clear_cookies(name="qm_csrf")
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(page.get_by_text("Same", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Look at it first").click()
    expect(page.get_by_label("Why")).to_have_value(WHY)
    expect(page.locator("#answer")).to_contain_text("In all")
    assert not Request.objects.exists()
    page.get_by_role("button", name="Ask for 16 × A100").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("16 × A100 for Vision")


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_the_banner_is_for_everybody(
    open_page: Open, scene: Scene, size: str, theme: str
) -> None:
    page = open_page(scene.ada, "/", size=size, theme=theme)
    deleted(page)
    page.evaluate(HTMX_REFRESH)
    expect(page.get_by_text(SIGNED_OUT)).to_be_visible()
    assert violations(page) == []
    assert overflow(page) <= 0
    page.screenshot(path=f"/tmp/pages-banner-{size}.png")


def test_after_back_the_answer_is_for_what_the_field_says(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, NEW + "?gpus=16")
    page.get_by_label("GPUs", exact=True).fill("3")
    expect(page.get_by_role("button", name="Ask for 3 × A100").first).to_be_visible()
    page.goto("/teams/")
    page.go_back()
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("3")
    expect(page.get_by_role("button", name="Ask for 3 × A100").first).to_be_visible()
    expect(page.locator("#answer ins")).to_have_text(["3 GPUs", "12 %", "$72"])

"""A part of an open page that cannot be fetched anew any more stays as it is, and the page says so."""

import pytest
from django.urls import reverse
from playwright.sync_api import Route, expect

from accounts.models import Membership
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.browser.test_session import HTMX_REFRESH
from tests.scene import Scene

pytestmark = pytest.mark.slow

HELD = "What the team holds"
GONE = "What you see here is from before."


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_what_one_may_no_longer_see_stays_and_is_said_to_be_old(
    open_page: Open, scene: Scene, size: str, theme: str
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    page = open_page(scene.ada, "/teams/vision/", size=size, theme=theme)
    Membership.objects.filter(user=scene.ada).delete()
    page.evaluate(HTMX_REFRESH)
    expect(page.locator("[data-status]")).to_contain_text(GONE)
    expect(page.locator("main")).to_contain_text(HELD)
    assert violations(page) == []
    assert overflow(page) <= 0
    page.screenshot(path=f"/tmp/pages-gone-{size}.png")


@pytest.mark.parametrize("status", [403, 404, 409, 413, 429, 500])
def test_once_it_comes_again_nothing_is_said_any_more(
    open_page: Open, scene: Scene, status: int
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor)
    page = open_page(scene.ada, "/teams/vision/")

    def refuse(route: Route) -> None:
        route.fulfill(
            status=status,
            content_type="text/html",
            body="<title>No</title><main>No</main>",
        )

    page.route("**/teams/vision/", refuse)
    page.evaluate(HTMX_REFRESH)
    expect(page.locator("[data-status]")).not_to_be_empty()
    expect(page.locator("main")).to_contain_text(HELD)
    page.unroute("**/teams/vision/")
    page.evaluate(HTMX_REFRESH)
    expect(page.locator("[data-status]")).to_be_empty()
    expect(page.locator("main")).to_contain_text(HELD)


def test_a_part_that_renews_itself_well_takes_nothing_back_that_is_said_of_another(
    open_page: Open, scene: Scene
) -> None:
    request = scene.ask(20)
    page = open_page(scene.priya, f"/requests/{request.pk}/")
    own = f"**/requests/{request.pk}/"

    def refuse(route: Route) -> None:
        route.fulfill(
            status=404,
            content_type="text/html",
            body="<title>No</title><main>No</main>",
        )

    page.route(own, refuse)
    page.evaluate(HTMX_REFRESH)
    expect(page.locator("[data-status]")).to_contain_text(GONE)
    for _ in range(2):  # the second begins once the first is in the page
        with page.expect_response(f"**{reverse('rail')}"):
            page.evaluate("htmx.trigger(document.querySelector('#rail'), 'refresh')")
    expect(page.locator("[data-status]")).to_contain_text(GONE)
    page.unroute(own)
    page.evaluate(HTMX_REFRESH)
    expect(page.locator("[data-status]")).to_be_empty()

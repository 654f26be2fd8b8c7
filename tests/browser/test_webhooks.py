"""Webhooks in a real browser: added, the secret copied, and made anew."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from notices.models import Channel
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations
from tests.posting import posting
from tests.scene import Scene

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_a_lead_adds_a_webhook_and_makes_its_secret_anew(
    scene: Scene,
    open_page: Open,
    settings: Any,
    tmp_path_factory: pytest.TempPathFactory,
    size: str,
    theme: str,
) -> None:
    page = open_page(scene.priya, "/settings/channels/", size=size, theme=theme)
    expect(page.get_by_text("QM_WEBHOOK_RECEIVERS")).to_be_visible()
    looks_right(page)
    with posting(tmp_path_factory.mktemp("post")) as post:
        host = post.post.described["webhook_host"]
        settings.ENV = settings.ENV.model_copy(
            update={
                "webhook_hosts_allowed": [host],
                "webhook_receivers": [host],
                "ca_file": post.ca,
            }
        )
        page.reload()
        page.get_by_role("link", name="Add a webhook").click()
        arrives(page, "Add a webhook")
        looks_right(page)
        page.get_by_label("Name").fill("Ticket robot")
        page.get_by_label("Address of its receiver").fill(
            "https://hooks.slack.com/services/x"
        )
        page.get_by_label("A request was approved, by people or by the policy").check()
        page.get_by_role("button", name="Add the webhook").click()
        expect(page.get_by_text("Nothing is sent to this host").first).to_be_visible()
        looks_right(page)
        page.get_by_label("Address of its receiver").fill(
            post.post.described["webhook"]
        )
        page.get_by_role("button", name="Add the webhook").click()
        arrives(page, "Secret of Ticket robot")
    expect(page.get_by_text("it is not shown again")).to_be_visible()
    first = page.locator(".copy__value").inner_text()
    assert first.startswith("whsec_")
    looks_right(page)
    page.get_by_role("link", name="Go on to the webhook").click()
    arrives(page, "Ticket robot")
    assert first not in page.content()
    looks_right(page)
    page.get_by_role("link", name="Make a new secret…").click()
    arrives(page, "New secret of Ticket robot")
    looks_right(page)
    page.get_by_role("button", name="Make a new secret").click()
    arrives(page, "Secret of Ticket robot")
    assert page.locator(".copy__value").inner_text() != first
    looks_right(page)
    page.get_by_role("link", name="Go on to the webhook").click()
    expect(page.get_by_text("is signed with the one before as well")).to_be_visible()
    looks_right(page)
    assert Channel.objects.get().events == ["request.approved"]


def looks_right(page: Page) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    assert violations(page) == []
    assert overflow(page) <= 0

"""JupyterHubs in a real browser: connected, given a key and disconnected, on a desk and on a phone, in both themes."""

from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Page, expect

from notebooks.models import Hub
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.scene import Scene

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_a_hub_is_connected_given_a_key_and_disconnected(
    scene: Scene,
    open_page: Open,
    size: str,
    theme: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "hub").write_text("secret")
    monkeypatch.setattr(settings.ENV, "hub_credentials_dir", tmp_path)
    cluster = scene.flavor.cluster
    page = open_page(scene.priya, "/catalogue/", size=size, theme=theme)
    page.get_by_role("link", name="JupyterHubs").click()
    looks_right(page)
    page.get_by_role("link", name=cluster.title).first.click()
    page.get_by_label("Address", exact=True).fill("https://127.0.0.1")
    page.get_by_label("Token file").fill("hub")
    page.get_by_role("button", name="Connect the hub").click()
    expect(page.get_by_text("not among the hosts allowed").first).to_be_visible()
    looks_right(page)
    page.get_by_label("Address", exact=True).fill("https://hub.example.com")
    page.get_by_role("button", name="Connect the hub").click()
    expect(
        page.get_by_text("A worker observes the hub within a minute.")
    ).to_be_visible()
    looks_right(page)
    page.get_by_role("button", name="Make its key").click()
    expect(page.get_by_text("Copy the key now")).to_be_visible()
    looks_right(page)
    Hub.objects.update(
        reachable=False,
        looked_at=timezone.now(),
        failures=1,
        message="hub.example.com cannot be reached.",
    )
    page.goto(page.url.removesuffix("/key"))
    expect(page.get_by_text("hub.example.com cannot be reached.")).to_be_visible()
    looks_right(page)
    page.get_by_role("link", name="Disconnect").click()
    looks_right(page)
    page.get_by_role("button", name="Disconnect").click()
    expect(
        page.get_by_text(f"The hub of {cluster.title} is disconnected.")
    ).to_be_visible()
    looks_right(page)


def looks_right(page: Page) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    assert violations(page) == []
    assert overflow(page) <= 0

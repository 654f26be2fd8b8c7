"""A real browser against a live server: signed in, in light and dark, on a desk and on a phone, with axe at hand."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from accounts.views import BACKEND
from tests.scene import Scene
from tests.scene import scene as make

AXE = Path(__file__).parents[1] / "assets" / "axe.min.js"
DESK: ViewportSize = {"width": 1280, "height": 800}
# Half of a wide screen: the narrowest window that still has the rail.
HALF: ViewportSize = {"width": 960, "height": 1000}
TABLET: ViewportSize = {"width": 820, "height": 1180}
PHONE: ViewportSize = {"width": 390, "height": 844}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
]
SIZES = {"desk": DESK, "half": HALF, "tablet": TABLET, "phone": PHONE}
# How long what must come is waited for, in milliseconds: however busy the machine is, only a failure waits so long.
PATIENCE = 30_000
# Each size and each theme once: together they would show nothing more.
LOOKS = [("desk", "light"), ("phone", "dark")]

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module: while it lives, Playwright's loop runs in this thread and nobody else's can."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django would take every query for one made from async code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=PATIENCE)
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=ARGUMENTS
        )
        yield chromium
        chromium.close()


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """A team on a cluster with the people around it, saved where the live server sees it."""
    return make()


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer) -> Iterator[Open]:
    """Opens a page as somebody: `open_page(user, path, size="phone", theme="dark", script=False, zone="UTC")`."""
    contexts = []

    def show(
        user: User,
        path: str,
        *,
        size: str = "desk",
        theme: str = "light",
        script: bool = True,
        zone: str = "UTC",
    ) -> Page:
        context = browser.new_context(
            viewport=SIZES[size],
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=script,
            reduced_motion="reduce",
            timezone_id=zone,
            base_url=live_server.url,
        )
        contexts.append(context)
        context.add_cookies(
            [{"name": "qm_session", "value": session_of(user), "url": live_server.url}]
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(path)
        return page

    yield show
    for context in contexts:
        context.close()


def session_of(user: User) -> str:
    """A session key of somebody who has signed in."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = BACKEND
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


def arrives(page: Page, heading: str) -> None:
    """Waits for the page with this heading, and for its scripts: a key pressed before those is heard by nobody."""
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.wait_for_load_state("load")


def violations(page: Page) -> list[str]:
    """What axe finds wrong on the page, a line each, once all of it is there."""
    page.wait_for_load_state("load")
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate(f"axe.run({{runOnly: {json.dumps(RULES)}}})")
    return [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in found["violations"]]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the screen."""
    return int(
        page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    )


# The lines that something is read in: words whose middles are less than half a line apart stand on one.
LINES = """(row) => {
  const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), middles = [];
  while (walk.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    for (const box of walk.currentNode.data.trim() ? range.getClientRects() : []) {
      if (box.width > 1) middles.push((box.top + box.bottom) / 2);
    }
  }
  middles.sort((one, other) => one - other);
  return middles.filter((at, n) => n === 0 || at - middles[n - 1] > 8).length;
}"""


def lines(of: Locator) -> int:
    """How many lines somebody reads it in."""
    return int(of.evaluate(LINES))

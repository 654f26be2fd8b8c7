"""A run that waits starts before one's eyes in a real browser, and its log scrolls."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from portal.http.handler import OneThreadHandler
from sandbox.serving import Served, listen, port_of
from tests.browser.conftest import DESK, PATIENCE, session_of
from tests.services.process import wait_until
from tests.serving import serving
from tests.workloads.conftest import (
    Watched,
    is_read,
    is_seen,
    kubernetes,
    kubernetes_server,
    watched,
    watching,
    worker_pass,
)
from tests.workloads.test_runs import submit
from workloads.models import Run
from workloads.runs import actions
from workloads.runs.logs.reading import KEPT, POD_GONE

pytestmark = pytest.mark.slow

__all__ = ["kubernetes", "kubernetes_server", "watched"]
# The sandbox writes a line a second: long ones fill the page soon.
LONG_LINES = "\n".join(f"step {number} of 60 {'word ' * 500}" for number in range(60))


# What a screen reader says meanwhile: every text that comes into a status line.
RECORD = """() => {
  window.heard = [];
  for (const line of document.querySelectorAll("[role=status]")) {
    const hear = () => line.textContent.trim() && window.heard.push(line.textContent.trim());
    new MutationObserver(hear).observe(line, {childList: true, characterData: true, subtree: true});
  }
}"""


@pytest.fixture
def portal(watched: Watched) -> Iterator[str]:
    """The portal as production serves it, streams too."""
    bound = listen(0)
    application: Any = OneThreadHandler()
    with serving(Served(application, bound, None)):
        yield f"http://127.0.0.1:{port_of(bound)}"


def seen(browser: Browser, portal: str, by: Watched, path: str) -> Page:
    """A page of Ada's."""
    context = browser.new_context(
        viewport=DESK, reduced_motion="reduce", base_url=portal
    )
    context.add_cookies(
        [{"name": "qm_session", "value": session_of(by.ada), "url": portal}]
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(path)
    return page


def until(run: Run, state: str) -> None:
    """Until a run is in this state."""

    def reached() -> bool:
        worker_pass()
        return is_seen(run, state)

    wait_until(reached, what=f"{run.name} to be {state}")


def test_a_run_that_waits_starts_before_ones_eyes_and_its_log_scrolls(
    browser: Browser, portal: str, watched: Watched
) -> None:
    first = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        until(first, "running")
        second = submit(watched, key="two")
        pod = second.manifests[-1]["spec"]["template"]
        pod["metadata"].setdefault("annotations", {})["test/log"] = LONG_LINES
        second.save(update_fields=["manifests"])
        until(second, "waiting")
        page = seen(browser, portal, watched, f"/runs/{second.pk}")
        listed = seen(browser, portal, watched, f"/teams/{watched.team.slug}/runs")
        expect(listed.locator("#runs tbody tr").first).to_contain_text("Waiting")
        expect(page.locator("#heading")).to_contain_text("Waiting")
        expect(page.locator("#progress")).to_contain_text("number 1 of 1 in the line")
        expect(page.locator("[data-log-state]")).to_have_text("The run has no pod yet.")
        page.evaluate(RECORD)
        for _ in range(2):
            # Asked for again and again, it says so once.
            page.wait_for_event("request", lambda asked: "/log" in asked.url)
        assert page.evaluate("window.heard") == []
        file = page.get_by_role("link", name="Download", exact=True)
        expect(file).to_be_hidden()
        actions.stop(first.pk, by=watched.ada, now=timezone.now())
        until(second, "running")
        expect(page.locator("#heading")).to_contain_text("Running")
        assert any("runs" in text for text in page.evaluate("window.heard"))
        expect(listed.locator("#runs tbody tr").first).to_contain_text("Running")
        lines = page.locator("[data-log-lines]")
        expect(lines).to_contain_text("step 3 of 60")
        expect(file).to_be_visible()
        assert page.evaluate("document.querySelector('[data-log-lines]').scrollTop") > 0
        page.get_by_placeholder("Show lines with").fill("step 2 of")
        expect(lines.locator("span:not([hidden])")).to_have_count(1)
        page.get_by_text("Stop", exact=True).click()
        expect(page.get_by_role("link", name="Download the log")).to_be_visible()
        page.get_by_role("button", name="Stop the run").click()
        expect(page.locator("#heading")).to_contain_text("Being stopped")
        # The page was loaded anew: who begins to follow only once the pod is gone is told of what was kept.
        expect(page.locator("[data-log-state]")).to_have_text("Live")
        until(second, "stopped")
        expect(page.locator("#heading")).to_contain_text("Stopped")
        expect(page.locator("[data-log-state]")).to_have_text(POD_GONE)
        expect(page.get_by_text("Follow", exact=True)).to_be_hidden()
        page.reload()
        expect(page.locator("#logs")).to_contain_text("step 2 of")
        expect(page.locator("[data-log-state]")).to_have_text(KEPT)
        page.context.close()
        listed.context.close()

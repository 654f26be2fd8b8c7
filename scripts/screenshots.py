"""Takes the pictures of docs/images anew, from a demo of its own: `make screenshots`."""

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from scripts.demo import start
from scripts.demo_processes import Demo, DemoFailed, free_port
from scripts.packages import ROOT

IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=800)
# Nothing but loopback is asked for, and nothing moves while a picture is taken.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
LARGEST_BYTES = 180_000
CLIMATE = "00000000-0000-4000-9000-000000000009"
REASON = "Retrain the yearly forecast before the review on Friday."


class Tour:
    """The README's tour as people take it, with a picture of each page that it shows."""

    def __init__(self, demo: Demo, browser: Browser, folder: Path) -> None:
        self.demo, self.url, self.browser, self.folder = demo, demo.url, browser, folder

    def take(self) -> None:
        """Every picture, in order."""
        ada = self.sign_in("Ada Okafor")
        self.onboard(ada)
        self.ask(ada)
        self.decide("Priya Raman", picture="decide")
        self.decide("Elena Petrova", picture="")
        ada.goto(f"{self.url}/teams/climate/")
        self.reload_until_gone(ada, "Setting up")
        self.picture(ada, "team")
        self.notebooks(ada)
        self.azure(ada)

    def sign_in(self, name: str) -> Page:
        """A new browser in which this person is signed in."""
        context = self.browser.new_context(
            viewport=SIZE,
            color_scheme="light",
            reduced_motion="reduce",
            timezone_id="UTC",
            locale="en-US",
        )
        page = context.new_page()
        page.goto(f"{self.url}/requests/")
        page.get_by_role("button", name=re.compile("Sign in")).click()
        page.get_by_role("button", name=name).click()
        page.wait_for_url(f"{self.url}/requests/")
        return page

    def onboard(self, page: Page) -> None:
        """Climate comes on board with two A100, and its objects tick."""
        page.goto(f"{self.url}/teams/new")
        page.get_by_label("name", exact=False).first.fill("Climate")
        page.locator(f"input[name=entra_group][value='{CLIMATE}']").check(force=True)
        page.locator("[name=cost_centre]").fill("CC-4300")
        page.get_by_role("button", name="Next: where").click()
        page.locator("[name=project]").fill("forecast")
        page.locator("input[name=cluster][value=training-eastus]").check(force=True)
        page.get_by_role("button", name="Next: start").click()
        page.locator("input[name=size][value=none]").check(force=True)
        page.get_by_role("button", name="Next: review").click()
        page.get_by_role("button", name="Bring Climate on board").click()
        page.wait_for_url(f"{self.url}/teams/climate/onboarding")
        expect(page.locator("main")).to_contain_text("objects ready", timeout=30_000)
        page.reload()
        for folded in page.locator("main details:not([open]) > summary").all():
            folded.click()
        self.picture(page, "onboarding")

    def ask(self, page: Page) -> None:
        """Two are automatic; of sixteen is said before sending who decides."""
        page.goto(f"{self.url}/requests/new?team=climate")
        page.get_by_role("link", name=re.compile("2 × A100 · 1 week")).click()
        expect(page.locator("#answer")).to_contain_text("2 GPUs")
        self.picture(page, "ask-2")
        page.get_by_role("button", name=re.compile("^Ask for 2")).first.click()
        page.wait_for_url(re.compile(r"/requests/\d+/"))
        # In its first half minute a new installation has not read yet whose seats they are.
        page.goto(
            f"{self.url}/requests/new?team=climate&flavor=training-eastus/a100-80gb&gpus=16"
        )
        self.reload_until_gone(page, "has not read yet who", seconds=90)
        page.goto(f"{self.url}/requests/new?team=climate")
        page.get_by_role("link", name=re.compile("8 × A100 · 3 days")).click()
        page.locator("[name=gpus]").fill("16")
        expect(page.locator("#answer")).to_contain_text("16 GPUs")
        page.locator("[name=reason]").fill(REASON)
        self.picture(page, "ask-16")
        page.get_by_role("button", name=re.compile("^Ask for 16")).first.click()
        page.wait_for_url(re.compile(r"/requests/\d+/"))
        self.asked = page.url.rstrip("/").rsplit("/", 1)[1]

    def notebooks(self, page: Page) -> None:
        """The cards of profiles, and a notebook that was launched from one."""
        self.demo.connect_hub()
        page.goto(f"{self.url}/teams/climate/notebooks")
        self.reload_until_gone(page, "has no JupyterHub", seconds=60)
        self.picture(page, "notebooks")
        card = page.locator("form:has([name=profile][value=a100])")
        card.get_by_role("button", name=re.compile("^Launch")).click()
        page.wait_for_url(re.compile(r"/notebooks/\d+"))
        expect(page.locator("main").get_by_role("link", name="Open")).to_be_visible(
            timeout=90_000
        )
        page.reload()
        self.picture(page, "notebook")

    def azure(self, page: Page) -> None:
        """What stops more GPUs, which limits come near, and machines that are reserved."""
        page.goto(f"{self.url}/clusters/training-eastus/chain?flavor=a100-80gb&gpus=64")
        self.picture(page, "chain")
        page.goto(f"{self.url}/capacity/")
        self.picture(page, "capacity")
        page.get_by_role("link", name=re.compile("NDAMSv4_A100Family")).first.click()
        self.picture(page, "limit")
        page.goto(
            f"{self.url}/requests/new/reservation?team=climate&region=eastus"
            "&vm_size=Standard_NC64as_T4_v3&instances=2&nodes_for=dev-eastus/t4-16gb"
        )
        page.locator("[name=reason]").fill(REASON)
        page.get_by_role("button", name=re.compile("^Ask for 2")).first.click()
        page.wait_for_url(re.compile(r"/requests/\d+/"))
        self.asked = page.url.rstrip("/").rsplit("/", 1)[1]
        for lead in ("Priya Raman", "Elena Petrova"):
            self.decide(lead, picture="")
        page.goto(f"{self.url}/requests/{self.asked}/")
        self.reload_until_gone(page, "Setting up", seconds=60)
        page.goto(f"{self.url}/capacity/reservations/")
        page.get_by_role("link", name=re.compile("NC64as_T4_v3")).first.click()
        self.picture(page, "reservation")

    def decide(self, name: str, *, picture: str) -> None:
        """Approve the open step of the sixteen."""
        page = self.sign_in(name)
        page.goto(f"{self.url}/approvals/{self.asked}/")
        if picture:
            self.picture(page, picture)
        # Closed any sooner, the browser would not send it.
        with page.expect_response(lambda answer: answer.request.method == "POST"):
            page.get_by_role("button", name=re.compile("^Approve$")).first.click()
        page.context.close()

    def reload_until_gone(self, page: Page, words: str, *, seconds: float = 30) -> None:
        """Reload until the page says these words no more; raises TimeoutError after so many seconds."""
        deadline = time.monotonic() + seconds
        while words in page.locator("main").inner_text():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{page.url} still says “{words}”.")
            page.wait_for_timeout(500)
            page.reload()

    def picture(self, page: Page, name: str) -> None:
        """Write one picture; raises ValueError when it is too large for a README."""
        page.mouse.move(0, 0)
        page.evaluate(
            "window.scrollTo(0, 0); document.activeElement?.blur(); document.fonts.ready"
        )
        image = page.screenshot(animations="disabled", caret="hide")
        if len(image) > LARGEST_BYTES:
            raise ValueError(f"{name}.png has {len(image):,} bytes.")
        (self.folder / f"{name}.png").write_bytes(image)
        print(f"{name}.png  {len(image):,} bytes", flush=True)


@contextmanager
def demo() -> Iterator[Demo]:
    """A demo on a free port with data of its own, ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="quartermaster-pictures-") as folder:
        running = Demo(Path(folder).resolve(), free_port())
        try:
            start(running)
            running.start_hub()
            yield running
            if running.dead():
                raise DemoFailed(f"{running.dead()} has ended by itself.")
        except Exception:
            print(running.tails(), file=sys.stderr)
            raise
        finally:
            running.stop()


def main() -> int:
    """Start a demo, take the tour, and end it."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with demo() as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=ARGUMENTS
        )
        Tour(running, browser, folder).take()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

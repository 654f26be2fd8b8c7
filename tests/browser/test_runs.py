"""The form of a run, the run and the list in a real browser: everybody can use them, on a desk and on a phone."""

from dataclasses import dataclass

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from provisioning.models import Tenancy
from tests import factories
from tests.browser.conftest import LOOKS, PHONE, Open, overflow, violations
from tests.workloads.test_choosing import holds
from workloads.runs.models import Run

pytestmark = pytest.mark.slow

TYPED = {
    "Name": "Fine-tune BERT",
    "Image": "registry.example.com/vision/train:1",
    "Program": "train.py",
}
LONG = "Fine-tune-the-multimodal-satellite-model-on-all-of-the-data"


@dataclass(frozen=True)
class Place:
    """Somebody of a team that holds GPUs, and pages about its runs."""

    ada: User
    form: str
    pages: list[str]


@pytest.fixture
def place(transactional_db: None) -> Place:
    team = factories.team("Vision")
    ada = factories.person("Ada Okafor", teams=[team])
    cluster = factories.cluster("training", title="Training East US")
    a100 = factories.flavor(cluster, "a100")
    tenancy = factories.make_true(factories.tenancy(team, cluster))
    factories.allocation(ada, tenancy, a100, gpus=2)
    factories.make_true(tenancy)
    now = timezone.now()
    waits = factories.run(tenancy, ada, title=LONG, flavor=a100)
    failed = factories.run(
        tenancy,
        ada,
        state="failed",
        created_at=now,
        ended_at=now,
        sent_at=now,
        started_at=now,
        message="Out of memory. " * 9,
    )
    blocked = factories.run(tenancy, ada, title="Judge", state="blocked", after=waits)
    form = "/teams/vision/runs/new?template=single-node"
    pages = [
        "/teams/vision/runs",
        "/teams/vision/runs/new",
        form,
        f"/runs/{waits.pk}",
        f"/runs/{failed.pk}",
        f"/runs/{blocked.pk}",
    ]
    return Place(ada, form, pages)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_the_pages(
    open_page: Open, place: Place, size: str, theme: str
) -> None:
    page = open_page(place.ada, "/", size=size, theme=theme)
    for path in place.pages:
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)


def test_the_answer_comes_while_typing(open_page: Open, place: Place) -> None:
    page = open_page(place.ada, place.form)
    page.get_by_label("Name", exact=True).fill("Fine-tune BERT")
    page.get_by_label("Image").fill("registry.example.com/vision/train:1")
    page.get_by_label("Program").fill("train.py")
    page.get_by_label("GPUs", exact=False).first.fill("2")
    expect(page.locator("#answer")).to_contain_text("An hour")
    assert violations(page) == []


def test_what_begins_after_another_run_is_chosen_and_promises_no_start(
    open_page: Open, place: Place
) -> None:
    page = open_page(place.ada, place.form)
    for label, text in TYPED.items():
        page.get_by_label(label, exact=True).fill(text)
    expect(page.locator("#answer")).to_contain_text("It can start at once")
    page.get_by_label("Begins after").select_option(index=1)
    expect(page.locator("#answer")).to_contain_text("It begins when Judge has finished")
    assert violations(page) == []
    page.get_by_role("button", name="Start it").first.click()
    page.get_by_role("link", name="Open run").click()
    expect(page.locator("#progress")).to_contain_text("Then: Fine-tune BERT")
    page.get_by_role("link", name="Run something after it").click()
    page.get_by_role("link", name="Single node").first.click()
    expect(page.get_by_label("Begins after")).to_contain_text("Judge")
    chosen = Run.objects.get(title="Judge")
    expect(page.get_by_label("Begins after")).to_have_value(str(chosen.pk))


@pytest.mark.parametrize("comes_back", [True, False], ids=["comes-back", "stays"])
def test_the_answer_of_a_form_that_stays_open_goes_on_being_true(
    open_page: Open, place: Place, comes_back: bool
) -> None:
    page = open_page(place.ada, "/")
    page.clock.install()
    page.goto(place.form)
    for label, text in TYPED.items():
        page.get_by_label(label, exact=True).fill(text)
    page.clock.run_for(1_000)
    expect(page.locator("#answer")).to_contain_text("It can start at once")
    holds(Tenancy.objects.get(), 2)
    with page.expect_request("**/preview*") as asked:
        if comes_back:
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        else:
            page.clock.run_for(60_000)
    expect(page.locator("#answer")).to_contain_text("0 of your 2 × A100")
    # What the clock asks keeps nobody signed in.
    assert ("qm-by-clock" in asked.value.headers) == (not comes_back)
    expect(page.get_by_label("Name", exact=True)).to_have_value(TYPED["Name"])


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_enter_answers_and_starts_nothing_unseen(
    open_page: Open, place: Place, script: bool
) -> None:
    page = open_page(place.ada, place.form, script=script)
    before = Run.objects.count()
    page.get_by_label("Name", exact=True).fill("Fine-tune BERT")
    page.get_by_label("Image").fill("registry.example.com/vision/train:1")
    page.get_by_label("Program").fill("train.py")
    with page.expect_navigation():
        page.get_by_label("GPUs", exact=False).first.press("Enter")
    expect(page.locator("#answer")).to_contain_text("An hour")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Fine-tune BERT")
    assert Run.objects.count() == before


def test_what_is_too_large_to_be_sent_is_said_and_not_sent(
    open_page: Open, place: Place
) -> None:
    page = open_page(place.ada, place.form)
    page.get_by_label("Name", exact=True).fill("Fine-tune BERT")
    page.get_by_label("Image").fill("registry.example.com/vision/train:1")
    page.get_by_label("Program").fill("train.py")
    page.get_by_text("Bring a script or a source").click()
    script, start = (
        page.get_by_label("Paste a script"),
        page.get_by_role("button", name="Start it").first,
    )
    script.fill("#" * 600 * 1024)
    expect(
        page.get_by_text("a script has at most 256 KiB. Fetch a larger one from Git.")
    ).to_be_visible()
    expect(start).to_be_disabled()
    assert "Go home" not in page.locator("#answer").inner_text()
    script.fill("#" * 300 * 1024)
    expect(page.locator("#answer")).to_contain_text(
        "The script has 300 KiB; at most 256 KiB can be pasted. Use Git."
    )
    script.fill("print(1)\n")
    expect(page.locator("#answer")).to_contain_text("It can start at once")
    expect(start).to_be_enabled()


def test_after_back_every_field_says_what_was_typed_and_the_answer_is_for_it(
    open_page: Open, place: Place
) -> None:
    page = open_page(place.ada, place.form)
    for label, text in TYPED.items():
        page.get_by_label(label, exact=True).fill(text)
    expect(page.locator("#answer")).to_contain_text("It can start at once")
    page.goto("/teams/")
    page.go_back()
    for label, text in TYPED.items():
        expect(page.get_by_label(label, exact=True)).to_have_value(text)
    expect(page.locator("#answer")).to_contain_text("It can start at once")


def test_the_menu_that_stops_a_run_lies_within_a_phone(
    open_page: Open, place: Place
) -> None:
    """Its button stands at the start of a line there, below two others."""
    page = open_page(place.ada, place.pages[3], size="phone")
    page.locator("#stop > summary").click()
    box = page.locator("#stop .menu__list").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    expect(page.get_by_role("button", name="Stop the run")).to_be_visible()

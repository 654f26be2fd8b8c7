"""What somebody meets who is new: each page says what to do next, and stands as it should on a phone."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import Team
from accounts.roles import Role
from onboarding.models import Onboarding
from tests import factories
from tests.browser.conftest import LOOKS, Open, lines, overflow, violations
from tests.directory import directory, entra_server
from tests.scene import Scene

__all__ = ["directory", "entra_server"]
pytestmark = pytest.mark.slow
ADDRESS = "registry-of-the-whole-company.azurecr.io/computer-vision-and-perception/"


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_home_says_how_to_come_into_a_team_that_is_there(
    open_page: Open, scene: Scene, size: str, theme: str
) -> None:
    page = open_page(scene.mallory, "/", size=size, theme=theme)
    expect(page.get_by_role("main")).to_contain_text("ask whoever leads it to add you")
    assert violations(page) == []
    page.get_by_role("link", name="What a team is, and what follows").click()
    page.wait_for_url("**/help/#a-team-comes-on-board")


@pytest.mark.parametrize(
    ("role", "offers"), [(Role.DATA_SCIENTIST, 1), (Role.AUDITOR, 0)]
)
def test_the_catalogue_says_once_who_asks_and_leads_on(
    open_page: Open, scene: Scene, role: Role, offers: int
) -> None:
    person = factories.person("Noor", role)
    page = open_page(person, "/catalogue/", size="phone")
    said = page.get_by_text("Members of a team ask for these, and you are in no team.")
    expect(said).to_have_count(1)
    way = page.get_by_role("main").get_by_role("link", name="Bring a team on board")
    expect(way).to_have_count(offers)


@pytest.mark.usefixtures("directory")
def test_the_four_steps_stand_in_one_line(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.mallory, "/teams/new", size="phone")
    assert lines(page.locator(".steps")) == 1


def ready(scene: Scene) -> None:
    """The team of the scene came on board a moment ago, and all its objects stand."""
    now = timezone.now()
    Onboarding.objects.create(
        team=scene.team, tenancy=scene.tenancy, by=scene.ada, submitted_at=now
    )
    factories.make_true(scene.tenancy, at=now + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("size", "edge"), [("desk", "right"), ("phone", "left")], ids=["beside", "below"]
)
def test_what_can_be_done_stands_at_the_end_of_the_titles_line_or_begins_the_next(
    open_page: Open, scene: Scene, size: str, edge: str
) -> None:
    ready(scene)
    Team.objects.update(name="Computer Vision and Perception")
    page = open_page(scene.ada, "/teams/vision/onboarding", size=size)
    action = page.get_by_role("link", name="Go to the team")
    row = page.locator(".heading__row")
    border = f"(one) => Math.round(one.getBoundingClientRect().{edge})"
    padding = f"getComputedStyle(one).padding{edge.title()}"
    inset = int(row.evaluate(f"(one) => Math.round(parseFloat({padding}))"))
    inwards = 1 if edge == "left" else -1
    assert action.evaluate(border) == row.evaluate(border) + inwards * inset


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_a_team_that_stands_is_told_what_comes_next_before_what_was_created(
    open_page: Open, scene: Scene, size: str, theme: str
) -> None:
    ready(scene)
    page = open_page(scene.ada, "/teams/vision/onboarding", size=size, theme=theme)
    headings = page.get_by_role("main").get_by_role("heading", level=2)
    assert headings.all_inner_texts() == ["What comes next", "What was created"]
    assert violations(page) == []
    assert overflow(page) == 0
    page.get_by_role("main").get_by_role("link", name="Ask for GPUs").click()
    page.wait_for_url("**/requests/new?team=vision")


def test_a_long_address_stays_in_the_box_of_its_object(
    open_page: Open, scene: Scene
) -> None:
    ready(scene)
    factories.make_true(
        scene.tenancy, failed="ResourceQuota", message=f"Push to {ADDRESS}"
    )
    page = open_page(scene.ada, "/teams/vision/onboarding", size="phone")
    box = page.locator(".checklist__cause")
    expect(box).to_contain_text(ADDRESS)
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_a_team_without_gpus_is_shown_the_way_to_a_first_job(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/")
    page.get_by_role("main").get_by_role("link", name="Use your GPUs").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Use your GPUs")


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_who_is_not_let_in_reads_why_and_what_to_quote(
    open_page: Open, transactional_db: None, size: str, theme: str
) -> None:
    page = open_page(
        factories.person("Noor"), "/sign-in/callback", size=size, theme=theme
    )
    main = page.get_by_role("main")
    expect(main).to_contain_text("began in another browser, or was used already")
    assert lines(main.locator(".note")) == 2, "the request's id, then the cause"
    expect(main.locator(".note")).to_contain_text("state_mismatch")
    expect(main.get_by_role("link", name="Try again")).to_be_visible()
    assert violations(page) == []
    assert overflow(page) == 0


@pytest.mark.usefixtures("directory")
def test_the_mark_of_a_page_without_frame_stands_above_its_words(
    open_page: Open, transactional_db: None
) -> None:
    page = open_page(factories.person("Noor"), "/sign-in/callback", size="phone")
    mark, words = page.locator(".brand__mark"), page.get_by_role("heading", level=1)
    assert mark.evaluate(LEFT) == words.evaluate(LEFT)


LEFT = "one => one.getBoundingClientRect().left"


def test_the_name_of_a_cluster_is_not_broken_by_what_is_said_of_it(
    open_page: Open, scene: Scene
) -> None:
    ready(scene)
    page = open_page(scene.ada, "/teams/vision/onboarding", size="phone")
    title = page.locator(".checklist__title")
    expect(title).to_have_text("Training")
    assert lines(title) == 1

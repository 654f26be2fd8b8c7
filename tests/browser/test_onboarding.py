"""Bringing a team on board in a real browser, with script and without."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import CostCentre, User
from onboarding.models import Onboarding
from sandbox.world import person_id
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.directory import directory, entra_server
from tests.provisioning.specs import OBJECTS
from tests.sandbox.entra.running import Running

__all__ = ["directory", "entra_server"]
GENOMICS = str(factories.group_oid(10))

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("directory")]


@pytest.fixture
def ada(transactional_db: None) -> User:
    """Somebody in a group that has no team, two clusters, and a cost centre that its owner has confirmed."""
    factories.cost_centre("CC-4711")
    training = factories.cluster("training", title="Training East US")
    factories.flavor(training, "a100")
    factories.flavor(training, "h100", product="H100", price_per_gpu_hour="6.98")
    factories.cluster(
        "away", title="Away West Europe", reachable=False, message="connection refused"
    )
    return factories.person("Ada Okafor", oid=person_id(1), groups=[GENOMICS])


def who(page: Page) -> None:
    """The first step."""
    page.get_by_label("Team’s name").fill("Genomics")
    page.get_by_label("genomics-team").check()
    page.get_by_label("Cost centre").fill("CC-4711")
    page.get_by_role("button", name="Next: where").click()


def where(page: Page) -> None:
    """The second step."""
    page.get_by_label("Training East US").check()
    page.get_by_role("button", name="Next: start").click()


def start(page: Page) -> None:
    """The third step."""
    page.get_by_label("2 × A100").check()
    page.get_by_role("button", name="Next: review").click()


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_four_steps_lead_to_the_list_of_objects(
    open_page: Open, ada: User, script: bool
) -> None:
    page = open_page(ada, "/teams/new", script=script)
    who(page)
    where(page)
    start(page)
    expect(
        page.get_by_text("Genomics gets a space on Training East US with 2 × A100")
    ).to_be_visible()
    expect(page.get_by_text("Automatic. Yours in about 5 seconds.")).to_be_visible()
    page.get_by_role("button", name="Bring Genomics on board").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Bringing Genomics on board"
    )
    expect(page.get_by_text(f"0 of {OBJECTS} objects ready")).to_be_visible()
    assert Onboarding.objects.get().team.name == "Genomics"


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_on_a_cost_centre_that_is_not_confirmed_people_decide_and_the_wizard_says_so_before(
    open_page: Open, ada: User, script: bool
) -> None:
    CostCentre.objects.update(confirmed_at=None)
    page = open_page(ada, "/teams/new", script=script)
    who(page)
    where(page)
    start(page)
    expect(page.get_by_role("alert")).to_contain_text("Why")
    expect(page.locator("#answer")).to_contain_text(
        "on cost centre CC-4711, which is not confirmed"
    )
    page.get_by_label("Why").fill("Align the November reads.")
    page.get_by_role("button", name="Next: review").click()
    expect(page.get_by_text("Platform leads decide.")).to_be_visible()
    page.get_by_role("button", name="Bring Genomics on board").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Bringing Genomics on board"
    )
    asked = Onboarding.objects.get().request
    assert asked is not None
    assert (asked.state, asked.reason) == ("waiting", "Align the November reads.")


def test_a_group_is_searched_without_script(open_page: Open, ada: User) -> None:
    page = open_page(ada, "/teams/new", script=False)
    page.get_by_label("Team’s name").fill("Speech")
    page.get_by_label("Search a group by name").fill("speech")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("You are not a member of it.")).to_be_visible()
    expect(page.get_by_label("Team’s name")).to_have_value("Speech")


def test_fields_are_checked_while_they_are_typed(open_page: Open, ada: User) -> None:
    factories.team("Vision")
    page = open_page(ada, "/teams/new")
    page.get_by_label("Team’s name").fill("Vision")
    expect(
        page.get_by_text("There is a team of this name already. Choose another.")
    ).to_be_visible()
    page.get_by_label("Team’s name").fill("Genomics")
    expect(
        page.get_by_text(
            "Free. Its short name, in addresses and on clusters, is genomics."
        )
    ).to_be_visible()
    page.get_by_label("Search a group by name").fill("clim")
    expect(page.get_by_label("climate-team")).to_be_visible()
    who_else = page.get_by_label("genomics-team")
    expect(who_else).to_have_count(0)


def left_by_a_press(page: Page, name: str) -> None:
    """The team's name is typed and asked for as the next press of the mouse leaves its field, and not before."""
    page.get_by_label("Team’s name").evaluate(
        """(field, name) => {
             field.value = name;
             const leave = () => field.dispatchEvent(new Event("change", {bubbles: true}));
             addEventListener("mousedown", leave, {once: true});
           }""",
        name,
    )


def test_nothing_moves_away_from_under_a_press(open_page: Open, ada: User) -> None:
    """Leaving a field by a press asks for its answer; the answer must not push the pressed choice aside."""
    page = open_page(ada, "/teams/new", size="phone")
    left_by_a_press(page, "Genomics")
    choice = page.get_by_label("genomics-team")
    choice.hover()
    with page.expect_response("**/teams/new/check*") as answer:
        page.mouse.down()
    answer.value.finished()
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
    )
    page.mouse.up()
    expect(choice).to_be_checked()
    expect(page.get_by_text("Free. Its short name")).to_be_visible()


def test_an_answer_that_waited_gives_way_to_a_newer_one(
    open_page: Open, ada: User
) -> None:
    factories.team("Vision")
    page = open_page(ada, "/teams/new")
    left_by_a_press(page, "Vision")
    page.get_by_role("heading", level=1).hover()
    with page.expect_response("**/teams/new/check*") as first:
        page.mouse.down()
    first.value.finished()
    page.evaluate(
        """() => new MutationObserver(() => {
             window.said = (window.said || "") + document.querySelector("#said-name").textContent
           }).observe(document.querySelector("#said-name"), {childList: true})"""
    )
    page.get_by_label("Team’s name").evaluate(
        """field => {
             field.value = "Genomics";
             field.dispatchEvent(new Event("change", {bubbles: true}))
           }"""
    )
    page.mouse.up()
    expect(page.get_by_text("Free. Its short name")).to_be_visible()
    assert "There is a team of this name" not in page.evaluate("window.said")


def test_the_answer_follows_what_is_chosen(open_page: Open, ada: User) -> None:
    page = open_page(ada, "/teams/new")
    who(page)
    where(page)
    expect(page.get_by_label("GPUs", exact=True)).to_be_hidden()
    page.get_by_label("Exactly").check()
    page.get_by_label("GPUs", exact=True).fill("16")
    expect(
        page.get_by_text("Platform leads, then engineering leadership decide.")
    ).to_be_visible()
    page.get_by_label("No GPUs yet").check()
    expect(page.get_by_text("The space, and no GPUs yet")).to_be_visible()
    expect(page.get_by_label("Why")).to_be_hidden()


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_lost(
    open_page: Open, ada: User
) -> None:
    page = open_page(ada, "/teams/new")
    page.get_by_label("Team’s name").fill("Genomics")
    page.get_by_label("Cost centre").fill("CC 4711")
    page.get_by_role("button", name="Next: where").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "Cost centre: Use up to 20 letters"
    )
    expect(page.get_by_role("alert")).to_contain_text("Choose the group")
    expect(page.get_by_label("Team’s name")).to_have_value("Genomics")


def test_enter_goes_on_and_the_link_to_what_is_wrong_leads_there(
    open_page: Open, ada: User
) -> None:
    page = open_page(ada, "/teams/new")
    page.get_by_label("Cost centre").fill("CC-4711")
    page.get_by_label("Team’s name").fill("Genomics")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page).to_have_title(re.compile("^Error: "))
    page.get_by_role("alert").get_by_role("link", name="Choose the group").press(
        "Enter"
    )
    people = page.get_by_role("group", name="The people")
    expect(people).to_be_focused()
    expect(people).to_have_accessible_description(re.compile("Choose the group"))
    page.get_by_label("genomics-team").check()
    page.get_by_label("Team’s name").press("Enter")
    expect(page).to_have_url(re.compile("step=where"))


def test_enter_in_the_search_for_a_group_searches(open_page: Open, ada: User) -> None:
    page = open_page(ada, "/teams/new")
    page.get_by_label("Team’s name").fill("Speech")
    search = page.get_by_label("Search a group by name")
    search.fill("speech")
    search.press("Enter")
    expect(page.get_by_text("You are not a member of it.")).to_be_visible()
    expect(search).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_every_step(
    open_page: Open, ada: User, size: str, theme: str
) -> None:
    page = open_page(ada, "/teams/new", size=size, theme=theme)
    for step, following in ((who, "where"), (where, "start"), (start, "review")):
        assert violations(page) == []
        assert overflow(page) <= 0
        step(page)
        expect(page).to_have_url(re.compile(f"step={following}"))
    assert violations(page) == []
    page.get_by_role("button", name="Bring Genomics on board").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Bringing Genomics on board"
    )
    assert violations(page) == []
    assert overflow(page) <= 0


def test_the_progress_page_finds_out_by_itself(
    open_page: Open, ada: User, directory: Running
) -> None:
    page = open_page(ada, "/teams/new")
    for step in (who, where, start):
        step(page)
    page.get_by_role("button", name="Bring Genomics on board").click()
    expect(page.get_by_text(f"0 of {OBJECTS} objects ready")).to_be_visible()
    factories.make_true(Onboarding.objects.get().tenancy)
    expect(page.get_by_text(f"{OBJECTS} objects ready after")).to_be_visible()

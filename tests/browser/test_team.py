"""Home, teams, clusters, the audit log, tokens and search in a real browser: everybody can use them."""

import pytest
from playwright.sync_api import expect

from accounts.models import Team, User
from accounts.roles import Role
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, violations

pytestmark = pytest.mark.slow

PAGES = [
    "/",
    "/teams/",
    "/teams/vision/",
    "/clusters/",
    "/clusters/training/",
    "/audit/",
    "/tokens/",
    "/teams/vision/tokens",
    "/teams/vision/identities",
    "/palette?q=v",
    "/clusters/new",
    "/clusters/training/flavors/new",
    "/settings/notices/",
    "/settings/channels/",
    "/settings/channels/new",
    "/settings/deliveries/",
]
LONG = "Extraordinarily-Long-Named-Team-For-Multimodal-Satellite-Imag"


@pytest.fixture
def priya(transactional_db: None) -> User:
    """A platform lead in a team with something of everything."""
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    vision = factories.team("Vision", by=priya)
    ada = factories.person("Ada Okafor", teams=[vision])
    factories.join(vision, priya, lead=True)
    training = factories.cluster("training", title="Training East US")
    a100 = factories.flavor(training, "a100")
    place = factories.make_true(factories.tenancy(vision, training))
    factories.request(priya, place, a100, gpus=2, days=2)
    factories.request(ada, place, a100, gpus=16)
    factories.make_true(place)
    away = factories.cluster(
        "away", title="Away West Europe", reachable=False, message="connection refused"
    )
    factories.make_true(
        factories.tenancy(vision, away),
        failed="ResourceQuota",
        message="The cluster answers 403.",
    )
    factories.team(LONG[:60], slug="long", by=priya)
    factories.identity(vision, priya, name="GitHub, main branch")
    return priya


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_the_pages(
    open_page: Open, priya: User, size: str, theme: str
) -> None:
    page = open_page(priya, PAGES[0], size=size, theme=theme)
    for path in PAGES:
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)


@pytest.mark.parametrize("path", ["/", "/teams/", "/clusters/", "/audit/", "/tokens/"])
def test_everybody_can_use_the_pages_while_they_are_empty(
    open_page: Open, transactional_db: None, path: str
) -> None:
    page = open_page(factories.person("Mallory Finch"), path, size="phone")
    assert violations(page) == []
    assert overflow(page) <= 0


def test_search_is_one_key_away_and_enter_goes(open_page: Open, priya: User) -> None:
    page = open_page(priya, "/")
    page.keyboard.press("Control+k")
    page.keyboard.type("visi")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Vision")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Vision")


def test_a_token_is_created_shown_once_and_revoked(
    open_page: Open, priya: User
) -> None:
    page = open_page(priya, "/tokens/")
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_role("button", name="Create the token").click()
    expect(page.get_by_text("it is not shown again")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Revoke nightly").click()
    expect(page.get_by_text("1 ended")).to_be_visible()


def test_a_cluster_is_added_without_script(open_page: Open, priya: User) -> None:
    page = open_page(priya, "/clusters/", script=False)
    page.get_by_role("link", name="Add a cluster").click()
    page.get_by_label("Name", exact=True).fill("new-one")
    page.get_by_label("Name for people").fill("New One")
    page.get_by_label("Region").fill("eastus")
    page.get_by_label("Purpose").select_option("training")
    page.get_by_role("button", name="Add the cluster").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("New One")
    expect(page.get_by_text("Not looked at yet")).to_be_visible()


def test_a_failed_object_can_be_tried_again_from_the_team(
    open_page: Open, priya: User
) -> None:
    page = open_page(priya, f"/teams/{Team.objects.get(name='Vision').slug}/")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("A worker looks at it now.")).to_be_visible()


def test_the_chain_is_checked_with_one_button(open_page: Open, priya: User) -> None:
    page = open_page(priya, "/audit/")
    page.get_by_role("button", name="Check the chain").click()
    expect(page.get_by_text("The chain holds:")).to_be_visible()


def test_only_spot_nodes_are_asked_how_often_they_are_taken_back(
    open_page: Open, priya: User
) -> None:
    page = open_page(priya, "/clusters/training/flavors/new")
    hours = page.get_by_label("Hours between interruptions")
    expect(hours).to_be_hidden()
    page.get_by_label("Paid as").select_option("spot")
    expect(hours).to_be_visible()
    page.get_by_label("Paid as").select_option("reserved")
    expect(hours).to_be_hidden()

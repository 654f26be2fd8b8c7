"""How what is held goes on, ends and leaves, in a real browser: everybody can use those pages."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from accounts.roles import Role
from allocations.models import Brake
from approvals.shares import actions as apart
from fleet.models import Cluster
from manual.models import Task
from offboarding.models import Departure
from provisioning.models import Drift, Tenancy
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, violations

pytestmark = pytest.mark.slow

LONG = "Extraordinarily-Long-Named Team For Multimodal Satellite"
DAY = timedelta(days=1)
PODS = {"path": "spec.hard.pods", "wanted": "50", "live": "80", "who": "kubectl-edit"}
NOTE = "Subscription satellite-prod is there; its cluster is added."


@dataclass(frozen=True)
class Place:
    """A lead, and a team of a long name on a cluster with everything that can happen to it."""

    priya: User
    ada: User
    tenancy: Tenancy
    pages: list[str]


@pytest.fixture
def place(transactional_db: None) -> Place:
    now = timezone.now()
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    team = factories.team(LONG, slug="long", by=priya)
    ada = factories.person("Ada Okafor", teams=[team])
    factories.join(team, priya, lead=True)
    training = factories.cluster("training", title="Training East US", on_drift="ask")
    a100 = factories.flavor(training, "a100")
    tenancy = factories.make_true(factories.tenancy(team, training))
    held = factories.allocation(ada, tenancy, a100, gpus=2, days=2)
    factories.make_true(tenancy)
    changed = drifted(
        tenancy,
        "ResourceQuota",
        "team-quota",
        fields=[PODS],
    )
    missing = drifted(tenancy, "NetworkPolicy", "default-deny", what="missing")
    apart.set_shares(tenancy.pk, by=priya, weight=3, isolation="subscription", now=now)
    Brake.objects.create(clock=now + 9 * DAY, due=12, live=40)
    Cluster.objects.update(
        braked_at=now, brake_reason="12 of 40 tenancies differ at once."
    )
    asked, kept = departures(tenancy, by=priya, now=now)
    pages = [
        "/",
        "/teams/long/",
        "/clusters/training/",
        f"/drift/{changed.pk}/",
        f"/drift/{missing.pk}/",
        f"/allocations/{held.pk}/renew?days=14",
        f"/tenancies/{tenancy.pk}/shares",
        f"/tasks/{Task.objects.get().pk}/",
        "/allocations/held-back",
        "/teams/long/leaving",
        f"/teams/long/leaving/{asked.pk}",
        f"/teams/gone/leaving/{kept.pk}",
        "/teams/gone/",
        "/isolation",
        "/isolation?rules=regulated&payer=shared&neighbours=no",
    ]
    return Place(priya, ada, tenancy, pages)


def drifted(
    tenancy: Tenancy,
    kind: str,
    name: str,
    *,
    what: str = "changed",
    fields: list[dict[str, str]] | None = None,
) -> Drift:
    """Something that somebody changed."""
    now = timezone.now()
    return Drift.objects.create(
        tenancy=tenancy,
        kind=kind,
        namespace=tenancy.namespace,
        name=name,
        what=what,
        since=now,
        first_seen_at=now,
        fields=fields or [],
    )


def departures(
    tenancy: Tenancy, *, by: User, now: datetime
) -> tuple[Departure, Departure]:
    """One that waits to be confirmed, and one of another team whose place is kept for a return."""
    usual = {
        "is_whole": False,
        "hold": False,
        "retention_days": 30,
        "needs_second": False,
        "asked_by": by,
        "asked_at": now,
    }
    gone = factories.team("Gone", slug="gone", by=by)
    left = factories.make_true(factories.tenancy(gone, tenancy.cluster))
    factories.leave(left, to="retained", at=now, kept=30 * DAY)
    Tenancy.objects.filter(pk=tenancy.pk).update(is_protected=False)
    asked = Departure.objects.create(
        team=tenancy.team, leaves_at=now + 3 * DAY, reason="It moves. " * 20, **usual
    )
    kept = Departure.objects.create(
        team=gone,
        leaves_at=now,
        reason="It is over.",
        confirmed_by=by,
        confirmed_at=now,
        **usual,
    )
    asked.places.create(tenancy=tenancy)
    kept.places.create(tenancy=left)
    return asked, kept


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_the_pages(
    open_page: Open, place: Place, size: str, theme: str
) -> None:
    page = open_page(place.priya, "/isolation", size=size, theme=theme)
    for path in place.pages:
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)


def test_everybody_can_use_the_pages_while_they_are_empty(
    open_page: Open, transactional_db: None
) -> None:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    factories.team("Vision", by=priya)
    page = open_page(priya, "/isolation", size="phone")
    for path in ("/allocations/held-back", "/teams/vision/leaving", "/tasks/"):
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)


def test_how_much_longer_is_marked_and_follows_the_date(
    open_page: Open, place: Place
) -> None:
    page = open_page(place.ada, next(path for path in place.pages if "/renew" in path))
    marked = page.get_by_role("group", name="How much longer").locator("[aria-current]")
    expect(marked).to_have_text("14 days more")
    page.get_by_label("Until (UTC)").fill("2030-01-01T12:00")
    expect(marked).to_have_count(0)
    page.get_by_role("link", name="3 days more").click()
    expect(marked).to_have_text("3 days more")


def test_a_subscription_is_made_and_the_team_sees_it(
    open_page: Open, place: Place
) -> None:
    page = open_page(place.priya, "/")
    page.get_by_role("link", name=f"Open Make a subscription for {LONG}").click()
    page.get_by_role("textbox").last.fill(NOTE)
    page.get_by_role("button", name="Done", exact=True).click()
    expect(page.get_by_text("Own subscription is there")).to_be_visible()
    expect(page.get_by_text(NOTE)).to_be_visible()

"""Home, teams and a team's page: what they show to whom, and that more rows cost no more queries."""

import re
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.asserts import assertInHTML

from accounts.cost_centres.models import CostCentre
from accounts.memberships import PartChange, record_parts
from accounts.models import Membership, Team, User
from accounts.roles import Role
from accounts.tokens.actions import create_team_token, create_token, revoke_token
from allocations.budgets.months import this_month
from allocations.models import Allocation, Brake, UseDay
from approvals.decisions import actions as decisions
from approvals.models import Request
from approvals.requests.actions import submit
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from catalogue.models import OfferingSetting
from fleet.models import Cluster, Flavor
from offboarding.models import Departure
from policy.document import Thresholds
from portal.pages.home_board import waiting
from portal.pages.team_board import figures
from provisioning.models import Drift, Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.provisioning.specs import OBJECTS
from tests.sandbox.entra.running import Running
from tests.scene import NOW
from tests.scene import scene as make
from workloads.runs.planning.places import open_to

pytestmark = pytest.mark.django_db
MOST_QUERIES = 14
PAGES = (
    "/",
    "/teams/",
    "/teams/vision/",
    "/clusters/",
    "/clusters/training/",
    "/audit/",
    "/palette?q=team",
    "/tokens/",
)


@pytest.fixture
def vision() -> Team:
    return factories.team("Vision")


@pytest.fixture
def ada(client: Client, vision: Team) -> User:
    ada = factories.person("Ada Okafor", teams=[vision])
    client.force_login(ada)
    return ada


@pytest.fixture
def place(vision: Team) -> Tenancy:
    return factories.make_true(
        factories.tenancy(
            vision, factories.cluster("training", title="Training East US")
        )
    )


@pytest.fixture
def a100(place: Tenancy) -> Flavor:
    return factories.flavor(place.cluster, "a100", gpus_total=1000)


def primary(page: str) -> str:
    """What stands at the top of the page, where its main button is."""
    return page.partition("<h1")[2].partition('<div id="team"')[0]


def queries(client: Client, path: str) -> int:
    """How many queries a page takes."""
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return len(seen)


def text(client: Client, path: str) -> str:
    """A page that is there."""
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_team_shows_what_it_holds_and_what_ends_next(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    held = factories.allocation(ada, place, a100, gpus=2, days=2)
    Allocation.objects.update(starts_at=timezone.now() - timedelta(days=20))
    factories.make_true(place)
    page = text(client, "/teams/vision/")
    assert "2 × A100 80 GB" in page
    assert "Ending soon" in page
    assert "$176" in page
    assert f'href="/allocations/{held.pk}/give-back"' in page
    assert f"{OBJECTS} objects ready" in page
    assert "Ada Okafor" in page
    assert f"tenancy-{place.pk}" in page or f"team-{place.team_id}" in page


@pytest.mark.slow
@pytest.mark.parametrize(("gpus", "unit"), [(1, "GPU"), (2, "GPUs")])
def test_one_gpu_is_called_one(
    client: Client, ada: User, place: Tenancy, a100: Flavor, gpus: int, unit: str
) -> None:
    factories.allocation(ada, place, a100, gpus=gpus)
    page = text(client, "/teams/vision/")
    assertInHTML(f'{gpus} <span class="figure__unit">{unit}</span>', page)


def test_what_a_team_holds_beside_gpus_is_no_kind_of_gpu(
    ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100, gpus=2)
    [held] = Allocation.objects.select_related("flavor", "tenancy__cluster")
    later = held.until + timedelta(days=1)
    volume = Allocation(offering="volume", title="500 GiB corpus", until=later)
    month = this_month(place.team, now=timezone.now(), rows=[])
    shown = figures([held, volume, volume], month, now=timezone.now())
    assert (shown["gpus"], shown["kinds"]) == (2, "2 A100 + 2 more things")
    assert figures([held, volume], month, now=timezone.now())["kinds"] == (
        "2 A100 + 1 more thing"
    )


def test_a_team_without_anything_says_so(client: Client, ada: User) -> None:
    page = text(client, "/teams/vision/")
    assert "Nothing now." in page
    assert "Nothing was asked for yet." in page


def test_a_team_on_no_cluster_is_offered_what_works(client: Client, ada: User) -> None:
    page = text(client, "/teams/vision/")
    assert "Vision is on no cluster yet" in page
    assert "No cluster takes the team now: ask a platform lead." in page
    assert "Ask for GPUs" not in primary(page)
    factories.cluster("training")
    page = text(client, "/teams/vision/")
    assert "Ask for a namespace first; then ask for GPUs." in page
    assert "Ask for a namespace" in primary(page)
    form = text(client, "/requests/new/namespace?team=vision&project=")
    assert 'value="training"' in form
    asked = text(client, "/requests/new?team=vision")
    assert "Vision is on no cluster yet" in asked
    assert 'href="/requests/new/namespace?team=vision&amp;project="' in asked


def test_a_team_that_has_left_its_only_cluster_is_on_none_any_more(
    client: Client, ada: User, place: Tenancy
) -> None:
    factories.leave(place, to="gone", at=timezone.now())
    assert "Vision is on no cluster any more" in text(client, "/teams/vision/")


def test_a_team_whose_cluster_is_out_of_use_goes_on_there_and_asks_elsewhere(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    Cluster.objects.update(enabled=False)
    for address in ("/teams/vision/", "/requests/new?team=vision"):
        page = text(client, address)
        assert "Training East US takes no new requests now" in page
        assert "What Vision holds there goes on until it ends." in page
        assert "ask a platform lead" in page
        assert "is on no cluster yet" not in page
    factories.cluster("research")
    page = text(client, "/teams/vision/")
    assert "Ask for a namespace" in primary(page)
    assert place in open_to(ada)


def test_a_team_that_is_leaving_its_only_cluster_is_not_offered_gpus_there(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    assert "Ask for GPUs" in primary(text(client, "/teams/vision/"))
    leaving = {
        "stage": Stage.LEAVING,
        "is_protected": False,
        "leaves_at": timezone.now(),
    }
    Tenancy.objects.filter(pk=place.pk).update(**leaving)
    assert "Ask for GPUs" not in primary(text(client, "/teams/vision/"))


def test_a_team_where_no_gpus_are_offered_is_told_so(
    client: Client, ada: User, place: Tenancy
) -> None:
    assert "No GPUs are offered where Vision is" in text(
        client, "/requests/new?team=vision"
    )


def test_a_failed_place_says_why_and_can_be_tried_again(
    client: Client, ada: User, place: Tenancy
) -> None:
    factories.make_true(
        place, failed="ResourceQuota", message="The cluster answers 403."
    )
    page = text(client, "/teams/vision/")
    assert "The cluster answers 403." in page
    assert f'action="/tenancies/{place.pk}/look-again"' in page


def test_what_keeps_all_of_a_place_from_being_looked_after_is_said_beside_its_objects(
    client: Client, ada: User, place: Tenancy
) -> None:
    factories.make_true(place)
    factories.refuse(place, "Kueue v0.14.0 is too old.")
    page = text(client, "/teams/vision/")
    assert "Kueue v0.14.0 is too old." in page
    assert "objects ready" in page


def test_objects_of_a_cluster_that_is_away_are_shown_as_they_were_seen_last(
    client: Client, ada: User, place: Tenancy
) -> None:
    seen = timezone.now() - timedelta(minutes=12)
    factories.make_true(place)
    Tenancy.objects.update(generation=F("generation") + 1, is_true=False)
    Cluster.objects.update(reachable=False, message="away", last_contact_at=seen)
    page = text(client, "/teams/vision/")
    assert re.search(r"objects ready, last looked\s+<time[^>]*>12 min ago</time>", page)


def test_a_cluster_that_is_away_does_not_take_the_page_with_it(
    client: Client, ada: User, place: Tenancy
) -> None:
    Cluster.objects.update(reachable=False, message="connection refused")
    page = text(client, "/teams/vision/")
    assert "Training East US does not answer. What runs there goes on" in page
    assert "connection refused" not in page, "a member can do nothing about it"
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "Training East US does not answer: connection refused" in text(
        client, "/teams/vision/"
    )


def test_a_strangers_team_looks_like_a_missing_one(client: Client, ada: User) -> None:
    factories.team("Speech")
    assert (
        client.get("/teams/speech/").status_code
        == client.get("/teams/nothing/").status_code
        == 404
    )
    assert "Speech" not in text(client, "/teams/")


def test_cost_a_day_says_whether_it_is_of_all_that_is_held(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100, gpus=2)
    unmade = factories.allocation(ada, place, a100, gpus=1)
    assert "for what is held now" in text(client, "/teams/vision/")
    Allocation.objects.filter(pk=unmade.pk).update(charged_from=None)
    page = text(client, "/teams/vision/")
    assert "what is being set up costs nothing yet" in page
    assert "for what is held now" not in page


def test_who_sees_all_teams_gives_nothing_back(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100)
    client.force_login(factories.person("Sam", Role.AUDITOR))
    page = text(client, "/teams/vision/")
    assert "1 × A100" in page
    assert "give-back" not in page
    assert "look-again" not in page


def test_names_are_never_markup(client: Client, ada: User, vision: Team) -> None:
    Team.objects.update(name="<img src=x onerror=alert(1)>")
    for path in ("/teams/vision/", "/teams/", "/"):
        assert "<img src=x" not in text(client, path)


def test_teams_are_found_by_name_cost_centre_or_namespace(
    client: Client, ada: User, vision: Team
) -> None:
    assert "Vision" in text(client, f"/teams/?q={vision.cost_centre}")
    place = factories.tenancy(vision, factories.cluster("training"))
    for path in ("/teams/?q=", "/palette?q="):
        assert "Vision" in text(client, f"{path}{place.namespace}")
        assert "Vision" in text(client, f"{path}{vision.cost_centre}")
    page = text(client, "/teams/?q=<b>")
    assert "No team is called “<bdi>&lt;b&gt;</bdi>”" in page


def test_a_cluster_counts_once_for_a_team_with_several_namespaces_there(
    client: Client, ada: User, vision: Team, place: Tenancy
) -> None:
    factories.tenancy(vision, place.cluster, environment="test")
    factories.tenancy(vision, factories.cluster("dev"))
    (row,) = client.get("/teams/").context["rows"]
    assert row["cells"][3] == 2


def test_home_says_why_it_waits_and_for_whom(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    asked = factories.request(ada, place, a100, gpus=16)
    page = text(client, "/")
    assert "16 × A100 for Vision waits for platform leads to decide" in page
    assert f"/requests/{asked.pk}/" in page
    assert "flavor=training%2Fa100" in page  # asking again is one click away


def test_home_offers_again_what_was_booked_for_as_long_as_it_was_booked(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    now = timezone.now()
    asked = factories.request(ada, place, a100, gpus=1, days=62, now=now)
    Request.objects.filter(pk=asked.pk).update(starts_at=now + timedelta(days=60))
    (row,) = client.get("/").context["again"]
    assert row["figure"] == "2 days"


def test_home_counts_no_free_gpus_of_a_cluster_that_does_not_answer(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=1)
    (row,) = client.get("/").context["again"]
    assert row["text"].endswith(" free now")
    Cluster.objects.update(reachable=False, message="connection refused")
    (row,) = client.get("/").context["again"]
    assert row["text"] == "Vision · Training East US · does not answer"


@pytest.mark.slow
@pytest.mark.parametrize("why", ["out of use", "left", "switched off", "for others"])
def test_home_offers_nothing_again_that_would_be_refused(
    client: Client, ada: User, place: Tenancy, a100: Flavor, why: str
) -> None:
    factories.request(ada, place, a100, gpus=1)
    assert [row["title"] for row in client.get("/").context["again"]] == ["1 × A100"]
    if why == "left":
        factories.leave(place, to="gone", at=timezone.now())
    elif why == "switched off":
        OfferingSetting.objects.create(
            key="gpus", enabled=False, gate="self_service", position=0
        )
    elif why == "for others":
        Flavor.objects.update(dedicated_to=factories.team("Speech"))
    else:
        Cluster.objects.update(enabled=False)
    assert client.get("/").context["again"] == []


def test_home_says_since_when_the_step_waits_that_is_open(
    ada: User, place: Tenancy, a100: Flavor
) -> None:
    asked = factories.request(ada, place, a100, gpus=16)
    later = asked.created_at + timedelta(minutes=11)
    lead = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    decisions.approve(asked.pk, by=lead, expected_version=asked.version, now=later)
    line = waiting(Request.objects.get(pk=asked.pk), mine=True, now=later)
    assert line["since"] == later
    assert "waits for engineering leadership" in line["what"]


@pytest.mark.slow
def test_home_leads_to_what_it_has_no_room_for(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    wide = Thresholds(window_gpus_team=1000, window_gpus_person=None)
    factories.policy(wide, now=timezone.now() - timedelta(days=2))
    oldest = factories.request(ada, place, a100, gpus=16)
    assert oldest.state == "waiting"
    for _ in range(10):
        factories.allocation(ada, place, a100, gpus=1, days=1)
    for _ in range(6):
        factories.more_like(oldest, 2)
    asked = factories.request(
        ada, place, a100, gpus=15, now=oldest.created_at - timedelta(days=1)
    )
    Request.objects.filter(pk=asked.pk).update(turn="requester")
    page = text(client, "/")
    assert "15 × A100 for Vision: a question for you" in page
    assert "9 more that you asked for" in page
    assert "2 more that end later" in page


def test_home_shows_what_is_held_and_ends(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100, gpus=2, days=1)
    page = text(client, "/")
    assert "What you hold" in page
    assert "Ending soon" not in page  # a day's work does not begin with its end
    factories.make_true(place)
    Allocation.objects.update(starts_at=timezone.now() - timedelta(days=20))
    page = text(client, "/")
    assert "Ending soon" in page


def test_home_offers_the_first_ask_to_a_team_that_holds_nothing(
    client: Client, ada: User
) -> None:
    assert "Your team holds no GPUs yet" in text(client, "/")


def test_home_offers_the_groups_of_somebody_without_a_team(
    client: Client, directory: Running
) -> None:
    client.force_login(factories.person("Mallory", oid=factories.oid(8)))
    page = text(client, "/")
    assert "Bring your team on board" in page
    assert f'href="/teams/new?group={factories.group_oid(3)}"' in page


def test_home_needs_no_directory(client: Client) -> None:
    client.force_login(factories.person("Mallory"))
    assert "Bring your team on board" in text(client, "/")


@pytest.mark.slow
def test_home_tells_a_lead_what_to_decide_oldest_first(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=4)
    factories.request(ada, place, a100, gpus=5, now=timezone.now() - timedelta(hours=3))
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    page = text(client, "/")
    assert page.index("5 × A100") < page.index("4 × A100")
    assert "asked" in page
    assert "3 h ago" in page
    assert "more that wait for you" not in page


@pytest.mark.slow
def test_a_lead_is_told_at_home_of_a_team_that_nobody_is_in_any_more(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100, gpus=2)
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    words = "Nobody is in Vision any more"
    assert words not in text(client, "/")
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert words in text(client, "/")
    Allocation.objects.live().update(ended_at=timezone.now(), end_reason="returned")
    assert words not in text(client, "/")


@pytest.mark.slow
def test_a_lead_is_told_at_home_of_a_team_that_nobody_leads_any_more(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100, gpus=2)
    factories.person("Ben Ruiz", teams=[place.team])
    ada.memberships.update(part="lead")
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    words = "Nobody leads Vision any more"
    assert words not in text(client, "/")
    ada.memberships.all().delete()
    page = text(client, "/")
    assert words in page
    assert f"Neither {place.team.accountable.name}, who answers for it" in page
    assert 'href="/teams/vision/settings"' in page


def test_the_teams_story_says_why_a_notebook_stopped_in_words(
    client: Client, ada: User, place: Tenancy
) -> None:
    record(
        Kind.NOTEBOOK_ENDED,
        actor=PORTAL,
        subject=("notebook", 1),
        team_id=place.team_id,
        name="PyTorch of Ben",
        reason="not_a_member",
    )
    client.force_login(ada)
    page = text(client, "/teams/vision/")
    assert "Notebook PyTorch of Ben stopped" in page
    assert "Whoever started it is no longer of the team" in page
    assert "not_a_member" not in page


def test_home_leads_a_lead_to_what_it_has_no_room_for(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.more_like(factories.request(ada, place, a100, gpus=16), 7)
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "3 more that wait for you" in text(client, "/")


def test_home_tells_only_whom_it_concerns_that_a_cluster_is_away(
    client: Client, ada: User, place: Tenancy
) -> None:
    factories.cluster(
        "elsewhere", title="Elsewhere", reachable=False, message="connection refused"
    )
    assert "Elsewhere does not answer" not in text(client, "/")
    Cluster.objects.update(reachable=False)
    assert "Training East US does not answer" in text(client, "/")
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "Elsewhere does not answer" in text(client, "/")


def test_home_says_what_a_cluster_that_is_away_means_to_a_team_and_its_cause_to_a_lead(
    client: Client, ada: User, place: Tenancy
) -> None:
    Cluster.objects.update(reachable=False, message="[Errno 111] refused")
    page = text(client, "/")
    assert "What runs there goes on, and nothing is lost." in page
    assert "Errno 111" not in page, "a member can do nothing about it"
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "[Errno 111] refused" in text(client, "/"), "a lead looks for the cause"


def test_the_story_says_in_words_that_a_place_waits_for_its_cluster(
    client: Client, ada: User, place: Tenancy
) -> None:
    for reason, message in (
        ("WillTryAgain", "GET /api/v1/namespaces/x: NewConnectionError: [Errno 111]"),
        ("Refused", "ClusterQueue main exists and is not ours."),
    ):
        record(
            Kind.TENANCY_FAILED,
            actor=PORTAL,
            subject=("tenancy", place.pk),
            team_id=place.team_id,
            reason=reason,
            message=message,
        )
    page = text(client, "/teams/vision/")
    assert "Not set up yet" in page
    assert "The cluster does not answer. What runs there goes on" in page
    assert "NewConnectionError" not in page
    assert "ClusterQueue main exists and is not ours." in page, (
        "what somebody must mend"
    )


@pytest.mark.slow
def test_leads_are_told_at_home_of_a_cost_centre_that_nobody_has_confirmed(
    client: Client, ada: User, vision: Team, place: Tenancy
) -> None:
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    client.force_login(priya)
    assert "which nobody has confirmed" not in text(client, "/")
    CostCentre.objects.update(confirmed_at=None)
    page = text(client, "/")
    assert f"Vision spends on {vision.cost_centre}, which nobody has confirmed" in page
    assert 'href="/cost-centres/"' in page
    factories.team("Elsewhere", by=ada)
    CostCentre.objects.update(confirmed_at=None)
    assert "Elsewhere spends" not in text(client, "/")
    client.force_login(ada)
    assert "which nobody has confirmed" not in text(client, "/")


@pytest.mark.slow
def test_fifty_rows_cost_no_more_queries_than_five(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    priya = factories.person("Priya", Role.PLATFORM_LEAD, teams=[place.team])
    # Every seat is somebody's: an empty one is one query more, whatever waits for it.
    factories.person("Marcus", Role.PLATFORM_LEAD)
    factories.person("Elena", Role.ENGINEERING_LEADERSHIP)
    client.force_login(priya)
    fill(place, a100, priya, 5)
    few = {path: queries(client, path) for path in PAGES}
    fill(place, a100, priya, 45)
    many = {path: queries(client, path) for path in PAGES}
    assert few == many
    assert max(many.values()) <= MOST_QUERIES, many


def fill(place: Tenancy, a100: Flavor, priya: User, number: int) -> None:
    """More of everything: teams, members, flavors, tenancies, requests that wait and, fewer of them, that hold."""
    asker = factories.person(teams=[place.team])
    for _ in range(number):
        team = factories.team(by=asker)
        factories.join(team, asker)
        factories.person(teams=[place.team, team])
        factories.tenancy(team, place.cluster)
        factories.flavor(place.cluster)
    for by, gpus in ((asker, 4), (priya, 3)):
        factories.more_like(factories.request(by, place, a100, gpus=gpus), number - 1)
    for _ in range(number // 5):
        factories.request(asker, place, a100, gpus=1)
    factories.make_true(place)


@pytest.mark.slow
def test_a_lead_is_told_at_home_of_what_waits_for_them_because_it_is_large(
    client: Client, vision: Team, place: Tenancy
) -> None:
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    client.force_login(priya)
    assert "What does not work now" not in text(client, "/")
    now = timezone.now()
    Brake.objects.create(clock=now, due=12, live=40)
    Cluster.objects.update(braked_at=now, brake_reason="12 of 40 differ.")
    asked = departure(vision, place, by=priya)
    page = text(client, "/")
    for words in (
        "12 ends are held back",
        "Repairs on Training East US have stopped",
        "12 of 40 differ.",
        "Vision leaves Training East US",
    ):
        assert words in page
    assert f'href="/teams/vision/leaving/{asked.pk}"' in page


def test_a_team_sees_at_once_that_somebody_asked_for_it_to_leave(
    client: Client, ada: User, vision: Team, place: Tenancy
) -> None:
    asked = departure(vision, place, by=ada)
    page = text(client, "/teams/vision/")
    assert "Nothing happens until a platform lead confirms it." in page
    assert f'href="/teams/vision/leaving/{asked.pk}"' in page
    assert "ends are held back" not in text(client, "/")


def test_what_was_asked_and_decided_is_named_in_the_story(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=2, days=2)
    page = text(client, "/teams/vision/")
    assert "Asked for 2 × A100" in page


def test_who_came_and_went_is_in_the_story_which_leads_to_all_of_it(
    client: Client, ada: User, vision: Team
) -> None:
    changes = [
        PartChange(vision.pk, "Ben Ruiz", "", "lead"),
        PartChange(vision.pk, "Lena Weber", "", "member"),
        PartChange(vision.pk, "Tom Vogt", "member", ""),
    ]
    with transaction.atomic():
        record_parts(changes, actor=PORTAL)
    page = text(client, "/teams/vision/")
    assert (
        "Ben Ruiz and Lena Weber joined the team. Tom Vogt left the team. "
        "Ben Ruiz leads it" in page
    )
    assert 'href="/audit/?team=vision"' in page


def test_who_came_and_leads_at_once_is_named_once(
    client: Client, ada: User, vision: Team
) -> None:
    changes = [
        PartChange(vision.pk, "Ben Ruiz", "", "lead"),
        PartChange(vision.pk, "Lena Weber", "", "lead"),
        PartChange(vision.pk, "Tom Vogt", "member", ""),
    ]
    with transaction.atomic():
        record_parts(changes, actor=PORTAL)
    page = text(client, "/teams/vision/")
    assert (
        "Ben Ruiz and Lena Weber joined the team and lead it. Tom Vogt left the team"
        in page
    )


def test_the_story_names_a_token_of_the_team_and_whose_it_is(
    client: Client, ada: User, vision: Team
) -> None:
    lead = factories.person("Lena Weber")
    factories.join(vision, lead, lead=True)
    now = timezone.now()
    made, _ = create_team_token(
        team=vision, name="nightly", scope="run", days=9, by=lead, now=now
    )
    create_token(user=ada, name="of my own", scope="read", days=9, now=now)
    page = text(client, "/teams/vision/")
    assert "Token nightly of Vision created" in page
    assert "of my own" not in page
    revoke_token(made, by=lead, now=now)
    assert "Token nightly of Vision revoked" in text(client, "/teams/vision/")


def test_a_lead_sees_at_home_what_others_of_the_team_wait_for(client: Client) -> None:
    scene = make()
    asked = scene.ask(8)
    lena = factories.person("Lena Weber", Role.TEAM_LEAD)
    factories.join(scene.team, lena, lead=True)
    ben = factories.person("Ben Ruiz", teams=[scene.team])
    client.force_login(lena)
    [line] = client.get("/").context["led"]
    assert line["what"] == (
        "8 × A100 for Vision, asked for by Ada Okafor, waits for platform leads to decide"
    )
    assert line["action"]["href"] == f"/requests/{asked.pk}/"
    for person in (ben, scene.ada):
        client.force_login(person)
        assert client.get("/").context["led"] == []


def test_a_lead_is_told_at_home_what_is_asked_of_whom_and_whose_asks_nobody_waits_for(
    client: Client,
) -> None:
    scene = make()
    asked = scene.ask(8)
    lena = factories.person("Lena Weber", Role.TEAM_LEAD)
    factories.join(scene.team, lena, lead=True)
    client.force_login(lena)
    decisions.ask_back(
        asked.pk, by=scene.priya, expected_version=1, question="Why?", now=NOW
    )
    [line] = client.get("/").context["led"]
    assert line["what"] == "8 × A100 for Vision: a question for Ada Okafor"
    assert line["action"]["label"] == "Open"
    Membership.objects.filter(user=scene.ada).delete()
    [line] = client.get("/").context["led"]
    assert line["what"].endswith("asked for by Ada Okafor, cannot be granted")
    assert line["advice"].startswith("Ada Okafor is no longer of Vision. Withdraw it")


@pytest.mark.slow
def test_what_waits_in_a_led_team_costs_no_more_queries_where_there_is_more(
    client: Client,
) -> None:
    scene = make()
    lena = factories.person("Lena Weber", Role.TEAM_LEAD)
    factories.join(scene.team, lena, lead=True)
    client.force_login(lena)

    def asked_by_one_who_left(name: str) -> None:
        who = factories.person(name, teams=[scene.team])
        submit(scene.wanted(3, days=20), by=who, now=NOW)
        who.memberships.all().delete()

    asked_by_one_who_left("A")
    client.get("/")
    first = queries(client, "/")
    for number in range(4):
        asked_by_one_who_left(f"B {number}")
    assert queries(client, "/") == first <= MOST_QUERIES
    assert len(client.get("/").context["led"]) == 5


def departure(team: Team, place: Tenancy, *, by: User) -> Departure:
    now = timezone.now()
    made = Departure.objects.create(
        team=team,
        is_whole=False,
        leaves_at=now,
        hold=False,
        retention_days=30,
        reason="It is over.",
        needs_second=False,
        asked_by=by,
        asked_at=now,
    )
    made.places.create(tenancy=place)
    return made


@pytest.mark.slow
def test_drift_that_waits_for_a_lead_is_on_home_and_in_the_rail(
    client: Client, place: Tenancy
) -> None:
    found = Drift.objects.create(
        tenancy=place,
        kind="ResourceQuota",
        namespace=place.namespace,
        name="team-quota",
        what="changed",
        since=timezone.now(),
        first_seen_at=timezone.now(),
        fields=[{"path": "spec.hard.pods", "wanted": "50", "live": "80", "who": ""}],
    )
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "changed from elsewhere" not in text(client, "/")
    Cluster.objects.filter(pk=place.cluster_id).update(on_drift="ask")
    page = client.get("/")
    assert (
        f"1 object on {place.cluster.title} changed from elsewhere"
        in page.content.decode()
    )
    assert {row["label"]: row["count"] for row in page.context["rail"]}["Clusters"] == 1
    asked = {
        "repair_asked_at": timezone.now(),
        "repair_asked_by": page.wsgi_request.user,
    }
    Drift.objects.filter(pk=found.pk).update(**asked)
    assert "changed from elsewhere" not in text(client, "/")


def test_what_a_cluster_has_given_is_called_held(
    client: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.allocation(ada, place, a100, gpus=2)
    page = text(client, f"/clusters/{place.cluster.name}/")
    assert ">Held</th>" in page
    assert ">Used</th>" not in page
    assert "busy today" not in page
    now = timezone.now()
    UseDay.objects.create(
        tenancy=place,
        flavor=a100,
        day=now.date(),
        samples=10,
        held_sum=20,
        used_sum=5,
        last_at=now,
    )
    assert "25 % of what is held was busy today" in text(
        client, f"/clusters/{place.cluster.name}/"
    )


@pytest.mark.parametrize(
    ("path", "label", "team"),
    [
        ("/teams/speech/notebooks", "Notebooks", "speech"),
        ("/teams/speech/runs", "Runs", "speech"),
        ("/teams/speech/", "Teams", "speech"),
        ("/notebooks/7", "Notebooks", "nlp"),
        ("/", "Home", "nlp"),
    ],
)
def test_the_rail_leads_to_the_runs_and_notebooks_of_the_team_that_one_looks_at(
    client: Client, path: str, label: str, team: str
) -> None:
    ada = factories.person("Ada Okafor")
    for name in ("NLP", "Speech"):
        factories.join(factories.team(name, by=ada), ada)
    client.force_login(ada)
    rail = client.get(
        "/rail", headers={"HX-Request": "true", "HX-Current-URL": f"http://x{path}"}
    ).context["rail"]
    assert [row["label"] for row in rail if row["current"]] == [label]
    urls = {row["label"]: row["url"] for row in rail}
    assert (urls["Runs"], urls["Notebooks"]) == (
        f"/teams/{team}/runs",
        f"/teams/{team}/notebooks",
    )


def test_another_team_is_looked_at_in_the_same_respect(client: Client) -> None:
    ada = factories.person("Ada Okafor")
    for name in ("NLP", "Speech"):
        factories.join(factories.team(name, by=ada), ada)
    client.force_login(ada)
    shown = client.get("/teams/nlp/notebooks").context["teams_switch"]
    assert [(one["href"], one["current"]) for one in shown["items"]] == [
        ("/teams/nlp/notebooks", True),
        ("/teams/speech/notebooks", False),
    ]


def test_who_has_no_team_has_no_runs_or_notebooks_in_the_rail(client: Client) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert not {"Runs", "Notebooks"} & {
        row["label"] for row in client.get("/rail").context["rail"]
    }


def test_the_rail_alone_has_its_counts_and_where_one_is(client: Client) -> None:
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    answer = client.get(
        "/rail",
        headers={"HX-Request": "true", "HX-Current-URL": "http://x/approvals/7/"},
    )
    current = [row["label"] for row in answer.context["rail"] if row["current"]]
    assert current == ["Approvals"]
    assert "<html" not in answer.content.decode()


def test_an_auditor_is_offered_no_button_that_changes_something(client: Client) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert "Bring a team on board" not in text(client, "/teams/")
    client.force_login(factories.person("Ada Again"))
    assert "Bring a team on board" in text(client, "/teams/")


def test_who_is_in_no_team_is_offered_to_bring_one_on_board_once(
    client: Client,
) -> None:
    client.force_login(factories.person("Noor Haddad"))
    page = text(client, "/teams/")
    assert "You are in no team yet" in page
    assert page.count("button--primary") == 1

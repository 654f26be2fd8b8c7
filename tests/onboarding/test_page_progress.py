"""The page on which a team's objects become true."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Team, User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from fleet.models import Cluster
from onboarding.models import Onboarding
from provisioning.models import Tenancy
from tests import factories
from tests.provisioning.specs import OBJECTS

pytestmark = pytest.mark.django_db
PAGE = "/teams/vision/onboarding"


@pytest.fixture
def vision() -> Team:
    return factories.team("Vision")


@pytest.fixture
def onboarding(vision: Team) -> Onboarding:
    now = timezone.now()
    tenancy = factories.tenancy(vision, factories.cluster("training"))
    return Onboarding.objects.create(
        team=vision, tenancy=tenancy, by=vision.created_by, submitted_at=now
    )


@pytest.fixture
def ada(client: Client, vision: Team) -> User:
    ada = factories.person("Ada", teams=[vision])
    client.force_login(ada)
    return ada


def test_it_lists_every_object_before_a_worker_has_looked(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    page = client.get(PAGE).content.decode()
    assert f"0 of {OBJECTS} objects ready" in page
    assert page.count(">Next<") == OBJECTS
    assert 'hx-trigger="refresh, every 2s"' in page


def test_a_first_pass_that_was_stopped_counts_what_stands(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    factories.make_true(onboarding.tenancy)
    row = Tenancy.objects.get(pk=onboarding.tenancy.pk)
    seen = [
        line | {"state": "true" if at < 8 else "waiting"}
        for at, line in enumerate(row.objects_seen)
    ]
    Tenancy.objects.filter(pk=row.pk).update(
        objects_seen=seen, observed_generation=0, is_true=False, true_since=None
    )
    page = client.get(PAGE).content.decode()
    assert f"8 of {OBJECTS} objects ready" in page
    assert ">Looking<" not in page


def test_it_says_how_long_it_took_once_all_is_true(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    factories.make_true(
        onboarding.tenancy, at=onboarding.submitted_at + timedelta(seconds=1.2)
    )
    page = client.get(PAGE).content.decode()
    assert f"{OBJECTS} objects ready after" in page
    assert "1.2 s" in page
    assert "every 2s" not in page


def test_what_nobody_observes_is_committed_and_never_said_to_be_true(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    Cluster.objects.update(delivery="git", kubeconfig="")
    made = factories.make_true(onboarding.tenancy)
    made.objects_seen = [{**row, "state": "committed"} for row in made.objects_seen]
    words = "Committed 1a2b3c4, not observed: the portal has no access to this cluster."
    made.conditions = [
        {**made.ready, "status": "Unknown", "reason": "Committed", "message": words}
    ]
    made.save()
    for path in (PAGE, "/teams/vision/"):
        page = client.get(path).content.decode()
        assert f"{OBJECTS} objects committed" in page
        assert words in page
        assert "objects ready" not in page
    Tenancy.objects.update(generation=made.generation + 1)
    assert (
        f"{OBJECTS} objects committed"
        not in client.get("/teams/vision/").content.decode()
    )


def test_a_failed_line_opens_its_cause_and_a_way_to_try_again(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    factories.make_true(
        onboarding.tenancy, failed="ResourceQuota", message="The cluster answers 403."
    )
    page = client.get(PAGE).content.decode()
    assert "The cluster answers 403." in page
    assert f'action="/tenancies/{onboarding.tenancy.pk}/look-again"' in page
    Tenancy.objects.update(requeue_at=timezone.now() + timedelta(hours=1), attempts=5)
    answer = client.post(f"/tenancies/{onboarding.tenancy.pk}/look-again")
    assert answer["Location"] == PAGE
    assert Tenancy.objects.due(timezone.now()).exists()
    assert Tenancy.objects.get().attempts == 0


def test_it_says_when_the_promise_is_not_kept(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    Onboarding.objects.update(submitted_at=timezone.now() - timedelta(minutes=2))
    assert "It takes longer than promised" in client.get(PAGE).content.decode()


def test_what_came_later_and_is_no_objects_fault_is_said_too(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    factories.make_true(onboarding.tenancy)
    said = "Kueue v0.14.0 is too old."
    factories.refuse(onboarding.tenancy, said)
    assert said in client.get(PAGE).content.decode()
    Cluster.objects.update(reachable=False, message="connection refused")
    assert (
        "does not answer. What runs there goes on" in client.get(PAGE).content.decode()
    )


def test_a_strangers_page_looks_like_a_missing_one(
    client: Client, onboarding: Onboarding
) -> None:
    client.force_login(factories.person("Mallory", teams=[factories.team("Speech")]))
    assert (
        client.get(PAGE).status_code
        == client.get("/teams/nothing/onboarding").status_code
        == 404
    )
    assert (
        client.post(f"/tenancies/{onboarding.tenancy.pk}/look-again").status_code == 404
    )


def test_an_auditor_sees_it_and_changes_nothing(
    client: Client, onboarding: Onboarding
) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    factories.make_true(
        onboarding.tenancy, failed="ResourceQuota", message="The cluster answers 403."
    )
    assert "Try again" not in client.get(PAGE).content.decode()
    before = Tenancy.objects.get().requeue_at
    assert (
        client.post(f"/tenancies/{onboarding.tenancy.pk}/look-again").status_code == 403
    )
    assert Tenancy.objects.get().requeue_at == before
    event = Event.objects.get(kind=Kind.REFUSED)
    assert (event.actor_name, event.details["status"]) == ("Sam", 403)


@pytest.mark.parametrize(
    ("role", "shown"), [(Role.PLATFORM_LEAD, True), (Role.AUDITOR, False)]
)
def test_what_comes_next_is_for_who_may_ask(
    client: Client, onboarding: Onboarding, role: Role, shown: bool
) -> None:
    factories.make_true(onboarding.tenancy)
    client.force_login(factories.person("Noor", role))
    page = client.get(PAGE).content.decode()
    assert ("What comes next" in page) is shown


def test_a_link_makes_nobody_look_again(
    client: Client, ada: User, onboarding: Onboarding
) -> None:
    answer = client.get(f"/tenancies/{onboarding.tenancy.pk}/look-again")
    assert answer["Location"] == f"/teams/{onboarding.team.slug}/onboarding"

"""The page about capacity: kinds of GPU with their tightest link, limits that come near, and Azure."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from capacity.models import Meter, Subscription
from connectors.azure.rights import NEEDED
from fleet.models import Cluster
from tests import factories
from tests.insights.fleet import (
    SUBSCRIPTION,
    VCPUS,
    Site,
    connect,
    meter,
    pool,
    read_for_weeks,
    site,
)
from tests.pages import Element, parsed
from tests.scene import scene

pytestmark = pytest.mark.django_db
MAX_QUERIES = 12
LACKING = {"ask for more quota": ["Microsoft.Quota/quotas/write"]}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Site:
    connect(monkeypatch)
    return site(scene())


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def page(user: User) -> Element:
    answer = signed_in(user).get("/capacity/")
    assert answer.status_code == 200
    return parsed(answer.content.decode())


def row_of(found: Element, text: str) -> str:
    """The row of a table whose first cell begins so."""
    rows = (one.words for one in found.walk() if one.tag == "tr")
    return next(words for words in rows if words.startswith(text))


def test_each_kind_of_gpu_leads_to_its_chain_with_the_tightest_link(here: Site) -> None:
    here.quota(limit=4)
    found = page(here.scene.ada)
    row = row_of(found, "A100")
    assert "The subscription quota of StandardNCADSA100v4Family" in row
    assert row.endswith("16")
    assert any(
        one.attrs.get("href") == "/clusters/training/chain?flavor=a100"
        for one in found.walk()
    )


def test_limits_that_come_near_come_first_with_when_they_are_reached(
    here: Site,
) -> None:
    now = timezone.now()
    near = here.meter()
    Meter.objects.filter(pk=near.pk).update(used=10 * VCPUS)
    near.refresh_from_db()
    read_for_weeks(near, weeks=10, per_week=VCPUS, now=now)
    found = page(here.scene.ada)
    row = row_of(found, near.title)
    assert "960 of 1,152 vCPUs" in row
    assert "83 %" in row
    assert "reached about" in row
    panels = [one.words for one in found.walk() if one.tag == "h2"]
    assert panels.index("Limits that come near") < panels.index("Kinds of GPU")
    assert "not known before five weeks of readings" in row_of(
        found, "Total Regional vCPUs"
    )


def test_a_limit_that_was_read_long_ago_bears_its_age(here: Site) -> None:
    Meter.objects.update(seen_at=timezone.now() - timedelta(hours=5))
    assert "as of 5 h ago" in row_of(page(here.scene.ada), here.meter().title)


def test_of_a_cluster_that_does_not_answer_nobody_knows_what_is_ready(
    here: Site,
) -> None:
    assert " 8 " in row_of(page(here.scene.ada), "A100")
    Cluster.objects.filter(pk=here.cluster.pk).update(
        reachable=False,
        message="connection refused",
        last_contact_at=timezone.now() - timedelta(hours=7),
    )
    row = row_of(page(here.scene.ada), "A100")
    assert "Does not answer, last contact 7 h ago" in row
    assert "not known" in row
    assert " 8 " not in row


def test_leads_and_auditors_read_what_the_portal_may_do_in_azure(here: Site) -> None:
    Subscription.objects.update(
        missing_rights=LACKING, rights_checked_at=timezone.now()
    )
    auditor = factories.person("Olga", Role.AUDITOR)
    for person in (here.scene.priya, auditor):
        found = page(person)
        said = found.words
        assert f"lacks permissions for 1 of {len(NEEDED)} purposes" in said
        assert row_of(found, "Ask for more quota").endswith(
            "Lacks Microsoft.Quota/quotas/write"
        )
        assert "May" in row_of(found, "Reserve capacity")
        assert any(
            one.attrs.get("href") == reverse("help-page", args=["connect-azure"])
            for one in found.walk()
        )
    assert "Microsoft.Quota" not in page(here.scene.ada).words


def test_rights_that_could_not_be_read_are_said_beside_what_was_known(
    here: Site,
) -> None:
    Subscription.objects.update(
        missing_rights={},
        rights_checked_at=timezone.now(),
        rights_message="Azure answered 503.",
    )
    said = page(here.scene.priya).words
    assert "The portal may do everything that it needs" in said
    assert "could not be read: Azure answered 503." in said


def test_a_lead_has_the_subscription_read_again(here: Site) -> None:
    address = f"/capacity/subscriptions/{SUBSCRIPTION}/check"
    assert signed_in(here.scene.ada).post(address).status_code == 403
    assert Subscription.objects.get().next_look_at > timezone.now()
    answer = signed_in(here.scene.priya).post(address, follow=True)
    assert "A worker reads the subscription now" in answer.content.decode()
    assert Subscription.objects.get().next_look_at <= timezone.now()
    assert Event.objects.filter(
        kind="subscription.check_asked", subject_id=SUBSCRIPTION
    ).exists()
    assert (
        signed_in(here.scene.priya)
        .post("/capacity/subscriptions/none/check")
        .status_code
        == 404
    )


def test_a_subscription_that_does_not_answer_says_why(here: Site) -> None:
    Subscription.objects.update(
        reachable=False, failures=2, message="Azure refused (AuthorizationFailed): no."
    )
    said = page(here.scene.ada).words
    assert "Does not answer" in said
    assert "AuthorizationFailed" in said


def test_without_azure_it_says_how_to_connect_it(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.connection.settings.ENV.azure_subscription_id", "")
    found = page(here.scene.ada)
    assert "The portal is not connected to Azure" in found.words
    assert any(
        one.attrs.get("href") == reverse("help-page", args=["connect-azure"])
        for one in found.walk()
    )


def test_an_installation_without_clusters_has_a_page(
    django_user_model: type[User],
) -> None:
    assert "No cluster is in use yet" in page(factories.person()).words


@pytest.mark.slow
def test_it_takes_as_many_queries_however_large_the_fleet_is(here: Site) -> None:
    browser, taken, now = signed_in(here.scene.priya), [], timezone.now()
    browser.get("/capacity/")
    for more in (5, 45):
        for number in range(more):
            cluster = factories.cluster()
            factories.flavor(cluster)
            pool(cluster, at=now)
            made = meter(
                title=f"Family {cluster.name}",
                name=cluster.name,
                limit=VCPUS * 3,
                at=now,
            )
            read_for_weeks(made, weeks=6, per_week=number, now=now)
        with CaptureQueriesContext(connection) as captured:
            assert browser.get("/capacity/").status_code == 200
        taken.append(len(captured))
    assert taken[0] == taken[1] <= MAX_QUERIES

"""The page of the quota chain: which link stops an ask, from the subscription down to the pod."""

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from capacity.models import Meter, Subscription
from fleet.models import Cluster
from tests import factories
from tests.insights.fleet import SUBSCRIPTION, Site, connect, pool, site
from tests.pages import Element, parsed
from tests.scene import scene

pytestmark = pytest.mark.django_db
MAX_QUERIES = 12


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Site:
    connect(monkeypatch)
    return site(scene())


def page(user: User, address: str, **asked: object) -> tuple[int, Element]:
    browser = Client()
    browser.force_login(user)
    answer = browser.get(address, {key: str(value) for key, value in asked.items()})
    return answer.status_code, parsed(answer.content.decode())


def words(here: Site, user: User | None = None, **asked: object) -> str:
    status, found = page(user or here.scene.priya, here.address, **asked)
    assert status == 200
    return found.words


def hint(here: Site, user: User, **asked: object) -> str:
    _, found = page(user, here.address, **asked)
    [strip] = [one for one in found.walk() if "hint" in one.classes]
    return next(one.attrs["href"] for one in strip.walk() if one.tag == "a")


def test_what_fits_is_said_with_the_tightest_link(here: Site) -> None:
    said = words(here, gpus=16)
    assert "16 × A100 more can be granted." in said
    assert "The tightest link is" in said


def test_the_quota_of_the_family_stops_it(here: Site) -> None:
    here.quota(limit=4)
    said = words(here, gpus=20)
    assert (
        "stopped at the subscription quota of StandardNCADSA100v4Family, 16 left."
        in said
    )
    assert "An increase takes days" in said


def test_the_maximum_of_the_pool_stops_it(here: Site) -> None:
    here.quota(limit=99)
    here.quota(limit=99, family="cores")
    assert "stopped at the maximum of node pool a100, 48 left." in words(here, gpus=49)


def test_the_quota_of_the_region_stops_it_before_the_pool(here: Site) -> None:
    here.quota(limit=3, family="cores")
    said = words(here, gpus=60)
    assert "stopped at the subscription quota of the region, 12 left." in said
    assert "Then the maximum of node pool a100 stops it: 48 left." in said


def test_a_team_that_starts_is_stopped_at_its_own_queue(here: Site) -> None:
    tenancy = here.scene.tenancy
    factories.allocation(here.scene.ada, tenancy, here.flavor, gpus=2)
    here.queue(tenancy, nominal=2, used=1)
    asked = {"gpus": 2, "question": "start", "space": tenancy.namespace}
    said = words(here, here.scene.ada, **asked)
    assert "stopped at the team's ClusterQueue, 1 left." in said
    filled_in = {
        "flavor": here.flavor.key,
        "team": tenancy.team.slug,
        "namespace": tenancy.namespace,
    }
    assert (
        hint(here, here.scene.ada, **asked) == f"/requests/new?{urlencode(filled_in)}"
    )


def test_a_lead_is_led_to_the_quota_with_the_limit_that_the_ask_needs(
    here: Site,
) -> None:
    here.quota(limit=4)
    # 20 GPUs are five machines: three more than stand, of 96 vCPUs each, beside the two that are used.
    needed = 5 * 96
    assert (
        hint(here, here.scene.priya, gpus=20)
        == f"/capacity/limits/{here.meter().pk}?limit={needed}#more"
    )
    assert f"It needs {needed} vCPUs." in words(here, gpus=20)
    _, found = page(
        here.scene.priya, f"/capacity/limits/{here.meter().pk}", limit=needed
    )
    [field] = [one for one in found.walk() if one.attrs.get("name") == "limit"]
    assert field.attrs["value"] == str(needed)
    here.quota(limit=5)
    assert "more can be granted" in words(here, gpus=20)


def test_others_are_led_to_its_readings(here: Site) -> None:
    here.quota(limit=4)
    assert hint(here, here.scene.ada, gpus=20) == f"/capacity/limits/{here.meter().pk}"
    Meter.objects.all().delete()
    assert hint(here, here.scene.ada, gpus=20) == "/capacity/"


def test_another_teams_namespace_is_like_a_missing_one(here: Site) -> None:
    space = here.scene.tenancy.namespace
    status, own = page(here.scene.ada, here.address, space=space)
    assert (status, "can be granted" in own.words) == (200, True)
    _, other = page(here.scene.mallory, here.address, space=space)
    _, missing = page(here.scene.mallory, here.address, space="nobody-here")
    assert "can be granted" not in other.words
    [refused] = [one.words for one in other.walk() if "summary" in one.classes]
    assert [refused.replace(space, "nobody-here")] == [
        one.words for one in missing.walk() if "summary" in one.classes
    ]


@pytest.mark.slow
@pytest.mark.parametrize("gpus", ["0", "10001", "-1", "many", "1.5", "٣"])
def test_a_number_that_makes_no_sense_is_answered_with_a_sentence(
    here: Site, gpus: str
) -> None:
    said = words(here, gpus=gpus)
    if gpus == "٣":
        # Django reads digits of every script.
        assert "can be granted" in said
    else:
        assert "This cannot be answered" in said
        assert "can be granted" not in said


@pytest.mark.parametrize(
    "asked", [{"flavor": "h900"}, {"question": "why"}, {"space": "x"}]
)
def test_a_choice_that_there_is_not_is_answered_with_a_sentence(
    here: Site, asked: dict[str, str]
) -> None:
    assert "This cannot be answered" in words(here, None, **asked)


def test_a_cluster_that_there_is_not_is_missing(here: Site) -> None:
    assert page(here.scene.priya, "/clusters/nowhere/chain")[0] == 404


def test_what_was_read_long_ago_bears_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)
    here = site(scene(), read_at=timezone.now() - timedelta(hours=3))
    assert words(here, gpus=4).count("as of 3 h ago") == 3
    Subscription.objects.update(
        reachable=False, message="Azure answered 503.", failures=1
    )
    said = words(here, gpus=4)
    assert "Azure does not answer for this subscription" in said
    assert "Azure answered 503." in said


def test_a_cluster_that_azure_does_not_know_is_told_with_its_chain(here: Site) -> None:
    Cluster.objects.update(azure_message="The Resource was not found.")
    said = words(here, gpus=4)
    assert "Azure does not say which pools this cluster has" in said
    assert "The Resource was not found." in said


def test_what_is_fresh_bears_no_age(here: Site) -> None:
    assert "as of" not in words(here, gpus=4)


def test_without_azure_the_page_answers_and_says_how_to_connect_it(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.connection.settings.ENV.azure_subscription_id", "")
    status, found = page(here.scene.priya, here.address, gpus=4)
    assert status == 200
    assert "The portal is not connected to Azure" in found.words
    assert any(
        one.attrs.get("href") == reverse("help-page", args=["connect-azure"])
        for one in found.walk()
    )


def test_a_cluster_without_kinds_of_gpu_says_so(here: Site) -> None:
    factories.cluster("empty")
    _, found = page(here.scene.priya, "/clusters/empty/chain")
    assert "No kinds of GPU are described here yet" in found.words


def test_every_link_of_the_drawing_stands_in_the_table(here: Site) -> None:
    here.quota(limit=4)
    _, found = page(here.scene.priya, here.address, gpus=20)
    drawn = [one for one in found.walk() if "chain__link" in one.classes]
    [table] = [one for one in found.walk() if one.tag == "table"]
    rows = [one for one in table.walk() if one.tag == "tr"]
    assert len(drawn) == len(rows) - 1 >= 5


@pytest.mark.slow
def test_it_takes_as_many_queries_however_many_clusters_and_places_there_are(
    here: Site,
) -> None:
    here.quota(limit=4)
    browser = Client()
    browser.force_login(here.scene.priya)
    taken = []
    for more in (5, 45):
        for _ in range(more):
            cluster = factories.cluster()
            factories.flavor(cluster)
            Cluster.objects.filter(pk=cluster.pk).update(
                azure_id=f"/subscriptions/{SUBSCRIPTION}/{cluster.pk}"
            )
            pool(cluster, at=timezone.now())
            factories.tenancy(factories.team(by=here.scene.ada), here.cluster)
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(here.address, {"gpus": "20"}).status_code == 200
        taken.append(len(captured))
    assert taken[0] == taken[1] <= MAX_QUERIES

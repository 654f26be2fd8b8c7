"""How a team uses its place: the same by page and API, and nobody else's."""

import re
from html import unescape

import pytest
import yaml
from django.test import Client
from django.utils import timezone

from accounts.roles import Role
from approvals.decisions.actions import approve, reject
from approvals.models import Request
from fleet.clusters.actions import change_cluster
from fleet.models import AKS_SERVER, Cluster
from notices.kinds import NoticeKind
from notices.models import Notice
from onboarding.models import Onboarding
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.scene import NOW, Scene, scene
from tests.services.environment import TENANT
from web.refusals import BadInput

pytestmark = pytest.mark.django_db
TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}


@pytest.fixture
def story() -> Scene:
    """Ada's team, which holds two A100."""
    made = scene()
    made.flavor.node_taints = [TAINT]
    made.flavor.save()
    made.ask(2)
    return made


def place() -> Tenancy:
    return Tenancy.objects.get()


def page(client: Client, story: Scene) -> str:
    client.force_login(story.ada)
    answer = client.get(f"/tenancies/{place().pk}/use")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_the_job_on_the_page_is_the_one_of_the_api_and_asks_for_what_is_held(
    client: Client, story: Scene
) -> None:
    shown = re.search(r'id="first-job">(.*?)</pre>', page(client, story), re.DOTALL)
    assert shown
    copied = re.search(
        r'data-copy="(apiVersion: .*?)">', page(client, story), re.DOTALL
    )
    assert copied
    assert copied[1] == shown[1]
    told = Caller(story.ada).get(f"tenancies/{place().pk}/use/").json()
    assert shown[1].strip() == told["job"].strip()
    job = yaml.safe_load(told["job"])
    pod = job["spec"]["template"]["spec"]
    assert job["metadata"]["namespace"] == told["namespace"] == place().namespace
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert pod["tolerations"][0]["key"] == "sku"
    assert [(row["gpus"], row["flavor"]) for row in told["held"]] == [
        (2, story.flavor.name)
    ]


def test_it_says_how_to_sign_in_once_the_cluster_has_an_address(
    client: Client, story: Scene
) -> None:
    assert "Nobody has told the portal the address" in page(client, story)
    change_cluster(
        story.flavor.cluster_id,
        values={
            "api_server": "https://train.example.com:443",
            "dashboards_url": "https://grafana.example.com/d/x",
        },
        by=story.priya,
    )
    shown = page(client, story)
    assert "--server=https://train.example.com:443" in shown
    assert f"--exec-arg={AKS_SERVER}" in shown
    assert f"--exec-arg={TENANT}" in shown
    assert f"--namespace={place().namespace}" in shown
    assert 'href="https://grafana.example.com/d/x"' in shown


def test_everything_to_paste_has_a_button_and_a_kind_is_called_as_people_call_it(
    client: Client, story: Scene
) -> None:
    change_cluster(
        story.flavor.cluster_id,
        values={"api_server": "https://train.example.com:443"},
        by=story.priya,
    )
    shown = page(client, story)
    # The body is text without entities here: what a <pre> shows, its button copies.
    blocks = re.findall(r'<pre class="code"[^>]*>(.*?)</pre>', shown, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        assert f'data-copy="{block}"' in shown
    assert "For 2 × A100 80 GB" in shown
    assert f"× {story.flavor.name}" not in shown


def test_team_page_and_onboarding_lead_there(client: Client, story: Scene) -> None:
    client.force_login(story.ada)
    link = f'href="/tenancies/{place().pk}/use"'
    asked = Request.objects.get()
    assert link in client.get(f"/teams/{place().team.slug}/").content.decode()
    assert link in client.get(f"/requests/{asked.pk}/").content.decode()
    factories.make_true(place())
    Onboarding.objects.create(
        team=story.team, tenancy=place(), by=story.ada, submitted_at=timezone.now()
    )
    assert link in client.get(f"/teams/{place().team.slug}/onboarding").content.decode()


def test_the_message_that_something_was_granted_leads_there_and_one_of_a_rejection_does_not(
    story: Scene,
) -> None:
    granted, refused = story.ask(3), story.ask(3)
    approve(granted.pk, by=story.priya, expected_version=1, now=NOW)
    reject(refused.pk, by=story.priya, reason="Not now.", expected_version=1, now=NOW)
    told = {
        notice.subject_id: dict(notice.message["facts"])
        for notice in Notice.objects.filter(
            kind=NoticeKind.REQUEST_DECIDED, person=story.ada
        )
    }
    assert told[granted.pk]["Use it"] == f"http://testserver/tenancies/{place().pk}/use"
    assert "Use it" not in told[refused.pk]


def test_anothers_place_is_like_a_missing_one(client: Client, story: Scene) -> None:
    mallory = factories.person("Mallory")
    client.force_login(mallory)
    assert client.get(f"/tenancies/{place().pk}/use").status_code == 404
    assert Caller(mallory).get(f"tenancies/{place().pk}/use/").status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "http://x.example.com",
        "https://x.example.com; rm -rf /",
        "https://u:p@x.example.com",
        "https://$(id)",
        "x",
    ],
)
@pytest.mark.parametrize("field", ["api_server", "dashboards_url"])
def test_an_address_that_would_mean_something_to_a_shell_is_refused(
    field: str, address: str
) -> None:
    cluster, priya = factories.cluster(), factories.person("Priya", Role.PLATFORM_LEAD)
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={field: address}, by=priya)
    assert refused.value.field == field


@pytest.mark.parametrize("value", ["", "x", "6dae42f8-4368-4678-94ff-3960e28e3630; id"])
def test_an_application_is_named_by_its_id(value: str) -> None:
    cluster, priya = factories.cluster(), factories.person("Priya", Role.PLATFORM_LEAD)
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={"kubelogin_server_id": value}, by=priya)
    assert refused.value.field == "kubelogin_server_id"
    assert Cluster.objects.get().kubelogin_server_id == AKS_SERVER

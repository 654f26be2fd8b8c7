"""A team's projects: their namespaces, what stands in them, who asked, and the way to another one."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Project
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from onboarding.models import Onboarding
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, Scene
from tests.scene import scene as make


@pytest.fixture
def scene(db: None) -> Scene:
    return make()


def ask_for(scene: Scene, project: str, environment: str = "dev") -> Request:
    """A namespace on the cluster that the team is on."""
    now = timezone.now()
    spec = {
        "cluster": scene.flavor.cluster.name,
        "environment": environment,
        "project": project,
    }
    wanted = resolve(
        "namespace",
        spec,
        team=scene.team,
        until=now + 9 * DAY,
        reason="For the second project.",
    )
    return submit(wanted, by=scene.ada, now=now)


@pytest.mark.slow
def test_each_project_shows_its_namespaces_what_they_hold_and_who_asked(
    client: Client, scene: Scene
) -> None:
    now = timezone.now()
    Onboarding.objects.create(
        team=scene.team, tenancy=scene.tenancy, by=scene.priya, submitted_at=now - DAY
    )
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=2, now=now)
    slices = factories.flavor(
        scene.flavor.cluster, "a100-1g", resource="nvidia.com/mig-1g.10gb"
    )
    factories.request(scene.ada, scene.tenancy, slices, gpus=1, now=now)
    assert ask_for(scene, "street-scenes").state == "approved"
    waits = ask_for(scene, "street-scenes", "production")
    assert waits.state == "waiting"
    client.force_login(scene.ada)
    page = " ".join(client.get("/teams/vision/projects").content.decode().split())
    for words in (
        "street-scenes",
        'asked for by <span dir="auto">Priya Raman</span>',
        "2 × A100, 1 × A100 1g.10gb slice",
        "nothing now",
        scene.tenancy.namespace,
        f'href="/requests/{waits.pk}/"',
        f'href="/tenancies/{scene.tenancy.pk}/use"',
        "/requests/new/namespace?team=vision",
    ):
        assert words in page, words
    assert (
        'href="/teams/vision/projects"' in client.get("/teams/vision/").content.decode()
    )
    body = Caller(scene.ada).get("teams/vision/projects/").json()
    assert body["waiting"] == [waits.pk]
    main, second = body["results"]
    assert (main["slug"], main["gpus"], main["asked_by"]) == ("main", 3, "Priya Raman")
    assert (second["slug"], second["asked_by"], second["namespaces"][0]["holds"]) == (
        "street-scenes",
        "Ada Okafor",
        [],
    )
    assert second["namespaces"][0]["environment"] == "dev"


def test_another_project_is_asked_for_by_its_page(client: Client, scene: Scene) -> None:
    client.force_login(scene.ada)
    page = client.get("/teams/vision/projects").content.decode()
    link = "/requests/new/namespace?team=vision&project="
    assert f'href="{link.replace("&", "&amp;")}"' in page
    answer = client.get(link)
    form = answer.content.decode()
    assert answer.context["form"]["project"].value() == ""
    assert '<option value="main"></option>' in form
    said = {
        "team": "vision",
        "cluster": scene.flavor.cluster.name,
        "environment": "dev",
        "project": "speech-2",
        "until": f"{timezone.now() + timedelta(days=9):%Y-%m-%dT%H:%M}",
        "reason": "For the second project.",
        "token": "one",
        "answered": "",
    }
    address = link.partition("?")[0]
    bad = client.post(address, said | {"project": "Speech 2"})
    assert (bad.status_code, "Speech 2" in bad.content.decode()) == (422, True)
    assert client.post(address, said).status_code == 302
    assert Project.objects.filter(team=scene.team, slug="speech-2").exists()
    assert "speech-2" in client.get("/teams/vision/projects").content.decode()


def test_a_project_of_the_link_is_filled_in(client: Client, scene: Scene) -> None:
    client.force_login(scene.ada)
    page = client.get("/teams/vision/projects").content.decode()
    assert "team=vision&amp;project=main" in page
    form = client.get(
        "/requests/new/namespace?team=vision&project=main&environment=test"
    ).content.decode()
    assert 'value="main"' in form


def test_who_only_sees_the_team_is_offered_no_ask_and_strangers_see_nothing(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.priya)
    page = client.get("/teams/vision/projects").content.decode()
    assert "Ask for another" not in page
    client.force_login(scene.mallory)
    assert client.get("/teams/vision/projects").status_code == 404
    assert Caller(scene.mallory).get("teams/vision/projects/").status_code == 404


def test_a_project_without_a_namespace_and_a_team_without_a_project_say_so(
    client: Client, scene: Scene
) -> None:
    Project.objects.create(team=scene.team, slug="empty")
    client.force_login(scene.ada)
    assert (
        "It has no namespace now."
        in client.get("/teams/vision/projects").content.decode()
    )
    other = factories.team("Speech")
    other.projects.all().delete()
    factories.join(other, scene.ada)
    page = client.get("/teams/speech/projects").content.decode()
    assert "No projects yet" in page
    assert "team=speech" in page


@pytest.mark.slow
def test_it_takes_as_many_queries_for_five_projects_as_for_fifty(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)

    def queries() -> Any:
        with CaptureQueriesContext(connection) as seen:
            assert client.get("/teams/vision/projects").status_code == 200
        return len(seen)

    counts = []
    for number in (5, 50):
        for index in range(number):
            factories.tenancy(
                scene.team, scene.flavor.cluster, project=f"p{number}-{index}"
            )
        counts.append(queries())
    assert max(counts) == min(counts) <= 12

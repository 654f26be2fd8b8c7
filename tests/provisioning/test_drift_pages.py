"""Drift on the pages and over the API: who sees it, who deals with it, and what it costs."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.models import Cluster
from portal.pages.broadcast import News, Sight, news_after
from provisioning.drift import brake
from provisioning.drift.comparing import Field
from provisioning.models import Drift, Tenancy
from tests import factories
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db
GPU = Field(
    ("spec", "hard", "requests.nvidia.com/gpu"), "4", "64", "kubectl-edit"
).to_json()
PODS = Field(("spec", "hard", "pods"), "50", "80", "kubectl-edit").to_json()


@pytest.fixture
def here() -> World:
    return world()


@pytest.fixture
def priya(client: Client, here: World) -> Client:
    client.force_login(here.people["platform_lead"])
    return client


def drift(tenancy: Tenancy, **fields: Any) -> Drift:
    """Somebody has changed the quota."""
    now = timezone.now()
    usual = {
        "kind": "ResourceQuota",
        "namespace": tenancy.namespace,
        "name": "team-quota",
        "what": "changed",
        "who": "kubectl-edit",
        "operation": "Update",
        "since": now - timedelta(minutes=12),
        "first_seen_at": now,
        "fields": [GPU],
    }
    return Drift.objects.create(tenancy=tenancy, **(usual | fields))


def test_the_cluster_says_who_changed_what_and_since_when(
    priya: Client, here: World
) -> None:
    row = drift(here.own.tenancy)
    page = priya.get("/clusters/training-eastus/").content.decode()
    assert "kubectl-edit changed GPUs allowed from 4 to 64" in page
    assert "12 min ago" in page
    assert f"/drift/{row.pk}/repair" in page
    assert "1 object changed from elsewhere" in priya.get("/clusters/").content.decode()


@pytest.mark.slow
def test_teams_are_as_wanted_but_for_what_others_changed(
    priya: Client, here: World
) -> None:
    for tenancy in Tenancy.objects.filter(cluster=here.own.tenancy.cluster):
        factories.make_true(tenancy)
    assert "all as wanted" in priya.get("/clusters/training-eastus/").content.decode()
    drift(here.own.tenancy)
    page = priya.get("/clusters/training-eastus/").content.decode()
    assert "as wanted but for what others changed" in page
    assert "all as wanted" not in page


def test_a_team_sees_its_own_and_no_buttons(client: Client, here: World) -> None:
    own, other = drift(here.own.tenancy), drift(here.other.tenancy)
    client.force_login(here.people["member"])
    page = client.get("/clusters/training-eastus/").content.decode()
    assert f"/drift/{own.pk}/" in page
    assert f"/drift/{other.pk}/" not in page
    assert "/repair" not in page
    assert client.get(f"/drift/{own.pk}/").status_code == 200
    assert client.get(f"/drift/{other.pk}/").status_code == 404
    assert client.post(f"/drift/{own.pk}/repair").status_code == 403


def test_one_click_repairs(priya: Client, here: World) -> None:
    row = drift(here.own.tenancy)
    assert (
        priya.post(f"/drift/{row.pk}/repair")["Location"]
        == "/clusters/training-eastus/"
    )
    row.refresh_from_db()
    assert row.repair_asked_by == here.people["platform_lead"]
    assert "Being put right" in priya.get("/clusters/training-eastus/").content.decode()


def test_the_page_of_one_shows_the_difference_and_what_can_be_done(
    priya: Client, here: World
) -> None:
    page = priya.get(f"/drift/{drift(here.own.tenancy).pk}/").content.decode()
    assert '<del dir="auto">4</del>' in page
    assert '<ins dir="auto">64</ins>' in page
    assert "is never taken over" in page
    assert "/adopt" not in page
    pods = drift(here.own.tenancy, name="other", fields=[PODS])
    assert f"/drift/{pods.pk}/adopt" in priya.get(f"/drift/{pods.pk}/").content.decode()


def test_it_is_left_alone_with_a_reason_and_a_date(priya: Client, here: World) -> None:
    row = drift(here.own.tenancy)
    path = f"/drift/{row.pk}/ignore"
    assert (
        priya.post(path, {"reason": "", "until": "2020-01-01T00:00"}).status_code == 422
    )
    assert (
        priya.post(
            path, {"reason": "A course.", "until": "2020-01-01T00:00"}
        ).status_code
        == 422
    )
    until = (timezone.now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    assert priya.post(path, {"reason": "A course.", "until": until}).status_code == 302
    assert "A course." in priya.get("/clusters/training-eastus/").content.decode()
    assert priya.post(f"/drift/{row.pk}/take-up").status_code == 302
    assert not Drift.objects.standing(timezone.now()).exists()


def test_a_namespace_that_is_gone_is_not_left_alone(priya: Client, here: World) -> None:
    place = here.own.tenancy
    row = drift(
        place, kind="Namespace", name=place.namespace, what="missing", fields=[]
    )
    why = "Nothing of the team can stand without its namespace"
    page = priya.get(f"/drift/{row.pk}/").content.decode()
    assert why in page
    assert f"/drift/{row.pk}/ignore" not in page
    until = (timezone.now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    refused = priya.post(f"/drift/{row.pk}/ignore", {"reason": "So.", "until": until})
    assert refused.status_code == 409
    row.refresh_from_db()
    assert row.is_open


def test_an_amount_is_taken_over_and_given_up(priya: Client, here: World) -> None:
    row = drift(here.own.tenancy, fields=[PODS])
    priya.post(f"/drift/{row.pk}/adopt", {"seen": row.content})
    held = {"ResourceQuota/team-quota": {"spec.hard.pods": "80"}}
    assert Tenancy.objects.get(pk=here.own.tenancy.pk).adopted == held
    assert "Give it up" in priya.get(f"/drift/{row.pk}/").content.decode()
    priya.post(f"/drift/{row.pk}/give-up")
    assert Tenancy.objects.get(pk=here.own.tenancy.pk).adopted == {}
    assert (
        "Nothing of it is taken over"
        in priya.post(f"/drift/{row.pk}/give-up", follow=True).content.decode()
    )


def test_a_stopped_cluster_says_so_and_one_button_lets_it_go_on(
    priya: Client, here: World
) -> None:
    row = drift(here.own.tenancy)
    brake.too_many(here.cluster, 99, now=timezone.now())
    page = priya.get("/clusters/training-eastus/").content.decode()
    assert "Repairs on this cluster have stopped." in page
    assert "99 of 2 tenancies differ at once" in page
    assert f"/drift/{row.pk}/repair" not in page
    assert "Repairs have stopped" in priya.get("/clusters/").content.decode()
    priya.post("/clusters/training-eastus/release-brake")
    assert Cluster.objects.get(pk=here.cluster.pk).braked_at is None
    assert (
        "have not stopped"
        in priya.post(
            "/clusters/training-eastus/release-brake", follow=True
        ).content.decode()
    )


def test_the_api_lists_and_does_the_same(here: World) -> None:
    row, other = drift(here.own.tenancy, fields=[PODS]), drift(here.other.tenancy)
    member, lead = Caller(here.people["member"]), Caller(here.people["platform_lead"])
    assert [each["id"] for each in member.get("drift/").json()["results"]] == [row.pk]
    found = lead.get("drift/?state=open&cluster=training-eastus&team=vision").json()[
        "results"
    ]
    assert [each["sentence"] for each in found] == [
        "kubectl-edit changed pods allowed from 50 to 80"
    ]
    assert found[0]["fields_that_differ"] == [PODS]
    assert member.get(f"drift/{other.pk}/").status_code == 404
    assert (
        member.post(f"drift/{row.pk}/repair/").json()["code"] == "not_a_platform_lead"
    )
    assert (
        lead.post(f"drift/{other.pk}/adopt/", {"seen": other.content}).json()["code"]
        == "not_adoptable"
    )
    assert lead.post(f"drift/{row.pk}/repair/").json()["repair_asked_at"]
    assert (
        lead.post(f"drift/{row.pk}/adopt/", {"seen": "other"}).json()["code"] == "stale"
    )
    assert (
        lead.post(f"drift/{row.pk}/adopt/", {"seen": found[0]["content"]}).json()[
            "state"
        ]
        == "adopted"
    )
    assert lead.post(f"drift/{row.pk}/give-up/").status_code == 200
    body = {
        "reason": "A course.",
        "until": (timezone.now() + timedelta(days=1)).isoformat(),
    }
    assert lead.post(f"drift/{other.pk}/ignore/", body).json()["state"] == "ignored"
    assert lead.post(f"drift/{other.pk}/take-up/").status_code == 200
    assert lead.post(f"drift/{other.pk}/repair/").json()["code"] == "drift_over"


def test_the_api_lets_the_repairs_of_a_cluster_go_on(here: World) -> None:
    lead = Caller(here.people["platform_lead"])
    path = "clusters/training-eastus/release-brake/"
    assert lead.post(path).json()["code"] == "not_braked"
    row = drift(here.own.tenancy)
    brake.too_many(here.cluster, 99, now=timezone.now())
    assert (
        lead.get("clusters/training-eastus/")
        .json()["brake_reason"]
        .startswith("99 of 2")
    )
    assert lead.post(f"drift/{row.pk}/repair/").json()["code"] == "braked"
    assert lead.post(path).json()["braked_at"] is None
    assert (
        lead.patch("clusters/training-eastus/", {"on_drift": "ask"}).json()["on_drift"]
        == "ask"
    )


def test_a_cluster_costs_the_same_with_few_and_many(priya: Client, here: World) -> None:
    counts = []
    for rows in (5, 45):
        for number in range(rows):
            drift(here.own.tenancy, name=f"q-{rows}-{number}")
            drift(
                here.own.tenancy,
                name=f"r-{rows}-{number}",
                state="repaired",
                ended_at=timezone.now(),
                ended_by="x",
            )
        for path in ("/clusters/training-eastus/", "/clusters/"):
            with CaptureQueriesContext(connection) as seen:
                priya.get(path)
            counts.append((path, len(seen)))
    assert counts[:2] == counts[2:]
    assert all(count <= 12 for _, count in counts), counts


def test_news_of_drift_reaches_the_page_of_its_cluster_and_only_who_may_see_the_team(
    here: World,
) -> None:
    brake_news = News(1, "tenancy", "5", here.own.team.pk, here.cluster.pk)
    member, stranger = (
        Sight(1, frozenset({side.team.pk})) for side in (here.own, here.other)
    )
    assert f"changed cluster-{here.cluster.pk}\n" in brake_news.message(member)
    assert "changed clusters\n" in brake_news.message(member)
    assert brake_news.message(stranger) == ""
    assert callable(news_after)


def test_what_stands_in_the_way_is_explained_on_the_team_and_over_the_api(
    client: Client, here: World
) -> None:
    said = "403 Forbidden: exceeded quota: team-quota, requested: pods=1"
    factories.make_true(here.own.tenancy, failed="ResourceQuota", message=said)
    client.force_login(here.people["member"])
    assert "leaves no room for it" in client.get("/teams/vision/").content.decode()
    body = Caller(here.people["member"]).get(f"tenancies/{here.own.tenancy.pk}/").json()
    assert body["explanation"].startswith(
        "A quota on the cluster leaves no room for it."
    )

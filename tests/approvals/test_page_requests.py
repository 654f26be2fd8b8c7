"""The list of requests: whose, which, in pages, and in a fixed number of queries."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains

from allocations.ends.actions import give_back
from allocations.models import Allocation
from approvals.decisions.actions import approve
from approvals.models import Request
from approvals.requests.actions import submit
from fleet.models import Cluster
from tests import factories
from tests.approvals.shop import wanted
from tests.scene import Scene

URL = "/requests/"


def rows(response: Any) -> list[str]:
    """The first cell of every line."""
    return [row["cells"][0]["href"] for row in response.context["rows"]]


def ask(scene: Scene, number: int = 1) -> list[Request]:
    """So many small asks of Ada, a minute apart, oldest first."""
    began = timezone.now() - timedelta(minutes=number)
    first = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=3, days=1, now=began
    )
    return [first, *factories.more_like(first, number - 1, apart=timedelta(minutes=1))]


def queries(client: Client, url: str) -> int:
    """How many queries a page takes."""
    with CaptureQueriesContext(connection) as seen:
        assert client.get(url).status_code == 200
    return len(seen)


def test_it_says_what_requests_are_for_when_there_are_none(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    shown = client.get(URL).content.decode()
    assert "No requests yet" in shown
    assert "Ask for GPUs" in shown


@pytest.mark.django_db
def test_without_a_team_it_leads_to_the_wizard(client: Client) -> None:
    client.force_login(factories.person("Noor Haddad"))
    assert 'href="/teams/new"' in client.get(URL).content.decode()


def test_it_shows_a_request_with_its_state_and_whom_it_waits_for(
    client: Client, scene: Scene
) -> None:
    asked = ask(scene)[0]
    client.force_login(scene.ada)
    shown = client.get(URL).content.decode()
    for words in (
        f"/requests/{asked.pk}/",
        "Waiting for approval",
        "platform leads",
        "Vision",
        "Ada Okafor",
    ):
        assert words in shown


def test_what_was_granted_costs_what_its_page_says(
    client: Client, scene: Scene
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=6, days=2)
    assert asked.state == "waiting"
    approve(
        asked.pk,
        by=scene.priya,
        expected_version=asked.version,
        count=4,
        now=timezone.now(),
    )
    held = Allocation.objects.get(hold=asked.hold_id)
    give_back(held.pk, gpus=1, by=scene.ada, now=held.starts_at + timedelta(seconds=1))
    client.force_login(scene.ada)
    (row,) = client.get(URL).context["rows"]
    assert (row["cells"][0]["text"], row["cells"][4]["text"]) == ("4 × A100", "$144")
    assert "$144 by the end" in client.get(f"/requests/{asked.pk}/").content.decode()


def test_a_stranger_sees_nothing_of_it(client: Client, scene: Scene) -> None:
    ask(scene)
    client.force_login(scene.mallory)
    response = client.get(URL)
    assert rows(response) == []
    assert "Vision" not in response.content.decode()


def test_a_platform_lead_sees_every_team(client: Client, scene: Scene) -> None:
    ask(scene, 2)
    client.force_login(scene.priya)
    assert len(rows(client.get(URL))) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"whose": "mine"}, 0),
        ({"state": "waiting"}, 1),
        ({"state": "held"}, 1),
        ({"state": "ended"}, 0),
        ({"team": "vision"}, 2),
        ({"team": "nobody"}, 2),
        ({"state": "rejected"}, 0),
    ],
)
def test_it_is_narrowed_by_whose_team_and_state(
    client: Client, scene: Scene, query: dict[str, str], count: int
) -> None:
    ask(scene)
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    client.force_login(scene.priya)
    response = client.get(URL, query)
    assert len(rows(response)) == count
    assert count or "No request fits" in response.content.decode()


def test_the_filter_is_cleared_only_where_there_is_one(
    client: Client, scene: Scene
) -> None:
    ask(scene)
    client.force_login(scene.priya)
    clear = '<a class="button button--quiet" href="?">Clear</a>'
    assertNotContains(client.get(URL), clear, html=True)
    assertContains(client.get(URL, {"state": "waiting"}), clear, html=True)


@pytest.mark.slow
def test_pages_follow_each_other_without_repeating_or_losing_a_row(
    client: Client, scene: Scene
) -> None:
    asked = ask(scene, 60)
    client.force_login(scene.ada)
    seen: list[str] = []
    address = URL
    while address:
        response = client.get(address)
        seen += rows(response)
        older = response.context["page"].older
        address = f"{URL}{older}" if older else ""
    assert seen == [f"/requests/{each.pk}/" for each in reversed(asked)]


@pytest.mark.slow
def test_a_newer_row_does_not_move_the_page(client: Client, scene: Scene) -> None:
    ask(scene, 30)
    client.force_login(scene.ada)
    first = client.get(URL)
    second_address = f"{URL}{first.context['page'].older}"
    before = rows(client.get(second_address))
    ask(scene)
    second = client.get(second_address)
    assert rows(second) == before
    back = client.get(f"{URL}{second.context['page'].newer}")
    assert rows(back) == rows(first)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cursor", ["x", "2026-13-01T00:00:00+00:00_1", "2026-11-21T08:00:00_1", "_1", "\t"]
)
def test_a_cursor_that_nobody_gave_out_leads_to_the_first_page(
    client: Client, scene: Scene, cursor: str
) -> None:
    ask(scene)
    client.force_login(scene.ada)
    assert len(rows(client.get(URL, {"before": cursor}))) == 1


def test_it_takes_as_many_queries_for_fifty_as_for_five(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.priya)
    ask(scene, 5)
    few = queries(client, URL)
    ask(scene, 45)
    assert queries(client, URL) == few <= 12


@pytest.mark.slow
def test_where_a_request_is_reads_as_the_title_of_its_cluster(
    client: Client, scene: Scene
) -> None:
    Cluster.objects.update(title="Training, East US")
    now = timezone.now()
    asks = [
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8),
        submit(
            wanted(scene, "volume", until=now + timedelta(days=3)),
            by=scene.ada,
            now=now,
        ),
        submit(
            wanted(scene, "openai", until=now + timedelta(days=3)),
            by=scene.ada,
            now=now,
        ),
    ]
    client.force_login(scene.ada)
    listed = {
        row["cells"][0]["href"]: row["cells"][0]["sub"]
        for row in client.get(URL).context["rows"]
    }
    gpus, volume, endpoint = (f"/requests/{each.pk}/" for each in asks)
    assert listed[gpus] == f"Training, East US, request {asks[0].pk}"
    assert listed[volume] == f"Training, East US, request {asks[1].pk}"
    assert listed[endpoint] == f"eastus, request {asks[2].pk}"
    for page in (gpus, volume, "/teams/vision/"):
        assertContains(client.get(page), "Training, East US")
    asked = client.get(gpus).content.decode()
    assert "in Training, East US until" in asked
    client.force_login(scene.priya)
    assertContains(
        client.get(f"/approvals/{asks[0].pk}/"), "in Training, East US until"
    )


def test_more_requests_that_name_a_cluster_cost_no_more_queries(
    client: Client, scene: Scene
) -> None:
    now = timezone.now()
    client.force_login(scene.ada)
    taken = []
    for name in ("corpus", "scenes", "weights"):
        volume = wanted(scene, "volume", until=now + timedelta(days=3), name=name)
        submit(volume, by=scene.ada, now=now)
        taken.append(queries(client, URL))
    assert taken[2] == taken[1]


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_cluster_that_is_no_more_is_called_as_the_request_named_it(
    scene: Scene, *, is_gone: bool
) -> None:
    now = timezone.now()
    volume = wanted(scene, "volume", until=now + timedelta(days=3))
    asked = submit(volume, by=scene.ada, now=now)
    named = {**asked.spec, "cluster": "gone"} if is_gone else asked.spec
    Request.objects.filter(pk=asked.pk).update(spec=named)
    expected = "gone" if is_gone else scene.flavor.cluster.title
    assert Request.objects.get(pk=asked.pk).where == expected
    assert Request.objects.with_titles().get(pk=asked.pk).where == expected

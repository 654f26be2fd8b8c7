"""Why runs failed, how often, and what that cost: by page and over the API, of the teams that one sees."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from insights.failed_runs.gathering import CHOICES, failed_runs
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.scene import DAY, HOUR, NOW, Scene
from workloads.failures.causes import Code
from workloads.reasons.limits import AT_LIMIT
from workloads.runs.models import Run
from workloads.runs.states import State

PAGE = "/capacity/failed-runs"


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Pages and calls are made at NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


def ended(tenancy: Tenancy, by: User, **fields: Any) -> Run:
    """A run of 4 GPUs that failed yesterday after two hours, unless it says otherwise."""
    usual: dict[str, Any] = {
        "state": State.FAILED,
        "gpus": 4,
        "usd_per_hour": Decimal(10),
        "created_at": NOW - DAY - 3 * HOUR,
        "started_at": NOW - DAY - 2 * HOUR,
        "ended_at": NOW - DAY,
        "ran_seconds": 7_200,
    }
    return factories.run(tenancy, by, **usual | fields)


def here(scene: Scene, **fields: Any) -> Run:
    return ended(scene.tenancy, scene.ada, **fields)


def elsewhere(scene: Scene, **fields: Any) -> Run:
    other = factories.team("Speech")
    return ended(
        factories.tenancy(other, scene.flavor.cluster), scene.mallory, **fields
    )


def causes(scene: Scene) -> dict[str, int]:
    found = failed_runs(Run.objects.all(), now=NOW)
    return {one.cause: one.runs for one in found.causes}


def test_failed_runs_are_told_by_their_cause_what_cost_most_first(scene: Scene) -> None:
    here(scene, cause=Code.DRIVER)
    here(scene, cause=Code.GPU_MEMORY)
    last = elsewhere(scene, cause=Code.GPU_MEMORY, ran_seconds=3_600)
    here(scene, state=State.FINISHED)
    found = failed_runs(Run.objects.all(), now=NOW)
    assert [
        (one.cause, one.runs, one.teams, one.gpu_hours, one.usd, one.last)
        for one in found.causes
    ] == [
        ("gpu_memory", 2, 2, Decimal(12), Decimal(30), last),
        ("driver", 1, 1, Decimal(8), Decimal(20), Run.objects.order_by("pk")[0]),
    ]
    assert (found.ended, found.runs, found.percent) == (4, 3, Decimal(75))
    assert (found.gpu_hours, found.usd) == (Decimal(20), Decimal(50))


def test_each_way_to_fail_has_a_name(scene: Scene) -> None:
    here(scene, message=f"{AT_LIMIT} of 2 h.")
    here(scene, started_at=None, ran_seconds=0)
    here(scene, state=State.REFUSED, started_at=None, ran_seconds=0)
    here(scene, message="It has failed.")
    keys = {"time_limit": 1, "never_began": 1, "refused": 1, "unknown": 1}
    assert causes(scene) == keys
    assert set(keys) <= {key for key, _ in CHOICES}


def test_very_large_runs_are_added_up(scene: Scene) -> None:
    here(scene, gpus=4_096, ran_seconds=3_600_000, cause=Code.DRIVER)
    [found] = failed_runs(Run.objects.all(), now=NOW).causes
    assert found.gpu_hours == 4_096_000


def test_what_people_stopped_and_what_ended_long_ago_is_not_among_them(
    scene: Scene,
) -> None:
    asked = {"stop_asked_at": NOW - DAY, "stop_asked_by": scene.ada}
    here(scene, state=State.STOPPED, **asked)
    long_ago = NOW - 31 * DAY
    before = {"created_at": long_ago - 3 * HOUR, "started_at": long_ago - 2 * HOUR}
    here(scene, cause=Code.DISK, ended_at=long_ago, **before)
    assert causes(scene) == {}


def test_everybody_sees_those_of_the_teams_that_they_see(scene: Scene) -> None:
    here(scene, cause=Code.DRIVER)
    elsewhere(scene, cause=Code.DISK)
    mine = Caller(scene.ada).get("failed-runs/").json()
    assert [one["cause"] for one in mine["results"]] == ["driver"]
    assert (mine["ended"], mine["failed"], mine["usd"]) == (1, 1, "20.00")
    every = Caller(scene.priya).get("failed-runs/").json()
    assert {one["cause"] for one in every["results"]} == {"driver", "disk"}
    one = Caller(scene.priya).get("failed-runs/?team=speech").json()
    assert [each["cause"] for each in one["results"]] == ["disk"]
    refused = Caller(scene.ada).get("failed-runs/?team=speech")
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_team")


def test_the_page_tells_what_to_do_and_leads_to_the_last_of_them(
    client: Client, scene: Scene
) -> None:
    run = here(scene, cause=Code.GPU_MEMORY, title="Llama 8B")
    client.force_login(scene.ada)
    page = parsed(client.get(f"{PAGE}?team={scene.team.slug}").text)
    assert "Out of GPU memory" in page.words
    assert Code.GPU_MEMORY.advice in page.words
    assert "100 % of those" in page.words
    links = {one.words: one.attrs["href"] for one in page.walk() if one.tag == "a"}
    assert links["Llama 8B"] == f"/runs/{run.pk}"


def test_an_empty_page_says_what_will_stand_there(client: Client, scene: Scene) -> None:
    client.force_login(scene.ada)
    assert "No run has ended" in client.get(PAGE).text
    here(scene, state=State.FINISHED)
    assert "No run has failed" in client.get(PAGE).text
    elsewhere(scene, cause=Code.DISK)
    assert "Speech" not in client.get(f"{PAGE}?team=speech").text


def test_many_runs_are_told_in_as_few_queries_as_one(scene: Scene) -> None:
    here(scene, cause=Code.DISK)
    with CaptureQueriesContext(
        connection,
    ) as few:
        failed_runs(Run.objects.all(), now=NOW)
    for code in Code:
        here(scene, cause=code)
    with CaptureQueriesContext(connection) as many:
        failed_runs(Run.objects.all(), now=NOW)
    assert len(few) == len(many) == 3

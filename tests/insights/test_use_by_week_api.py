"""Use by week over the API, as JSON and as a file, and who sees what of it."""

from collections.abc import Iterator

import pytest
import time_machine
from django.test import Client

from accounts.models import Team
from accounts.roles import Role
from tests import factories
from tests.calling import Caller
from tests.insights.used import (
    FILE,
    MONDAY,
    WEEK,
    four_for_weeks,
    held,
    lines,
    measured,
    of_others,
)
from tests.scene import DAY, HOUR, NOW, Scene


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Pages and calls are made at NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


def test_the_api_tells_the_same(scene: Scene) -> None:
    four_for_weeks(scene)
    measured(scene, 1, weeks_ago=1, days=2)
    answer = Caller(scene.ada).get("utilisation/weeks/").json()
    [found] = answer["results"]
    assert {name: found[name] for name in found if name != "weeks"} == {
        "team": {"slug": "vision", "name": "Vision"},
        "tenancy": scene.tenancy.pk,
        "namespace": scene.tenancy.namespace,
        "flavor": "training/a100",
    }
    assert answer["total"] == found["weeks"]
    assert len(found["weeks"]) == 13
    assert found["weeks"][-2:] == [
        {
            "week": "2026-W46",
            "begins": "2026-11-09",
            "until": "2026-11-16T00:00:00Z",
            "is_over": True,
            "held_gpu_hours": "672.00",
            "measured_gpu_hours": "192.00",
            "used_gpu_hours": "48.00",
            "used_percent": "25.0",
            "unused_usd": "144.00",
        },
        {
            "week": "2026-W47",
            "begins": "2026-11-16",
            "until": "2026-11-20T12:00:00Z",
            "is_over": False,
            "held_gpu_hours": "432.00",
            "measured_gpu_hours": "0.00",
            "used_gpu_hours": None,
            "used_percent": None,
            "unused_usd": None,
        },
    ]


def test_who_holds_nothing_is_told_of_weeks_without_anything(scene: Scene) -> None:
    four_for_weeks(scene)
    answer = Caller(scene.mallory).get("utilisation/weeks/").json()
    assert answer["results"] == []
    assert {one["held_gpu_hours"] for one in answer["total"]} == {"0.00"}
    assert {one["used_percent"] for one in answer["total"]} == {None}


@pytest.mark.parametrize("path", ["utilisation/weeks/", "utilisation/weeks/file/"])
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("team=nobody", 422, "no_such_team"),
        ("team=speech", 422, "no_such_team"),
        ("flavor=training/none", 422, "no_such_flavor"),
        ("weeks=4", 400, "unknown_field"),
    ],
)
def test_a_filter_that_names_nothing_is_refused(
    scene: Scene, path: str, query: str, status: int, code: str
) -> None:
    of_others(scene)
    answer = Caller(scene.ada).get(f"{path}?{query}")
    assert answer.status_code == status
    assert answer.json()["errors"][0]["code"] == code


def test_the_file_is_that_of_the_page(scene: Scene, client: Client) -> None:
    four_for_weeks(scene, 1)
    measured(scene, 1, weeks_ago=1)
    of_others(scene)
    client.force_login(scene.priya)
    for query in ("", "?team=vision", "?flavor=training/a100"):
        answer = Caller(scene.priya).get(f"utilisation/weeks/file/{query}")
        page = client.get(FILE + query)
        for header in ("Content-Type", "Content-Disposition"):
            assert answer[header] == page[header]
        assert answer.content == page.content
        assert len(lines(answer.content.decode())) == (2 if "vision" in query else 3)


# Who sees what


def test_members_see_their_own_team_and_leads_and_auditors_all(scene: Scene) -> None:
    four_for_weeks(scene)
    of_others(scene)
    auditor = factories.person("Nadia Osei", Role.AUDITOR)
    everybody = {"vision", "speech"}
    for user, teams in (
        (scene.ada, {"vision"}),
        (scene.mallory, set()),
        (scene.priya, everybody),
        (scene.elena, everybody),
        (auditor, everybody),
    ):
        caller = Caller(user)
        results = caller.get("utilisation/weeks/").json()["results"]
        assert {one["team"]["slug"] for one in results} == teams
        text = caller.get("utilisation/weeks/file/").content.decode()
        assert {one["team"] for one in lines(text)} == teams


def test_a_team_that_left_stays_in_the_weeks_in_which_it_held_something(
    scene: Scene,
) -> None:
    held(scene, 4, start=MONDAY - WEEK, end=MONDAY)
    measured(scene, 1, weeks_ago=1)
    factories.leave(scene.tenancy, to="gone", at=NOW - DAY)
    Team.objects.filter(pk=scene.team.pk).update(leaves_platform_at=NOW - HOUR)
    [found] = (
        Caller(scene.priya).get("utilisation/weeks/?team=vision").json()["results"]
    )
    assert found["weeks"][-2]["used_percent"] == "25.0"

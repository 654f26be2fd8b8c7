"""How deciding goes: shares, times and what was taken back, from what is stored."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.decisions import actions as decisions
from approvals.decisions.statistics import statistics
from approvals.models import Request
from approvals.requests import actions
from tests import factories
from tests.calling import Caller
from tests.scene import Scene

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def decided(scene: Scene, *, hours: float, verdict: str = "approve") -> Request:
    """Three GPUs asked for some hours ago and decided now."""
    now = timezone.now()
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=3, days=2, now=now - hours * HOUR
    )
    vote: dict[str, Any] = {
        "by": scene.priya,
        "expected_version": asked.version,
        "now": now,
    }
    if verdict == "approve":
        return decisions.approve(asked.pk, count=2, **vote)
    return decisions.reject(asked.pk, reason="Full.", because="capacity", **vote)


def test_it_counts_what_was_automatic_and_what_people_said(scene: Scene) -> None:
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    decided(scene, hours=2)
    decided(scene, hours=2, verdict="reject")
    found = statistics(days=30, now=timezone.now())
    assert (found.asked, found.automatic, found.percent_automatic) == (3, 1, 33)
    assert (found.approved, found.approved_less, found.rejected) == (2, 1, 1)
    assert found.because == (("Too few are free", 1),)
    assert sum(week.asked for week in found.weeks) == 3


def test_the_api_says_why_requests_were_rejected(scene: Scene) -> None:
    decided(scene, hours=2, verdict="reject")
    told = Caller(scene.priya).get("decisions/statistics/").json()
    assert told["rejections"] == [{"reason": "Too few are free", "requests": 1}]


@pytest.mark.slow
def test_times_are_said_from_five_decisions_on(scene: Scene) -> None:
    for hours in (1, 2, 3, 4):
        decided(scene, hours=hours, verdict="reject")
    (pace,) = statistics(days=30, now=timezone.now()).paces
    assert (pace.done, pace.median, pace.nine_of_ten) == (4, None, None)
    decided(scene, hours=30, verdict="reject")
    (pace,) = statistics(days=30, now=timezone.now()).paces
    assert pace.median is not None
    assert abs(pace.median - 3 * HOUR) < HOUR / 60
    assert (pace.done, pace.late) == (5, 1)


@pytest.mark.slow
def test_the_time_of_a_question_is_not_the_deciders(scene: Scene) -> None:
    now = timezone.now()
    for _ in range(5):
        asked = factories.request(
            scene.ada, scene.tenancy, scene.flavor, gpus=3, days=2, now=now - 10 * HOUR
        )
        decisions.ask_back(
            asked.pk,
            by=scene.priya,
            expected_version=1,
            question="Why?",
            now=now - 9 * HOUR,
        )
        actions.answer(asked.pk, by=scene.ada, text="Because.", now=now - HOUR)
        decisions.reject(
            asked.pk, by=scene.priya, expected_version=3, reason="No.", now=now
        )
    (pace,) = statistics(days=30, now=now).paces
    assert pace.median == 2 * HOUR


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(scene: Scene) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            statistics(days=30, now=timezone.now())
        return len(seen)

    decided(scene, hours=1, verdict="reject")
    few = queries()
    for _ in range(5):
        decided(scene, hours=1, verdict="reject")
    assert queries() == few <= 8


def test_who_sees_every_team_sees_the_page(scene: Scene, client: Client) -> None:
    decided(scene, hours=2, verdict="reject")
    for person, status in ((scene.priya, 200), (scene.elena, 200), (scene.ada, 403)):
        client.force_login(person)
        assert client.get("/approvals/statistics").status_code == status
        assert Caller(person).get("decisions/statistics/?days=7").status_code == status


def test_an_empty_time_says_what_would_stand_here(scene: Scene, client: Client) -> None:
    client.force_login(scene.priya)
    assert (
        "Nothing was asked in this time"
        in client.get("/approvals/statistics?days=x").content.decode()
    )

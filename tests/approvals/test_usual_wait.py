"""How long deciders usually take: from samples of each seat, a manager's for every manager, without questions' time."""

from datetime import timedelta

import pytest

from accounts.models import User
from approvals.decisions.actions import approve, ask_back, reject
from approvals.models import Step
from approvals.requests.actions import answer
from approvals.requests.presenting import usual_wait
from approvals.requests.preview import preview_of
from policy.document import LEADERSHIP, LEADS, Policy, Route, StepPlan
from tests import factories
from tests.scene import DAY, HOUR, NOW, Scene

pytestmark = pytest.mark.django_db
MANAGERS = StepPlan(by="managers")


def done(
    scene: Scene, seat: str, *, number: int, hours: int, last: timedelta = timedelta(0)
) -> None:
    """Steps of a seat that took so many hours each, one a minute until `last` ago."""
    request = scene.ask(5)
    first = request.steps.count()
    Step.objects.bulk_create(
        Step(
            request=request,
            version=1,
            position=first + at,
            seat=seat,
            label=seat,
            escalate_to=seat,
            plan={"remind": 8, "target": 24, "escalate": 48},
            opened_at=end - hours * HOUR,
            done_at=end,
            remind_at=end,
            due_at=end + (24 - hours) * HOUR,
            escalate_at=end,
        )
        for at in range(number)
        for end in [NOW - last - timedelta(minutes=at)]
    )


def test_a_seat_that_decides_more_often_does_not_push_another_out(scene: Scene) -> None:
    done(scene, "engineering_leadership", number=30, hours=5, last=DAY)
    done(scene, "platform_leads", number=120, hours=2)
    assert usual_wait(["platform_leads"]) == 2 * HOUR
    assert usual_wait(["platform_leads", "engineering_leadership"]) == 7 * HOUR


def test_the_newest_samples_of_a_seat_count(scene: Scene) -> None:
    done(scene, "platform_leads", number=60, hours=9, last=DAY)
    done(scene, "platform_leads", number=50, hours=2)
    assert usual_wait(["platform_leads"]) == 2 * HOUR


@pytest.mark.slow
def test_what_managers_take_is_known_before_it_is_sent_to_one(scene: Scene) -> None:
    boss = factories.person("Boss Bauer")
    User.objects.filter(pk=scene.ada.pk).update(managers=[str(boss.oid)])
    scene.ada.refresh_from_db()
    factories.policy(Policy(routes=(Route(name="all", steps=(MANAGERS,)),)), now=NOW)
    assert preview_of(scene.wanted(5), by=scene.ada, now=NOW)["usual_seconds"] is None
    for number in range(5):
        done(scene, f"person:{factories.oid(number)}", number=1, hours=3)
    assert usual_wait(["managers"]) == usual_wait([f"person:{boss.oid}"]) == 3 * HOUR
    assert usual_wait(["managers", "managers"]) == 6 * HOUR
    assert (
        preview_of(scene.wanted(5), by=scene.ada, now=NOW)["usual_seconds"] == 3 * 3600
    )


@pytest.mark.slow
@pytest.mark.parametrize("answered", [True, False])
def test_the_time_in_which_the_requester_had_the_turn_is_not_the_deciders(
    scene: Scene, answered: bool
) -> None:
    for _ in range(5):
        asked = scene.ask(3, days=20)
        ask_back(
            asked.pk,
            by=scene.priya,
            expected_version=1,
            question="Why?",
            now=NOW + HOUR,
        )
        if answered:
            answer(asked.pk, by=scene.ada, text="Because.", now=NOW + 9 * HOUR)
        end = NOW + (10 if answered else 9) * HOUR
        reject(
            asked.pk,
            by=scene.priya,
            expected_version=3 if answered else 2,
            reason="No.",
            now=end,
        )
    assert usual_wait(["platform_leads"]) == (2 if answered else 1) * HOUR


def test_a_step_that_is_decided_over_an_open_question_moves_every_date(
    scene: Scene,
) -> None:
    factories.policy(
        Policy(routes=(Route(name="all", steps=(LEADS, LEADERSHIP)),)), now=NOW
    )
    asked = scene.ask(3, days=40)
    ask_back(
        asked.pk, by=scene.priya, expected_version=1, question="Why?", now=NOW + DAY
    )
    approve(asked.pk, by=scene.priya, expected_version=2, now=NOW + 3 * DAY)
    asked.refresh_from_db()
    assert (asked.turn, asked.answer_by, asked.lapses_at) == (
        "approver",
        None,
        NOW + 16 * DAY,
    )

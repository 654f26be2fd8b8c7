"""Ten small asks are one large one in money, too: of a team and of a person, for whatever is offered."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from accounts.models import Team
from approvals.judging.inputs import answer_of, derive, policy_of
from approvals.models import Decision, Evaluation, Request
from approvals.requests.actions import judge, submit
from approvals.requests.preview import preview_of
from approvals.requests.wanted import Wanted, resolve
from policy.document import Thresholds
from policy.evaluation import Outcome
from tests import factories
from tests.approvals.given import given_lately
from tests.scene import DAY, NOW, REASON, Scene

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def volume(
    scene: Scene, number: int, *, gib: int = 10_000, team: Team | None = None
) -> Wanted:
    """A volume of the largest size that is automatic by itself."""
    spec = {
        "cluster": "training",
        "name": f"corpus-{number}",
        "gib": gib,
        "access": "ReadWriteMany",
    }
    return resolve(
        "volume", spec, team=team or scene.team, until=NOW + 14 * DAY, reason=REASON
    )


def ask(scene: Scene, number: int) -> Request:
    """Ada asks, after what is shown before sending is seen to be what is stored."""
    shown = preview_of(volume(scene, number), by=scene.ada, now=NOW)
    made = submit(volume(scene, number), by=scene.ada, now=NOW)
    assert made.evaluations.get().answer == shown["answer"]
    return made


def failing(request: Request) -> list[str]:
    """The rules that made people decide it."""
    return [
        rule["code"]
        for rule in request.evaluations.get().answer["rules"]
        if not rule["holds"]
    ]


@pytest.mark.slow
def test_eight_volumes_in_a_row_are_not_all_automatic(scene: Scene) -> None:
    made = [ask(scene, number) for number in range(8)]
    states = [each.state for each in made]
    each = made[0].usd
    automatic = int(Decimal(4500) // each)
    assert 1 < automatic < 8
    assert states == ["approved"] * automatic + ["waiting"] * (8 - automatic)
    assert failing(made[-1]) == ["window_usd", "window_usd_person"]
    assert given_lately(scene.ada, since=NOW - DAY).usd == automatic * each


@pytest.mark.slow
def test_another_team_is_the_same_person_and_another_person_the_same_team(
    scene: Scene,
) -> None:
    other = factories.team("Speech")
    factories.tenancy(other, scene.flavor.cluster)
    for member in (scene.ada, scene.mallory):
        factories.join(other, member)
    factories.join(scene.team, scene.mallory)
    for number in range(6):
        submit(volume(scene, number), by=scene.ada, now=NOW)
    mine = submit(volume(scene, 1, team=other), by=scene.ada, now=NOW)
    theirs = submit(volume(scene, 7), by=scene.mallory, now=NOW)
    assert (failing(mine), failing(theirs)) == (["window_usd_person"], ["window_usd"])
    assert (
        submit(volume(scene, 2, team=other), by=scene.mallory, now=NOW).state
        == "approved"
    )


def test_gpus_and_volumes_are_one_sum(scene: Scene) -> None:
    factories.policy(
        Thresholds(window_usd_team=Decimal(100), window_usd_person=None), now=NOW
    )
    assert scene.ask(1).state == "approved"  # $72
    small = volume(scene, 1, gib=200)
    assert judge(small, person=scene.ada, now=NOW).answer.outcome is Outcome.AUTOMATIC
    assert (
        judge(volume(scene, 1), person=scene.ada, now=NOW).answer.outcome
        is Outcome.PEOPLE
    )


@pytest.mark.slow
def test_fewer_fit_and_the_same_fits_once_the_window_has_emptied(scene: Scene) -> None:
    for number in range(6):
        submit(volume(scene, number), by=scene.ada, now=NOW + number * SECOND)
    shown = preview_of(volume(scene, 7), by=scene.ada, now=NOW + DAY)
    nearest = shown["nearest_automatic"]
    fewer = replace(volume(scene, 7, gib=nearest["count"]), until=nearest["until"])
    assert (
        judge(fewer, person=scene.ada, now=NOW + DAY).answer.outcome
        is Outcome.AUTOMATIC
    )
    later = shown["automatic_from"]
    assert later == NOW + 7 * DAY + SECOND
    asked = replace(volume(scene, 7), until=later + 13 * DAY)
    assert judge(asked, person=scene.ada, now=later).answer.outcome is Outcome.AUTOMATIC
    assert (
        judge(asked, person=scene.ada, now=later - SECOND).answer.outcome
        is Outcome.PEOPLE
    )


def test_what_people_approved_does_not_count(scene: Scene) -> None:
    asked = submit(volume(scene, 1, gib=40_000), by=scene.ada, now=NOW)
    assert asked.state == "waiting"
    assert not Decision.objects.exists()
    assert submit(volume(scene, 2), by=scene.ada, now=NOW).state == "approved"


def test_an_answer_stored_before_money_was_counted_is_derived_as_it_was(
    scene: Scene,
) -> None:
    request = scene.ask(2)
    stored = Evaluation.objects.select_related("policy").get(request=request)
    codes = ("window_usd", "window_usd_person")
    known = {
        k: v for k, v in stored.inputs["standing"].items() if not k.endswith("_usd")
    }
    rules = [rule for rule in stored.answer["rules"] if rule["code"] not in codes]
    assert len(rules) == len(stored.answer["rules"]) - 2
    again = answer_of(
        derive(stored.inputs | {"standing": known}, policy_of(stored.policy))
    )
    assert again == stored.answer | {"rules": rules}

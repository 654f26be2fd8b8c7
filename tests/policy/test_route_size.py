"""Many small asks reach the people that one large ask reaches: whoever asks, in whichever team, in whatever parts."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import Team, User
from allocations.budgets import actions as budget_actions
from allocations.ends import actions as ends
from allocations.models import Allocation
from approvals.decisions.actions import approve, reject
from approvals.judging.inputs import derive, policy_in_force
from approvals.models import Evaluation, Request
from approvals.policy_desk.simulator import simulate
from approvals.renewals import renewing
from approvals.requests.actions import judge, submit, withdraw
from approvals.requests.wanted import Wanted, resolve
from notices.models import Notice
from policy.document import LEADERSHIP, LEADS, Policy, Route, Where
from policy.evaluation import evaluate
from policy.route_size import Earlier
from tests import factories
from tests.approvals.asks import ask, standing
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, REASON, Scene
from ui.amounts import usd

pytestmark = pytest.mark.django_db

BOTH = ["platform_leads", "engineering_leadership"]
LARGE = Route(
    name="large", gpus_from=8, usd_from=Decimal(25_000), steps=(LEADS, LEADERSHIP)
)
LAST = Route(name="ordinary", steps=(LEADS,))


@pytest.fixture(autouse=True)
def _enough_money(scene: Scene) -> None:
    budget_actions.set_budget(
        scene.team,
        month=date(2026, 11, 1),
        by=scene.priya,
        limit_usd=Decimal(1_000_000),
    )


def seats(request: Request) -> list[str]:
    return [step.seat for step in request.steps.filter(version=request.content_version)]


def granted(
    scene: Scene, gpus: int, *, days: float = 3, by: tuple[User, ...] = ()
) -> Request:
    """An ask that the platform leads, and who else has to, have approved."""
    asked = scene.ask(gpus, days=days)
    for version, lead in enumerate(by or (scene.priya,), start=1):
        approve(asked.pk, by=lead, expected_version=version, now=NOW)
    return Request.objects.get(pk=asked.pk)


def elsewhere(scene: Scene, person: User, gpus: int) -> Wanted:
    """The same person's ask for another team of theirs on the same cluster."""
    team: Team = factories.team("Speech")
    factories.join(team, person)
    tenancy = factories.tenancy(team, scene.flavor.cluster)
    return replace(scene.wanted(gpus), team=team, tenancy=tenancy)


def test_seven_and_seven_are_fourteen(scene: Scene) -> None:
    assert seats(granted(scene, 7)) == ["platform_leads"]
    second = scene.ask(7, now=NOW + DAY)
    assert seats(second) == BOTH
    answer = Evaluation.objects.get(request=second).answer
    assert answer["route_size"] == {
        "gpus": 14,
        "usd": "840.00",
        "words": "14 GPUs, $840 with the 7 granted on Fri 20 Nov",
    }
    assert answer["sentence"] == (
        "Platform leads, then engineering leadership decide: 14 GPUs, $840 with the 7 granted on Fri 20 Nov."
    )


def test_what_takes_no_gpus_is_told_apart_from_the_gpus_before(scene: Scene) -> None:
    granted(scene, 4)
    spec = {
        "cluster": scene.flavor.cluster.name,
        "name": "corpus",
        "gib": 500,
        "access": "ReadWriteOnce",
    }
    volume = resolve(
        "volume", spec, team=scene.team, until=NOW + 9 * DAY, reason="Data of cameras."
    )
    judged = judge(volume, person=scene.ada, now=NOW)
    assert submit(volume, by=scene.ada, now=NOW).state == "approved"
    sized = judge(scene.wanted(7), person=scene.ada, now=NOW).answer.size
    assert sized is not None
    assert sized.words == (
        f"11 GPUs, {usd(sized.usd)} with the 4 granted on Fri 20 Nov and the "
        f"{usd(judged.answer.usd)} granted on Fri 20 Nov for other things"
    )


def test_what_still_waits_counts_too(scene: Scene) -> None:
    first, second = scene.ask(7), scene.ask(7)
    assert (seats(first), seats(second)) == (["platform_leads"], BOTH)
    words = Evaluation.objects.get(request=second).answer["route_size"]["words"]
    assert words == "14 GPUs, $1,008 with the 7 that wait"


@pytest.mark.parametrize("end", ["rejected", "withdrawn"])
def test_what_came_to_nothing_does_not_count(scene: Scene, end: str) -> None:
    first = scene.ask(7)
    if end == "rejected":
        reject(
            first.pk,
            by=scene.priya,
            expected_version=1,
            reason="Not now, next week.",
            now=NOW,
        )
    else:
        withdraw(first.pk, by=scene.ada, now=NOW)
    assert seats(scene.ask(7)) == ["platform_leads"]


def test_approving_less_spares_leadership_only_while_the_sum_is_small(
    scene: Scene,
) -> None:
    granted(scene, 3)
    asked = scene.ask(16)
    less = approve(asked.pk, by=scene.priya, expected_version=1, count=7, now=NOW)
    assert (less.state, seats(less)) == ("waiting", BOTH)
    approve(asked.pk, by=scene.elena, expected_version=2, now=NOW)
    assert scene.allocated() == 10


def test_the_rest_asked_again_counts_with_what_was_granted(scene: Scene) -> None:
    asked = scene.ask(12)
    assert (
        approve(asked.pk, by=scene.priya, expected_version=1, count=7, now=NOW).state
        == "approved"
    )
    assert seats(scene.ask(5, now=NOW + HOUR)) == BOTH


def test_another_team_of_the_same_person_is_no_way_round(scene: Scene) -> None:
    granted(scene, 7)
    wanted = elsewhere(scene, scene.ada, 7)
    asked = submit(wanted, by=scene.ada, now=NOW)
    assert seats(asked) == BOTH
    words = Evaluation.objects.get(request=asked).answer["route_size"]["words"]
    assert (
        words
        == "14 GPUs, $1,008 of one person over all their teams with the 7 granted on Fri 20 Nov"
    )


def test_another_persons_ask_for_another_team_is_its_own(scene: Scene) -> None:
    granted(scene, 7)
    stranger = factories.person("Chen Wei")
    assert seats(submit(elsewhere(scene, stranger, 7), by=stranger, now=NOW)) == [
        "platform_leads"
    ]


def test_what_is_held_counts_however_long_ago_it_was_granted(scene: Scene) -> None:
    granted(scene, 7, days=40)
    assert seats(scene.ask(7, days=40, now=NOW + 20 * DAY)) == BOTH


def test_what_was_given_back_counts_no_longer_than_the_window(scene: Scene) -> None:
    granted(scene, 7, days=40)
    allocation = Allocation.objects.get()
    ends.give_back(allocation.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    assert seats(scene.ask(7, days=40, now=NOW + 8 * DAY)) == ["platform_leads"]


@pytest.mark.slow
def test_what_leadership_has_approved_does_not_count_again(scene: Scene) -> None:
    granted(scene, 5)
    granted(scene, 7, by=(scene.priya, scene.elena))
    assert seats(scene.ask(7, now=NOW + HOUR)) == ["platform_leads"]
    assert seats(scene.ask(3, now=NOW + 2 * HOUR)) == BOTH


def test_a_renewal_does_not_count_what_it_goes_on_with(scene: Scene) -> None:
    first = granted(scene, 7)
    longer = renewing.wanted(
        Request.objects.select_related(
            "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
        ).get(pk=first.pk),
        until=NOW + 20 * DAY,
        reason=REASON,
        now=NOW + HOUR,
    )
    renewal = submit(longer, by=scene.ada, now=NOW + HOUR)
    assert seats(renewal) == ["platform_leads"]
    approve(renewal.pk, by=scene.priya, expected_version=1, now=NOW + HOUR)
    size = judge(scene.wanted(3), person=scene.ada, now=NOW + 2 * HOUR).answer.size
    assert size is not None
    assert size.gpus == 10


def test_money_is_added_up_as_gpus_are(scene: Scene) -> None:
    scene.flavor.price_per_gpu_hour = Decimal(20)
    scene.flavor.save()
    granted(scene, 3, days=10)
    asked = scene.ask(3, days=10)
    assert seats(asked) == BOTH
    assert (
        Evaluation.objects.get(request=asked).answer["route_size"]["usd"] == "28800.00"
    )


def test_a_route_for_one_kind_counts_that_kind_alone() -> None:
    narrow = replace(LARGE, where=Where(flavors=("h100",)))
    policy = Policy(routes=(narrow, LAST))
    usual: dict[str, Any] = {
        "first": NOW,
        "last": NOW,
        "gpus": 7,
        "usd": Decimal(1),
        "granted": True,
        "of_team": True,
        "of_person": False,
        "seats": ("platform_leads",),
    }
    for flavor, expected in (("a100", 1), ("h100", 2)):
        known = standing(earlier=(Earlier(**usual, flavor=flavor),))
        answer = evaluate(ask(3, flavor="h100", decided_by_people=True), known, policy)
        assert len(answer.route) == expected, flavor


def test_the_same_sum_is_derived_from_what_was_stored(scene: Scene) -> None:
    granted(scene, 7)
    stored = Evaluation.objects.get(request=scene.ask(7, now=NOW + DAY))
    again = derive(stored.inputs, policy_in_force(NOW)[1])
    assert (again.sentence, again.size.gpus if again.size else 0) == (
        stored.answer["sentence"],
        14,
    )


def test_the_simulator_judges_the_sum(scene: Scene) -> None:
    granted(scene, 4)
    scene.ask(4)
    narrower = Policy(routes=(replace(LARGE, gpus_from=9), LAST))
    found = simulate(narrower, days=7, now=NOW + HOUR, who=scene.priya)
    assert [each.because for each in found.past.differing] == [
        "decided by: platform leads, then engineering leadership → platform leads"
    ]


def test_preview_page_and_mail_say_the_same(scene: Scene) -> None:
    granted(scene, 7)
    words = "14 GPUs, $1,008 with the 7 granted on Fri 20 Nov"
    judged = judge(scene.wanted(7), person=scene.ada, now=NOW)
    assert words in judged.answer.sentence
    asked = scene.ask(7)
    told = Notice.objects.filter(kind="request_waiting", subject_id=asked.pk).latest(
        "pk"
    )
    assert words in told.message["sentence"]
    body = Caller(scene.ada).get(f"requests/{asked.pk}/").json()
    assert body["evaluations"][0]["answer"]["route_size"]["words"] == words


def test_the_window_that_counts_is_the_policys(scene: Scene) -> None:
    policy = Policy()
    factories.policy(
        replace(policy, thresholds=replace(policy.thresholds, window_days=1)), now=NOW
    )
    granted(scene, 7, days=1)
    assert seats(scene.ask(7, now=NOW + timedelta(hours=23))) == BOTH


def test_what_was_asked_after_a_waiting_request_does_not_make_it_larger(
    scene: Scene,
) -> None:
    first = scene.ask(7)
    scene.ask(7)
    again = judge(scene.wanted(7), person=scene.ada, now=NOW + HOUR, own=first.hold_id)
    assert [step.by for step in again.answer.route] == ["platform_leads"]

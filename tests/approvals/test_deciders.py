"""Who may decide a step: the queue, the page and the vote all say the same."""

import pytest

from accounts.models import Delegation, User
from approvals.decisions.actions import approve, may_decide
from approvals.decisions.deciders import candidates
from approvals.decisions.routing import open_step
from approvals.models import Request
from policy.document import Policy, Route, StepPlan
from tests import factories
from tests.scene import DAY, NOW, Scene
from web.refusals import Refused

VOTED = "You have decided a step of it already; somebody else takes this one."


def two_leads() -> None:
    """Put a policy in force by which two platform leads decide everything."""
    step = StepPlan(by="platform_leads", quorum=2)
    factories.policy(Policy(routes=(Route(name="all", steps=(step,)),)), now=NOW - DAY)


def lend(giver: User, to: User) -> None:
    Delegation.objects.create(
        giver=giver,
        to=to,
        starts_at=NOW - DAY,
        until=NOW + DAY,
        accepted_at=NOW - DAY,
    )


def fresh(user: User) -> User:
    """The person as a session reads them."""
    return User.objects.get(pk=user.pk)


def why_not(request: Request, user: User) -> str:
    """Why a person may not decide the request, as its page says."""
    return may_decide(Request.objects.get(pk=request.pk), fresh(user), now=NOW)


def decides(request: Request, user: User) -> bool:
    """Whether a vote of this person is taken; the vote stands."""
    version = Request.objects.values_list("version", flat=True).get(pk=request.pk)
    try:
        approve(request.pk, by=fresh(user), expected_version=version, now=NOW)
    except Refused:
        return False
    return True


def of_candidates(request: Request) -> set[User]:
    found = Request.objects.get(pk=request.pk)
    step = open_step(found)
    return set(candidates(step, found, now=NOW)) if step is not None else set()


def of_queue(request: Request) -> set[User]:
    """Everybody in whose queue the request is."""
    return {
        user
        for user in User.objects.all()
        if request in Request.objects.awaiting(user, NOW)
    }


def of_page(request: Request) -> set[User]:
    """Everybody whom the request's page and its API let decide."""
    return {user for user in User.objects.all() if not why_not(request, user)}


def test_no_vote_is_offered_in_a_seat_whose_giver_has_voted(scene: Scene) -> None:
    two_leads()
    lend(scene.priya, scene.mallory)
    request = scene.ask(3)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    assert why_not(request, scene.mallory) == VOTED
    assert not decides(request, scene.mallory)


def test_the_giver_whose_stand_in_has_voted_is_offered_none_either(
    scene: Scene,
) -> None:
    two_leads()
    lend(scene.priya, scene.mallory)
    request = scene.ask(3)
    approve(request.pk, by=scene.mallory, expected_version=1, now=NOW)
    assert why_not(request, scene.priya) == VOTED
    assert not decides(request, scene.priya)


def test_who_stands_in_for_two_decides_for_the_one_who_has_not_voted(
    scene: Scene,
) -> None:
    two_leads()
    lend(scene.marcus, scene.mallory)
    lend(scene.priya, scene.mallory)
    request = scene.ask(3)
    approve(request.pk, by=scene.marcus, expected_version=1, now=NOW)
    assert why_not(request, scene.mallory) == ""
    assert decides(request, scene.mallory)
    assert request.decisions.get(by=scene.mallory).seat_of == scene.priya


@pytest.mark.slow
@pytest.mark.parametrize("of_team", [False, True])
@pytest.mark.parametrize("by_a_giver", [False, True])
@pytest.mark.parametrize("voter", ["", "priya", "marcus", "ben"])
def test_the_queue_and_the_page_are_for_whom_the_vote_is(
    scene: Scene, of_team: bool, by_a_giver: bool, voter: str
) -> None:
    """Ben stands in for both leads, of the team that asks or not; Priya asks herself or not."""
    two_leads()
    ben = factories.person("Ben Ruiz", teams=[scene.team] if of_team else [])
    lend(scene.priya, ben)
    lend(scene.marcus, ben)
    if by_a_giver:
        factories.join(scene.team, scene.priya)
    asker = scene.priya if by_a_giver else scene.ada
    request = factories.request(asker, scene.tenancy, scene.flavor, gpus=3, now=NOW)
    if voter:
        decides(request, ben if voter == "ben" else getattr(scene, voter))
    assert of_queue(request) == of_page(request) == of_candidates(request)


@pytest.mark.slow
@pytest.mark.parametrize("is_manager", [False, True])
def test_a_request_is_no_more_in_the_queue_of_a_stand_in_who_lost_the_seat(
    scene: Scene, is_manager: bool
) -> None:
    boss, chief = factories.person("Boss Bauer"), factories.person("Chief Chen")
    managers = [str(boss.oid), *([str(chief.oid)] if is_manager else [])]
    User.objects.filter(pk=scene.ada.pk).update(managers=managers)
    scene.ada.refresh_from_db()
    step = StepPlan(by="managers")
    factories.policy(Policy(routes=(Route(name="all", steps=(step,)),)), now=NOW - DAY)
    request = scene.ask(3)
    request.steps.update(stand_in=chief)
    expected = {boss, chief} if is_manager else {boss}
    assert of_queue(request) == of_page(request) == of_candidates(request) == expected

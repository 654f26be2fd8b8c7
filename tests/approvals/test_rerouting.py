"""A policy that names other people has them decide what waits, and says so to everybody concerned."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import SeatFill, User
from approvals import tasks
from approvals.decisions import rerouting
from approvals.decisions.actions import approve, ask_back
from approvals.judging import reevaluation
from approvals.models import Evaluation, Request, Rerouting, Step
from approvals.requests.actions import answer, submit
from audit.events import Kind
from audit.models import Event
from checks import decisions as decided
from notices.models import Notice
from policy.document import LEADERSHIP, LEADS, Policy, Route, StepPlan, Thresholds
from policy.models import PolicyVersion
from tests import factories
from tests.approvals import shop
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene
from web.refusals import Conflict

SECURITY_GROUP = str(factories.group_oid(77))
SECURITY = StepPlan(by=f"group:{SECURITY_GROUP}", name="Security", target_hours=10)
LATER = NOW + HOUR


def by(*steps: StepPlan, now: Any = NOW, **thresholds: Any) -> PolicyVersion:
    """A policy that has these people decide, whatever the size."""
    limits = Thresholds(**thresholds)
    return factories.policy(
        Policy(thresholds=limits, routes=(Route(name="all", steps=steps),)), now=now
    )


def steps_of(request: Request) -> list[tuple[str, bool, bool, bool]]:
    """Seat, open, done, dropped, in order."""
    rows = Step.objects.filter(request=request).order_by("position")
    return [
        (
            step.label,
            step.opened_at is not None and not step.done_at and not step.dropped_at,
            bool(step.done_at),
            bool(step.dropped_at),
        )
        for step in rows
    ]


def again(request: Request) -> Request:
    """The row as it is now."""
    return Request.objects.get(pk=request.pk)


def told(person: User, kind: str) -> int:
    """How many notices of a kind somebody had."""
    return Notice.objects.filter(person=person, kind=kind).count()


@pytest.fixture
def sam() -> User:
    """Of the security group."""
    return factories.person("Sam Security", groups=[SECURITY_GROUP])


def test_a_policy_that_names_other_people_has_them_decide_what_waits(
    scene: Scene, sam: User
) -> None:
    by(LEADS)
    asked = scene.ask(5)
    version = by(SECURITY)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert steps_of(asked) == [
        ("platform leads", False, False, True),
        ("Security", True, False, False),
    ]
    step = Step.objects.get(request=asked, dropped_at=None)
    assert (step.opened_at, step.due_at) == (LATER, LATER + timedelta(hours=10))
    row = again(asked)
    assert (row.routed_by, row.version, row.state) == (
        version,
        asked.version + 1,
        "waiting",
    )
    [changed] = row.reroutings.all()
    assert (changed.now_decide, changed.dropped) == (["Security"], ["platform leads"])
    assert told(scene.ada, "request_rerouted") == 1
    assert (told(sam, "request_waiting"), told(sam, "request_rerouted")) == (1, 0)
    assert (
        told(scene.priya, "request_waiting"),
        told(scene.priya, "request_rerouted"),
    ) == (1, 1)
    event = Event.objects.get(kind=Kind.REQUEST_REROUTED)
    assert (event.actor_kind, event.subject_id) == ("policy", str(asked.pk))
    assert event.details["no_longer_needed"] == ["platform leads"]
    done = approve(asked.pk, by=sam, expected_version=row.version, now=LATER + HOUR)
    assert done.state == "approved"
    assert (
        list(decided.has_a_record(LATER + HOUR))
        == list(decided.is_where_its_record_says(LATER))
        == []
    )


def test_it_is_said_in_the_timeline_and_by_the_api(
    scene: Scene, sam: User, client: Any
) -> None:
    by(LEADS)
    asked = scene.ask(5)
    by(LEADS, SECURITY)
    rerouting.sweep(LATER)
    client.force_login(scene.ada)
    page = client.get(f"/requests/{asked.pk}/").content.decode()
    assert "Other people decide" in page
    assert "Policy 3 is in force now: platform leads, then Security decide." in page
    said = Caller(scene.ada).get(f"requests/{asked.pk}/").json()["reroutings"]
    assert [(row["policy"], row["now_decide"]) for row in said] == [
        (3, ["platform leads", "Security"])
    ]


def test_who_is_asked_already_is_not_asked_twice_and_keeps_the_dates(
    scene: Scene, sam: User
) -> None:
    by(LEADS)
    asked = scene.ask(5)
    before = Step.objects.get(request=asked)
    by(LEADS, SECURITY)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert rerouting.sweep(LATER) == rerouting.sweep(LATER + HOUR) == []
    after = Step.objects.get(pk=before.pk)
    assert (after.opened_at, after.due_at) == (before.opened_at, before.due_at)
    assert steps_of(asked) == [
        ("platform leads", True, False, False),
        ("Security", False, False, False),
    ]
    assert told(scene.priya, "request_waiting") == 1
    assert told(scene.priya, "request_rerouted") == told(sam, "request_waiting") == 0
    assert told(scene.ada, "request_rerouted") == 1


@pytest.mark.slow
def test_votes_stay_with_a_step_that_both_routes_have(scene: Scene, sam: User) -> None:
    by(LEADS, LEADERSHIP)
    asked = scene.ask(5)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, count=4, now=NOW)
    by(LEADS, SECURITY)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert [row for row in steps_of(asked) if not row[3]] == [
        ("platform leads", False, True, False),
        ("Security", True, False, False),
    ]
    assert told(scene.elena, "request_rerouted") == 1
    row = again(asked)
    done = approve(asked.pk, by=sam, expected_version=row.version, now=LATER)
    assert (done.state, done.approved_count) == ("approved", 4)
    assert list(decided.has_a_record(LATER)) == []


def test_what_everybody_has_approved_whom_the_new_policy_names_is_granted(
    scene: Scene,
) -> None:
    by(LEADS, LEADERSHIP)
    asked = scene.ask(5)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, now=NOW)
    by(LEADS)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert again(asked).state == "approved"
    assert again(asked).reroutings.get().dropped == ["engineering leadership"]
    assert (
        told(scene.ada, "request_decided"),
        told(scene.elena, "request_withdrawn"),
    ) == (1, 1)
    assert (
        list(decided.has_a_record(LATER))
        == list(decided.is_where_its_record_says(LATER))
        == []
    )
    assert scene.allocated() == 5


@pytest.mark.slow
def test_what_everybody_has_approved_and_does_not_fit_waits_until_it_does(
    scene: Scene,
) -> None:
    by(LEADS, LEADERSHIP)
    asked = scene.ask(5)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, now=NOW)
    type(scene.flavor).objects.update(allocated=22)
    by(LEADS)
    assert rerouting.sweep(LATER) == []
    assert not Rerouting.objects.exists()
    type(scene.flavor).objects.update(allocated=0)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert again(asked).state == "approved"


@pytest.mark.slow
def test_a_vote_that_is_enough_by_now_keeps_no_other_request_from_its_new_route(
    scene: Scene,
) -> None:
    by(replace(LEADS, quorum=2))
    first, second = scene.ask(5), scene.ask(6, now=NOW + timedelta(minutes=1))
    approve(first.pk, by=scene.priya, expected_version=first.version, now=NOW)
    type(scene.flavor).objects.update(allocated=24)
    version = by(LEADS)
    assert rerouting.sweep(LATER) == [second.pk]
    assert again(second).routed_by == version
    # The first one's step stays open until there is something to grant.
    assert steps_of(first) == [("platform leads", True, False, False)]
    type(scene.flavor).objects.update(allocated=0)
    assert rerouting.sweep(LATER) == [first.pk]
    assert again(first).state == "approved"


@pytest.mark.slow
def test_what_everybody_has_approved_and_cannot_be_granted_is_tried_again_after_a_while(
    scene: Scene,
) -> None:
    by(LEADS, LEADERSHIP, automatic_gpus=0)
    factories.make_true(scene.tenancy, at=NOW)
    wanted = shop.wanted(scene, "notebook")
    asked = submit(wanted, by=scene.ada, now=NOW)
    other = scene.ask(6, now=NOW + timedelta(minutes=1))
    approve(asked.pk, by=scene.priya, expected_version=asked.version, now=NOW)
    for _ in range(10):
        factories.notebook(scene.tenancy, scene.ada)
    by(LEADS, automatic_gpus=0)
    assert rerouting.sweep(LATER) == [other.pk]
    assert again(asked).state == "waiting"
    assert not Rerouting.objects.filter(request=asked).exists()
    assert rerouting.due(LATER) == []
    assert rerouting.due(LATER + timedelta(minutes=1)) == [asked.pk]


@pytest.mark.slow
def test_more_votes_of_the_same_people_open_their_step_again(scene: Scene) -> None:
    by(LEADS, LEADERSHIP)
    asked = scene.ask(5)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, now=NOW)
    by(replace(LEADS, quorum=2))
    assert rerouting.sweep(LATER) == [asked.pk]
    step = Step.objects.get(request=asked, dropped_at=None)
    assert (step.opened_at, step.done_at, step.quorum) == (LATER, None, 2)
    assert (
        told(scene.marcus, "request_waiting"),
        told(scene.priya, "request_waiting"),
    ) == (2, 1)
    done = approve(
        asked.pk, by=scene.marcus, expected_version=again(asked).version, now=LATER
    )
    assert done.state == "approved"
    assert list(decided.has_a_record(LATER)) == []


def test_fewer_votes_than_before_are_enough_where_they_are_there(
    scene: Scene, sam: User
) -> None:
    by(replace(LEADS, quorum=2))
    asked = scene.ask(5)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, now=NOW)
    by(LEADS, SECURITY)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert [row[:3] for row in steps_of(asked)] == [
        ("platform leads", False, True),
        ("Security", True, False),
    ]
    assert (told(sam, "request_waiting"), told(scene.marcus, "request_rerouted")) == (
        1,
        1,
    )


def test_a_policy_with_the_same_people_changes_nothing_and_is_judged_once(
    scene: Scene,
) -> None:
    by(LEADS)
    asked = scene.ask(5)
    version = by(replace(LEADS, target_hours=3), automatic_gpus=1)
    assert rerouting.due(LATER) == [asked.pk]
    assert rerouting.sweep(LATER) == rerouting.due(LATER) == []
    row = again(asked)
    assert (row.version, row.routed_by) == (asked.version, version)
    assert not Rerouting.objects.exists()
    assert told(scene.ada, "request_rerouted") == 0


def test_what_was_granted_since_changes_no_route_of_itself(scene: Scene) -> None:
    """Only the policy re-routes; the sum that grew since does not."""
    factories.policy(Policy(), now=NOW)
    asked = scene.ask(5)
    assert [row[0] for row in steps_of(asked)] == ["platform leads"]
    other = scene.ask(7)
    Request.objects.filter(pk=other.pk).update(
        state="approved",
        approved_count=7,
        approved_until=F("until"),
        decided_at=NOW,
        created_at=NOW - DAY,
    )
    factories.policy(
        replace(Policy(), thresholds=Thresholds(automatic_gpus=1)), now=NOW
    )
    assert rerouting.sweep(LATER) == []


def test_an_ask_that_the_new_policy_refuses_waits_on_and_nobody_can_approve_it(
    scene: Scene,
) -> None:
    by(LEADS)
    asked = scene.ask(5, days=20)
    by(SECURITY, longest_days=10, automatic_days=5)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert rerouting.sweep(LATER) == rerouting.sweep(LATER + HOUR) == []
    row = again(asked)
    assert (row.state, steps_of(asked)) == (
        "waiting",
        [("platform leads", True, False, False)],
    )
    [changed] = row.reroutings.all()
    assert changed.refused == "19 days 23 h: at most 10 days, whoever approves"
    [notice] = Notice.objects.filter(person=scene.ada, kind="request_rerouted")
    assert "lets nobody approve it as it stands" in notice.message["sentence"]
    assert Event.objects.filter(kind=Kind.REQUEST_NOT_ALLOWED).count() == 1
    with pytest.raises(Conflict) as refused:
        approve(asked.pk, by=scene.priya, expected_version=row.version, now=LATER)
    assert "at most 10 days, whoever approves" in refused.value.message
    # Once it fits, because time has passed, the people of the new policy decide.
    assert rerouting.sweep(NOW + 11 * DAY) == [asked.pk]
    assert steps_of(asked)[-1] == ("Security", True, False, False)


def test_a_question_of_somebody_who_does_not_decide_any_more_need_not_be_answered(
    scene: Scene, sam: User
) -> None:
    by(LEADS)
    asked = scene.ask(5)
    ask_back(
        asked.pk,
        by=scene.priya,
        expected_version=asked.version,
        question="For what?",
        now=NOW,
    )
    by(SECURITY)
    assert rerouting.sweep(LATER) == [asked.pk]
    row = again(asked)
    assert (row.turn, row.answer_by) == ("approver", None)
    assert (
        approve(asked.pk, by=sam, expected_version=row.version, now=LATER).state
        == "approved"
    )


def test_a_question_of_who_still_decides_stays(scene: Scene, sam: User) -> None:
    by(LEADS)
    asked = scene.ask(5)
    ask_back(
        asked.pk,
        by=scene.priya,
        expected_version=asked.version,
        question="For what?",
        now=NOW,
    )
    by(LEADS, SECURITY)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert again(asked).turn == "requester"
    answer(asked.pk, by=scene.ada, text="For the review.", now=LATER)
    row = again(asked)
    approve(asked.pk, by=scene.priya, expected_version=row.version, now=LATER)
    assert steps_of(asked)[-1] == ("Security", True, False, False)


def test_approving_less_leaves_out_the_steps_of_the_new_route_that_fewer_do_not_need(
    scene: Scene,
) -> None:
    factories.policy(
        replace(Policy(), routes=(Route(name="all", steps=(LEADERSHIP,)),)), now=NOW
    )
    asked = scene.ask(9)
    factories.policy(Policy(), now=NOW)
    assert rerouting.sweep(LATER) == [asked.pk]
    assert [row[0] for row in steps_of(asked) if not row[3]] == [
        "engineering leadership",
        "platform leads",
    ]
    row = again(asked)
    approve(asked.pk, by=scene.elena, expected_version=row.version, count=3, now=LATER)
    assert steps_of(asked)[-1] == ("platform leads", True, False, False)


def test_what_the_new_policy_approves_is_granted_and_not_routed(scene: Scene) -> None:
    by(LEADS)
    asked = scene.ask(3)
    by(SECURITY, automatic_gpus=4)
    assert rerouting.sweep(LATER) == []
    assert reevaluation.sweep(LATER) == [asked.pk]
    assert not Rerouting.objects.exists()


def test_the_task_routes_what_waits(scene: Scene) -> None:
    by(LEADS)
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=3, now=timezone.now()
    )
    by(SECURITY)
    tasks.grant_if_automatic()
    assert Rerouting.objects.get().request == asked


def test_the_task_routes_what_waits_though_nothing_can_be_judged_again(
    scene: Scene,
) -> None:
    now = timezone.now()
    wanted = replace(scene.wanted(3), until=now + DAY)
    asked = submit(wanted, by=scene.ada, now=now)
    answer_ = Evaluation.objects.get(request=asked)
    answer_.pk, answer_.inputs = None, {}  # as no release of the portal stored them
    answer_.save(force_insert=True)
    version = by(SECURITY, now=now)
    with pytest.raises(KeyError):
        tasks.grant_if_automatic()
    assert again(asked).routed_by == version


def test_an_empty_seat_of_the_new_route_is_said_at_once(scene: Scene) -> None:
    by(LEADS)
    scene.ask(5)
    by(SECURITY)
    SeatFill.objects.create(seat=SECURITY.by, words="Security", read_at=NOW)
    rerouting.sweep(LATER)
    assert told(scene.ada, "seat_empty") == told(scene.priya, "seat_empty") == 1


@pytest.mark.slow
def test_a_sweep_is_bounded_and_reaches_everybody_in_turn(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    by(LEADS)
    for _ in range(5):
        scene.ask(3)
    by(SECURITY)
    monkeypatch.setattr(rerouting, "MAX_REROUTED", 2)
    seen: set[int] = set()
    for number in range(5):
        found = rerouting.due(
            LATER + number * timedelta(seconds=rerouting.SWEEP_SECONDS)
        )
        assert len(found) == 2
        seen.update(found)
    assert len(seen) == 5

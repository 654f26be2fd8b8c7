"""What waits is judged again, oldest first, and nobody is overtaken by an equal ask."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.budgets import balances as budgets
from allocations.ends.actions import give_back
from allocations.models import Allocation, Budget, LedgerEntry
from approvals import tasks
from approvals.conversation.actions import edit
from approvals.decisions import rerouting
from approvals.decisions.actions import approve, ask_back
from approvals.judging import reevaluation
from approvals.judging.inputs import coming, policy_of
from approvals.models import Decision, Request
from approvals.requests.actions import judge, submit
from approvals.requests.preview import preview_of
from approvals.states import State
from audit.events import Kind
from audit.models import Event
from checks import decisions as decided
from fleet.models import Flavor
from notebooks.servers.models import NotebookServer
from notices.models import Notice
from policy.document import LEADERSHIP, LEADS, Policy, Route, Thresholds
from tests import factories
from tests.approvals import shop
from tests.approvals.given import given_lately
from tests.approvals.policies import activated, drafted, in_force
from tests.scene import DAY, HOUR, NOW, Scene

MINUTE = timedelta(minutes=1)


def state_of(request: Request) -> str:
    """Where it stands now."""
    return Request.objects.get(pk=request.pk).state


def in_another_team(scene: Scene, gpus: int, *, now: Any = NOW) -> Request:
    """The same ask by somebody of another team on the same cluster."""
    return several_in_another_team(scene, gpus, now=now)[0]


def several_in_another_team(scene: Scene, *gpus: int, now: Any = NOW) -> list[Request]:
    """Several of them by one person."""
    person = factories.person()
    team = factories.team(by=person)
    factories.join(team, person)
    place = factories.tenancy(team, scene.flavor.cluster)
    wanted = (
        replace(scene.wanted(each, days=5), team=team, tenancy=place) for each in gpus
    )
    return [submit(each, by=person, now=now) for each in wanted]


@pytest.mark.slow
def test_a_new_policy_grants_what_waits_oldest_first(scene: Scene) -> None:
    second = scene.ask(3, now=NOW + MINUTE)
    first = in_another_team(scene, 4)
    large = scene.ask(8, now=NOW)
    assert [state_of(each) for each in (first, second, large)] == ["waiting"] * 3
    in_force(scene, automatic_gpus=4)
    later = NOW + HOUR
    assert reevaluation.sweep(later) == [first.pk, second.pk]
    assert [state_of(each) for each in (first, second, large)] == [
        "approved",
        "approved",
        "waiting",
    ]
    decision = Decision.objects.get(request=first)
    assert (decision.by, decision.count, decision.at) == (None, 4, later)
    assert decision.reason == "Policy 2 is in force now, and every rule holds."
    event = Event.objects.filter(kind=Kind.REQUEST_APPROVED).earliest("seq")
    assert (event.subject_id, event.actor_kind) == (str(first.pk), "policy")
    assert (
        list(decided.has_a_record(later))
        == list(decided.is_where_its_record_says(later))
        == []
    )
    assert Notice.objects.filter(
        person=first.requester, kind="request_decided"
    ).exists()
    assert Notice.objects.filter(
        person=scene.priya, kind="request_withdrawn", subject_id=first.pk
    ).exists()


@pytest.mark.slow
def test_what_a_vote_has_left_of_an_ask_goes_before_what_is_asked_later(
    scene: Scene,
) -> None:
    older = scene.ask(5)
    older.steps.update(quorum=2)
    approve(older.pk, by=scene.priya, expected_version=1, count=2, now=NOW)
    assert state_of(older) == "waiting"
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=2, gpus_ready=2)
    newer = in_another_team(scene, 2, now=NOW + MINUTE)
    assert newer.state == "waiting"
    assert reevaluation.sweep(NOW + HOUR) == [older.pk]
    assert scene.allocated() == 2


def test_a_second_sweep_grants_nothing_twice(scene: Scene) -> None:
    asked = scene.ask(3)
    in_force(scene, automatic_gpus=4)
    assert reevaluation.grant_if_automatic(asked.pk, now=NOW + HOUR)
    assert not reevaluation.grant_if_automatic(asked.pk, now=NOW + HOUR)
    assert reevaluation.sweep(NOW + HOUR) == []
    assert (Allocation.objects.count(), scene.allocated()) == (1, 3)


def test_a_policy_for_later_frees_what_waits_on_its_day(scene: Scene) -> None:
    asked = scene.ask(3)
    activated(
        drafted(scene.priya, automatic_gpus=4), by=scene.marcus, active_from=NOW + DAY
    )
    assert reevaluation.sweep(NOW + DAY - MINUTE) == []
    assert reevaluation.sweep(NOW + DAY) == [asked.pk]


@pytest.mark.slow
def test_gpus_that_come_back_go_to_the_oldest_that_the_policy_approves(
    scene: Scene,
) -> None:
    held = Allocation.objects.get(hold=scene.ask(2, days=9).hold_id)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24)
    first, second = (
        in_another_team(scene, 2),
        in_another_team(scene, 2, now=NOW + MINUTE),
    )
    assert reevaluation.sweep(NOW + HOUR) == []
    give_back(held.pk, gpus=2, by=scene.ada, now=NOW + HOUR)
    assert reevaluation.sweep(NOW + HOUR) == [first.pk]
    assert state_of(second) == State.WAITING
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=26)
    assert reevaluation.sweep(NOW + HOUR) == [second.pk]


def test_money_that_is_raised_frees_what_waited_for_it(scene: Scene) -> None:
    Budget.objects.create(
        team=scene.team, month=NOW.date().replace(day=1), limit_usd=10
    )
    asked = scene.ask(1)
    assert reevaluation.sweep(NOW + MINUTE) == []
    Budget.objects.update(limit_usd=1_000)
    assert reevaluation.sweep(NOW + HOUR) == [asked.pk]
    assert (
        sum(hold.usd for hold in LedgerEntry.objects.all()) == 71
    )  # from now on, an hour less than was asked for
    assert budgets.left_by_month(scene.team, [NOW.date().replace(day=1)])


def test_nothing_becomes_short_and_cheap_enough_by_waiting(scene: Scene) -> None:
    asked = scene.ask(1, days=15)
    for later in (NOW + DAY, NOW + 5 * DAY):
        assert reevaluation.sweep(later) == []
        assert not reevaluation.grant_if_automatic(asked.pk, now=later)
    in_force(scene, automatic_days=15)
    assert reevaluation.sweep(NOW + 5 * DAY) == [asked.pk]


def test_what_is_changed_while_it_waits_is_as_long_as_it_is_asked_for_then(
    scene: Scene,
) -> None:
    asked = scene.ask(3, days=15)
    edit(
        asked.pk,
        scene.wanted(3, days=14.5),
        by=scene.ada,
        expected_version=asked.version,
        now=NOW + DAY,
    )
    in_force(scene, automatic_gpus=3, automatic_gpu_hours=1_000)
    assert reevaluation.sweep(NOW + DAY) == [asked.pk]


def test_nobody_is_overtaken_by_an_equal_ask(scene: Scene) -> None:
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24)
    older = in_another_team(scene, 2)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=22)
    newer = scene.ask(2, now=NOW + MINUTE)
    assert (state_of(older), state_of(newer)) == ("waiting", "waiting")
    [evaluation] = newer.evaluations.all()
    assert [
        rule["code"] for rule in evaluation.answer["rules"] if not rule["holds"]
    ] == ["free"]
    assert reevaluation.sweep(NOW + HOUR) == [older.pk]


@pytest.mark.slow
def test_what_waits_of_the_same_team_has_its_window_first(scene: Scene) -> None:
    older = scene.ask(4)
    in_force(scene, automatic_gpus=4)
    newer = scene.ask(4, now=NOW + MINUTE)
    assert state_of(newer) == State.WAITING
    assert reevaluation.sweep(NOW + HOUR) == [older.pk]
    assert state_of(newer) == State.WAITING


def test_where_there_is_enough_for_both_nobody_waits_for_the_other(
    scene: Scene,
) -> None:
    older = in_another_team(scene, 3)
    in_force(scene, automatic_gpus=3)
    assert state_of(older) == State.WAITING
    assert state_of(scene.ask(3, now=NOW + MINUTE)) == State.APPROVED
    assert reevaluation.sweep(NOW + HOUR) == [older.pk]


def test_what_somebody_asked_who_left_keeps_nobody_waiting(scene: Scene) -> None:
    older = in_another_team(scene, 3)
    in_force(scene, automatic_gpus=3)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=20)
    type(scene.ada).objects.filter(pk=older.requester_id).update(is_active=False)
    assert state_of(scene.ask(3, now=NOW + MINUTE)) == State.APPROVED


@pytest.mark.slow
def test_of_those_ahead_no_more_are_judged_than_it_takes(scene: Scene) -> None:
    several_in_another_team(scene, *[3] * 6)  # of which the window lets one be granted
    factories.policy(Thresholds(automatic_gpus=3, window_gpus_team=3), now=NOW)
    queries: list[int] = []
    for free in (6, 6, 12):
        Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24 - free)
        with CaptureQueriesContext(connection) as seen:
            shown = preview_of(scene.wanted(3), by=scene.ada, now=NOW + MINUTE)
        assert shown["answer"]["outcome"] == "automatic"
        queries.append(len(seen))
    # Among six only the last one judged leaves room for the ask; among twelve there is room for two that were not.
    assert queries[1] * 4 >= queries[2] * 5


@pytest.mark.slow
def test_an_ask_costs_the_same_however_many_wait_where_there_is_room_for_all(
    scene: Scene,
) -> None:
    queries: list[int] = []
    for waiting in (1, 1, 6):
        factories.policy(Thresholds(automatic_gpus=1), now=NOW)
        several_in_another_team(scene, *[2] * waiting)
        factories.policy(Thresholds(automatic_gpus=2), now=NOW)
        with CaptureQueriesContext(connection) as seen:
            shown = preview_of(scene.wanted(2), by=scene.ada, now=NOW + MINUTE)
        assert shown["answer"]["outcome"] == "automatic"
        queries.append(len(seen))
    assert queries[1] == queries[2]


@pytest.mark.slow
def test_where_there_is_no_room_for_all_each_is_judged_without_who_would_decide_it(
    scene: Scene,
) -> None:
    several_in_another_team(scene, 3, 3, 3)
    factories.policy(Thresholds(automatic_gpus=3), now=NOW)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24 - 5)
    with CaptureQueriesContext(connection) as seen:
        assert (
            preview_of(scene.wanted(3), by=scene.ada, now=NOW + MINUTE)["answer"][
                "outcome"
            ]
            == "people"
        )
    # The steps of what a team asked before are read for the ask itself, once.
    assert sum(' FROM "approvals_step" ' in query["sql"] for query in seen) <= 1


def test_an_older_ask_that_the_policy_leaves_to_people_keeps_nobody_waiting(
    scene: Scene,
) -> None:
    in_another_team(scene, 20)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=4)
    assert state_of(scene.ask(2, now=NOW + MINUTE)) == State.APPROVED


@pytest.mark.slow
def test_the_preview_says_it_too_and_people_may_decide_in_any_order(
    scene: Scene,
) -> None:
    older = in_another_team(scene, 3)
    in_force(scene, automatic_gpus=3)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=21)
    shown = preview_of(scene.wanted(3), by=scene.ada, now=NOW + MINUTE)
    assert (shown["answer"]["outcome"], shown["remedies"][0]["code"]) == (
        "people",
        "free",
    )
    newer = scene.ask(3, now=NOW + MINUTE)
    approve(newer.pk, by=scene.priya, expected_version=newer.version, now=NOW + HOUR)
    assert (state_of(newer), state_of(older)) == ("approved", "waiting")


def test_a_question_to_the_requester_is_not_answered_by_the_sweep(scene: Scene) -> None:
    asked = scene.ask(3)
    ask_back(
        asked.pk,
        by=scene.priya,
        expected_version=asked.version,
        question="For what?",
        now=NOW,
    )
    in_force(scene, automatic_gpus=4)
    assert reevaluation.sweep(NOW + HOUR) == []
    assert not reevaluation.grant_if_automatic(asked.pk, now=NOW + HOUR)


@pytest.mark.slow
def test_votes_that_were_cast_stay_and_count(scene: Scene) -> None:
    in_force(scene, window_gpus_team=40, window_gpus_person=40)
    asked = scene.ask(10)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, count=9, now=NOW)
    draft = drafted(
        scene.priya, automatic_gpus=9, window_gpus_team=40, window_gpus_person=40
    )
    activated(draft, by=scene.marcus)
    assert reevaluation.sweep(NOW + HOUR) == [asked.pk]
    request = Request.objects.get(pk=asked.pk)
    assert request.approved_count == 9
    assert [(vote.by, vote.count) for vote in request.decisions.order_by("id")] == [
        (scene.priya, 9),
        (None, 9),
    ]
    assert [step.seat for step in request.steps.all()] == ["platform_leads"]


@pytest.mark.slow
def test_of_an_ask_that_people_made_smaller_the_windows_count_what_was_given(
    scene: Scene,
) -> None:
    by_both = (Route(name="all", steps=(LEADS, LEADERSHIP)),)
    factories.policy(Policy(routes=by_both), now=NOW)
    asked = scene.ask(8)
    approve(asked.pk, by=scene.priya, expected_version=asked.version, count=3, now=NOW)
    factories.policy(Thresholds(automatic_gpus=3), now=NOW)
    assert reevaluation.sweep(NOW + HOUR) == [asked.pk]
    assert given_lately(scene.ada, since=NOW).gpus == 3
    judged = judge(scene.wanted(1, days=2), person=scene.ada, now=NOW + 2 * HOUR)
    standing = judged.standing
    assert (standing.recent_team_gpus, standing.recent_person_gpus) == (3, 3)
    events = coming(
        judged.wanted, person=scene.ada, policy=judged.policy, now=NOW + 2 * HOUR
    )
    assert [(each.team, each.person) for each in events if each.team] == [(3, 3)]


def test_who_left_is_granted_nothing(scene: Scene) -> None:
    asked = scene.ask(3)
    in_force(scene, automatic_gpus=4)
    type(scene.ada).objects.filter(pk=scene.ada.pk).update(is_active=False)
    assert not reevaluation.grant_if_automatic(asked.pk, now=NOW + HOUR)


@pytest.mark.slow
def test_a_sweep_is_bounded_and_reaches_everybody_in_turn(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        in_another_team(scene, 3)
    version = factories.policy(Thresholds(automatic_gpus=3), now=NOW)
    monkeypatch.setattr(reevaluation, "MAX_JUDGED", 2)
    seen: set[int] = set()
    for number in range(5):
        moment = NOW + HOUR + number * timedelta(seconds=reevaluation.SWEEP_SECONDS)
        found = reevaluation.due(policy_of(version), now=moment)
        assert len(found) == 2
        seen.update(row.pk for row in found)
    assert len(seen) == 5


@pytest.mark.slow
def test_what_is_too_large_for_the_policy_is_not_judged_at_every_sweep(
    scene: Scene,
) -> None:
    for _ in range(10):
        scene.ask(8)
    with CaptureQueriesContext(
        connection,
    ) as few:
        assert reevaluation.sweep(NOW + HOUR) == []
    assert len(few) <= 3


@pytest.mark.slow
def test_what_is_refused_again_for_its_window_is_judged_without_a_lock(
    scene: Scene,
) -> None:
    factories.policy(Thresholds(automatic_gpus=1), now=NOW)
    for _ in range(3):
        scene.ask(2)
    factories.policy(Thresholds(automatic_gpus=2, window_gpus_team=2), now=NOW)
    assert len(reevaluation.sweep(NOW + HOUR)) == 1
    with CaptureQueriesContext(connection) as queries:
        assert reevaluation.sweep(NOW + 2 * HOUR) == []
    assert not [query for query in queries if " FOR NO KEY UPDATE" in query["sql"]]


def notebook_that_cannot_be_launched(scene: Scene) -> Request:
    """It waited for GPUs; they are there by now, and its person runs as many notebooks as there may be."""
    factories.make_true(scene.tenancy, at=NOW)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24)
    asked = submit(shop.wanted(scene, "notebook"), by=scene.ada, now=NOW)
    assert asked.state == State.WAITING
    for _ in range(10):
        factories.notebook(scene.tenancy, scene.ada)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=0)
    return asked


def asked_by_bea(scene: Scene) -> Request:
    """One GPU that waits, as none is free."""
    bea = factories.person("Bea")
    factories.join(scene.team, bea)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24)
    asked = submit(scene.wanted(1), by=bea, now=NOW + MINUTE)
    assert asked.state == State.WAITING
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=0)
    return asked


@pytest.mark.slow
def test_a_notebook_that_cannot_be_launched_now_keeps_no_other_request_waiting(
    scene: Scene,
) -> None:
    notebook, other = notebook_that_cannot_be_launched(scene), asked_by_bea(scene)
    # Of the one GPU that is free, the notebook would have been the first to get it.
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=23)
    assert reevaluation.sweep(NOW + HOUR) == [other.pk]
    assert state_of(notebook) == State.WAITING
    assert not Decision.objects.filter(request=notebook).exists()


@pytest.mark.slow
def test_why_it_could_not_be_granted_is_told_until_it_is_granted_or_not_tried_any_more(
    scene: Scene,
) -> None:
    asked = notebook_that_cannot_be_launched(scene)
    tried = NOW + HOUR
    reevaluation.sweep(tried)
    asked.refresh_from_db()
    because = (
        f"{scene.ada.name} runs 10 notebooks, as many as one person may. "
        "They, a lead of the team or a platform lead stop one first."
    )
    assert asked.why_not_granted(tried + MINUTE) == because
    assert asked.why_not_granted(tried + 10 * MINUTE) == ""
    NotebookServer.objects.filter(owner=scene.ada).latest("pk").delete()
    reevaluation.sweep(tried + MINUTE)
    asked.refresh_from_db()
    assert (asked.state, asked.why_not_granted(tried + MINUTE)) == ("approved", "")


def test_a_request_at_which_the_portal_fails_says_so(scene: Scene) -> None:
    asked = scene.ask(3)
    Request.objects.filter(pk=asked.pk).update(spec={})
    in_force(scene, automatic_gpus=4, window_gpus_team=99)
    reevaluation.sweep(NOW + HOUR)
    asked.refresh_from_db()
    assert asked.why_not_granted(NOW + HOUR).startswith("The portal failed at it.")


@pytest.mark.slow
def test_what_could_not_be_granted_is_tried_again_after_a_while(scene: Scene) -> None:
    notebook = notebook_that_cannot_be_launched(scene)
    assert reevaluation.sweep(NOW + HOUR) == []
    NotebookServer.objects.filter(owner=scene.ada).latest("pk").delete()
    with CaptureQueriesContext(connection) as queries:
        assert reevaluation.sweep(NOW + HOUR + MINUTE / 2) == []
    assert len(queries) <= 3
    assert reevaluation.sweep(NOW + HOUR + MINUTE) == [notebook.pk]


@pytest.mark.slow
def test_a_namespace_that_is_there_by_now_keeps_no_other_request_waiting(
    scene: Scene,
) -> None:
    factories.make_true(scene.tenancy, at=NOW)
    routes = (Route(name="all", steps=(LEADS,)),)
    of_dev = Thresholds(automatic_environments=("dev",))
    of_all = Thresholds(automatic_environments=("dev", "production"))
    factories.policy(Policy(thresholds=of_dev, routes=routes), now=NOW)
    bea = factories.person("Bea")
    factories.join(scene.team, bea)
    first, second = (
        submit(
            shop.wanted(scene, "namespace", environment="production"), by=by, now=NOW
        )
        for by in (scene.ada, bea)
    )
    third = asked_by_bea(scene)
    factories.policy(Policy(thresholds=of_all, routes=routes), now=NOW + 2 * MINUTE)
    assert reevaluation.sweep(NOW + HOUR) == [first.pk, third.pk]
    assert state_of(second) == State.WAITING


@pytest.mark.slow
def test_a_request_that_cannot_be_read_keeps_no_other_waiting_or_from_its_new_route(
    scene: Scene,
) -> None:
    broken, small = scene.ask(3), scene.ask(4, now=NOW + MINUTE)
    large = scene.ask(9, now=NOW + 2 * MINUTE)
    Request.objects.filter(pk=broken.pk).update(spec={})
    version = in_force(scene, automatic_gpus=4, window_gpus_team=99)
    assert reevaluation.sweep(NOW + HOUR) == [small.pk]
    rerouting.sweep(NOW + HOUR)
    assert [state_of(each) for each in (broken, small)] == ["waiting", "approved"]
    assert Request.objects.get(pk=large.pk).routed_by == version


def test_the_task_sweeps(scene: Scene) -> None:
    scene.ask(3)
    tasks.grant_if_automatic()

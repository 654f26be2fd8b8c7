"""Silence is answered by the clock: a reminder, a stand-in, the next level, an end; each once, with time passed in."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.actions import hold_groups
from accounts.models import Delegation, RoleHeld, User
from accounts.roles import Role
from approvals.decisions import escalation, route_words
from approvals.decisions.actions import approve, ask_back, may_decide
from approvals.decisions.deciders import candidates, seat_for
from approvals.decisions.routing import open_step
from approvals.models import Request, Step
from approvals.requests.actions import answer, lapse
from approvals.tasks import look_at_routes
from audit.models import Event
from notices.kinds import NoticeKind
from notices.models import Notice
from policy.document import Policy, Route, StepPlan, to_json
from policy.models import PolicyVersion
from tests import factories
from tests.scene import DAY, HOUR, NOW, Scene
from web.refusals import Away, Conflict, NoRight

GROUP = str(factories.group_oid(77))


def sweep(now: datetime) -> int:
    """One round of the clock at a moment; how much it did."""
    return sum(len(escalation.look(pk, now=now)) for pk in escalation.due(now))


def step_of(request: Request) -> Step:
    found = open_step(Request.objects.get(pk=request.pk))
    assert found is not None
    return found


def told(kind: NoticeKind) -> list[str]:
    """Who was told of this kind, in the order of the alphabet."""
    return sorted(
        n.person.name
        for n in Notice.objects.filter(kind=kind).select_related("person")
        if n.person
    )


def said(kind: NoticeKind, person: User) -> str:
    return Notice.objects.filter(kind=kind, person=person).latest("id").said.sentence


def events(request: Request) -> list[tuple[str, str, str]]:
    rows = Event.objects.filter(
        subject_type="request", subject_id=str(request.pk), actor_name="Quartermaster"
    )
    return [
        (row.kind, row.details.get("to", ""), row.details.get("why", ""))
        for row in rows.order_by("seq")
    ]


def away(
    user: User, *, until: datetime | None = None, known_at: datetime = NOW
) -> None:
    User.objects.filter(pk=user.pk).update(
        is_away=True, away_until=until, away_known_at=known_at
    )


def back(user: User, *, known_at: datetime) -> None:
    User.objects.filter(pk=user.pk).update(
        is_away=False, away_until=None, away_known_at=known_at
    )


def decided_by(*steps: StepPlan) -> None:
    """Put a policy in force whose route is these steps."""
    first = PolicyVersion.objects.get(number=1)
    document = to_json(Policy(routes=(Route(name="all", steps=steps),)))
    people = [factories.person(), factories.person()]
    PolicyVersion.objects.create(
        number=2,
        document=document,
        active_from=first.active_from,
        why="Tests",
        proposed_by=people[0],
        activated_by=people[1],
    )


def lend(
    giver: User,
    to: User,
    *,
    start: datetime = NOW - HOUR,
    until: datetime = NOW + 5 * DAY,
) -> Delegation:
    return Delegation.objects.create(
        giver=giver, to=to, starts_at=start, until=until, accepted_at=start
    )


def leads_then_the_manager() -> None:
    """Put a policy in force by which platform leads decide, then the manager of who asks."""
    steps = (StepPlan(by="platform_leads"), StepPlan(by="managers"))
    factories.policy(Policy(routes=(Route(name="all", steps=steps),)), now=NOW - HOUR)


@pytest.fixture
def boss(scene: Scene) -> User:
    """Ada's manager, known here; everything is for her manager to decide."""
    boss, chief = factories.person("Boss Bauer"), factories.person("Chief Chen")
    User.objects.filter(pk=scene.ada.pk).update(
        managers=[str(boss.oid), str(chief.oid)]
    )
    scene.ada.refresh_from_db()
    decided_by(StepPlan(by="managers"))
    return boss


@pytest.fixture
def chief(boss: User) -> User:
    """The manager of Ada's manager."""
    return User.objects.get(name="Chief Chen")


def test_a_reminder_an_escalation_and_an_end_each_come_once_on_their_dates(
    scene: Scene,
) -> None:
    request = scene.ask(3, days=20)
    assert told(NoticeKind.REQUEST_WAITING) == ["Marcus Weber", "Priya Raman"]
    assert sweep(NOW + 8 * HOUR - timedelta(seconds=1)) == 0
    assert [sweep(NOW + 8 * HOUR), sweep(NOW + 8 * HOUR), sweep(NOW + 47 * HOUR)] == [
        1,
        0,
        0,
    ]
    assert told(NoticeKind.REQUEST_REMINDER) == ["Marcus Weber", "Priya Raman"]
    assert (
        may_decide(Request.objects.get(), scene.elena, now=NOW)
        == "This step is for platform leads."
    )
    assert [sweep(NOW + 48 * HOUR), sweep(NOW + 13 * DAY)] == [1, 0]
    assert told(NoticeKind.REQUEST_ESCALATED) == ["Elena Petrova"]
    assert "Platform leads have not decided yet, so it is passed on to you." in said(
        NoticeKind.REQUEST_ESCALATED, scene.elena
    )
    assert may_decide(Request.objects.get(), scene.elena, now=NOW) == ""
    assert list(Request.objects.awaiting(scene.elena, NOW)) == [request]
    assert lapse(request.pk, now=NOW + 14 * DAY)
    assert told(NoticeKind.REQUEST_LAPSED) == ["Ada Okafor"]
    assert sweep(NOW + 15 * DAY) == 0
    assert [kind for kind, _, _ in events(request)] == [
        "request.reminded",
        "request.escalated",
        "request.lapsed",
    ]
    assert (
        Request.objects.get().version == 2
    )  # who looks at the page may go on deciding while the clock tells


def test_a_sweep_that_comes_late_does_all_that_was_due(scene: Scene) -> None:
    request = scene.ask(3, days=20)
    assert sweep(NOW + 5 * DAY) == 2
    step = step_of(request)
    assert (step.reminded_at, step.escalated_at) == (NOW + 5 * DAY, NOW + 5 * DAY)


def test_the_top_of_the_ladder_is_reminded_a_second_time(scene: Scene) -> None:
    decided_by(StepPlan(by="engineering_leadership"))
    request = scene.ask(3, days=20)
    assert [sweep(NOW + 8 * HOUR), sweep(NOW + 48 * HOUR), sweep(NOW + 50 * HOUR)] == [
        1,
        1,
        0,
    ]
    assert told(NoticeKind.REQUEST_REMINDER) == ["Elena Petrova", "Elena Petrova"]
    assert not told(NoticeKind.REQUEST_ESCALATED)
    assert step_of(request).escalated_at == NOW + 48 * HOUR


def test_a_question_stops_the_clock_and_moves_every_moment(scene: Scene) -> None:
    request = scene.ask(3, days=20)
    ask_back(
        request.pk,
        by=scene.priya,
        expected_version=1,
        question="Why three?",
        now=NOW + 2 * HOUR,
    )
    assert sweep(NOW + 3 * DAY) == 0
    answer(request.pk, by=scene.ada, text="Three folds.", now=NOW + 3 * DAY)
    step = step_of(request)
    stood = 3 * DAY - 2 * HOUR
    assert (step.remind_at, step.due_at, step.escalate_at) == (
        NOW + stood + 8 * HOUR,
        NOW + stood + 24 * HOUR,
        NOW + stood + 48 * HOUR,
    )
    assert sweep(NOW + stood + 8 * HOUR - timedelta(seconds=1)) == 0
    assert sweep(NOW + stood + 8 * HOUR) == 1


def test_where_one_is_away_the_others_are_told_and_nothing_is_passed_on(
    scene: Scene,
) -> None:
    away(scene.marcus)
    scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Priya Raman"]
    assert sweep(NOW) == 0


def test_it_is_passed_on_at_once_where_everybody_is_away(scene: Scene) -> None:
    away(scene.marcus)
    away(scene.priya, until=NOW + 3 * DAY)
    request = scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Elena Petrova"]
    assert events(request) == [("request.escalated", "engineering leadership", "away")]
    assert (
        approve(request.pk, by=scene.elena, expected_version=1, now=NOW).state
        == "approved"
    )


def test_it_is_passed_on_later_when_the_last_one_leaves(scene: Scene) -> None:
    away(scene.marcus)
    scene.ask(3)
    away(scene.priya, known_at=NOW + HOUR)
    away(scene.marcus, known_at=NOW + HOUR)
    assert [sweep(NOW + HOUR), sweep(NOW + HOUR)] == [1, 0]
    assert told(NoticeKind.REQUEST_ESCALATED) == ["Elena Petrova"]
    assert "Platform leads are out of office" in said(
        NoticeKind.REQUEST_ESCALATED, scene.elena
    )


def test_the_one_at_work_who_asked_does_not_count(scene: Scene) -> None:
    factories.join(scene.team, scene.priya)
    request = factories.request(
        scene.priya, scene.tenancy, scene.flavor, gpus=3, now=NOW
    )
    away(scene.marcus, known_at=NOW)
    assert sweep(NOW + timedelta(minutes=1)) == 1
    assert events(request) == [("request.escalated", "engineering leadership", "away")]


def test_who_stands_in_for_those_away_keeps_it_on_its_level(scene: Scene) -> None:
    away(scene.marcus)
    away(scene.priya)
    lend(scene.priya, scene.mallory)
    request = scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Mallory Finch"]
    assert sweep(NOW) == 0
    assert (
        approve(request.pk, by=scene.mallory, expected_version=1, now=NOW).state
        == "approved"
    )
    assert request.decisions.get().seat_of == scene.priya


def test_a_manager_decides_and_nobody_beside_them(scene: Scene, boss: User) -> None:
    request = scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Boss Bauer"]
    with pytest.raises(NoRight) as refused:
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    assert refused.value.message == "This step is for Boss Bauer, manager."
    assert approve(request.pk, by=boss, expected_version=1, now=NOW).state == "approved"


def test_without_a_known_manager_platform_leads_decide(scene: Scene) -> None:
    decided_by(StepPlan(by="managers"))
    assert step_of(scene.ask(3)).words == "platform leads (no manager is known)"


def test_the_next_manager_stands_in_until_the_first_is_back(
    scene: Scene, boss: User, chief: User
) -> None:
    away(boss)
    request = scene.ask(3, days=20)
    assert told(NoticeKind.REQUEST_WAITING) == ["Chief Chen"]
    assert step_of(request).stand_in == chief
    assert may_decide(Request.objects.get(), chief, now=NOW) == ""
    back(boss, known_at=NOW + HOUR)
    assert [sweep(NOW + HOUR), sweep(NOW + HOUR)] == [1, 0]
    assert step_of(request).stand_in is None
    assert (
        may_decide(Request.objects.get(), chief, now=NOW)
        == "This step is for Boss Bauer, manager."
    )
    assert [(to, why) for _, to, why in events(request)] == [
        ("Chief Chen", "away"),
        ("Boss Bauer", "back"),
    ]


def test_who_leaves_while_it_waits_gets_a_stand_in_then(
    scene: Scene, boss: User, chief: User
) -> None:
    request = scene.ask(3, days=20)
    away(boss, known_at=NOW + HOUR)
    assert [sweep(NOW + HOUR), sweep(NOW + HOUR)] == [1, 0]
    assert "Boss Bauer, manager is out of office, so this is for you." in said(
        NoticeKind.REQUEST_WAITING, chief
    )
    assert (
        approve(request.pk, by=chief, expected_version=1, now=NOW + HOUR).state
        == "approved"
    )
    assert sweep(NOW + 2 * HOUR) == 0


def test_who_the_manager_named_comes_before_the_next_manager(
    scene: Scene, boss: User, chief: User
) -> None:
    lend(boss, scene.mallory)
    away(boss)
    request = scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Mallory Finch"]
    assert (
        approve(request.pk, by=scene.mallory, expected_version=1, now=NOW).state
        == "approved"
    )
    assert request.decisions.get().seat_of == boss


def test_where_nobody_above_is_there_platform_leads_may_decide(
    scene: Scene, boss: User, chief: User
) -> None:
    away(boss)
    away(chief)
    request = scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Marcus Weber", "Priya Raman"]
    assert events(request) == [("request.escalated", "platform leads", "away")]
    assert (
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW).state
        == "approved"
    )


def test_a_stand_in_who_leaves_too_is_followed_by_the_next(
    scene: Scene, boss: User, chief: User
) -> None:
    away(boss, known_at=NOW + HOUR)
    away(boss)
    request = scene.ask(3)
    for user in (boss, chief):
        away(user, known_at=NOW + HOUR)
    assert [sweep(NOW + HOUR), sweep(NOW + HOUR)] == [1, 0]
    step = step_of(request)
    assert (step.stand_in, step.escalate_to) == (None, "platform_leads")


def test_a_stand_in_named_by_dates_decides_within_them_only(
    scene: Scene, boss: User
) -> None:
    lend(boss, scene.mallory, start=NOW, until=NOW + HOUR)
    away(boss)
    request = scene.ask(3)
    early, late = NOW + timedelta(minutes=59), NOW + HOUR
    assert seat_for(scene.mallory, step_of(request), request, now=early) == boss
    with pytest.raises(NoRight):
        approve(request.pk, by=scene.mallory, expected_version=1, now=late)


def test_a_stand_in_whose_time_is_over_is_followed_by_the_next_manager(
    scene: Scene, boss: User, chief: User
) -> None:
    lend(boss, scene.mallory, start=NOW, until=NOW + HOUR)
    away(boss)
    request = scene.ask(3, days=20)
    assert step_of(request).stand_in == scene.mallory
    assert sweep(NOW + HOUR - timedelta(seconds=1)) == 0
    away(boss, known_at=NOW + HOUR)
    step = step_of(request)
    assert scene.mallory not in candidates(step, request, now=NOW + HOUR)
    assert list(Request.objects.awaiting(scene.mallory, NOW + HOUR)) == []
    assert [sweep(NOW + HOUR), sweep(NOW + HOUR)] == [1, 0]
    assert step_of(request).stand_in == chief
    assert "so this is for you" in said(NoticeKind.REQUEST_WAITING, chief)
    assert (
        approve(request.pk, by=chief, expected_version=1, now=NOW + HOUR).state
        == "approved"
    )


@pytest.mark.slow
def test_who_has_voted_already_is_not_named_in_place_of_the_manager(
    scene: Scene, boss: User, chief: User
) -> None:
    leads_then_the_manager()
    lend(boss, scene.priya)
    away(boss)
    request = scene.ask(3, days=20)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    step = step_of(request)
    assert (step.seat, step.stand_in) == (f"person:{boss.oid}", chief)
    assert told(NoticeKind.REQUEST_WAITING).count("Priya Raman") == 1
    assert approve(request.pk, by=chief, expected_version=2, now=NOW).state == (
        "approved"
    )


def test_a_manager_at_work_who_has_voted_already_is_passed_over(
    scene: Scene, boss: User, chief: User
) -> None:
    leads_then_the_manager()
    RoleHeld.objects.create(user=boss, role=Role.PLATFORM_LEAD)
    request = scene.ask(3, days=20)
    approve(request.pk, by=boss, expected_version=1, now=NOW)
    assert step_of(request).stand_in == chief
    # It stays theirs: the manager who is at work does not take back what they cannot decide.
    assert sweep(NOW + HOUR) == 0
    assert ("request.escalated", "Chief Chen", "voted") in events(request)
    found = Request.objects.get(pk=request.pk)
    turn, *_ = route_words.coming(found, [step_of(request)])
    assert (turn["title"], turn["why"]) == (
        "Chief Chen, in place of Boss Bauer, manager decides",
        "Boss Bauer, manager has decided a step of it already.",
    )
    assert approve(request.pk, by=chief, expected_version=2, now=NOW).state == (
        "approved"
    )


def test_where_everybody_above_has_voted_platform_leads_may_decide(
    scene: Scene, boss: User, chief: User
) -> None:
    leads_then_the_manager()
    RoleHeld.objects.create(user=boss, role=Role.PLATFORM_LEAD)
    User.objects.filter(pk=chief.pk).update(is_active=False)
    request = scene.ask(3, days=20)
    approve(request.pk, by=boss, expected_version=1, now=NOW)
    assert ("request.escalated", "platform leads", "voted") in events(request)
    whys = [entry["why"] for entry in route_words.past(request)]
    assert whys == ["Boss Bauer, manager has decided a step of it already."]
    assert approve(request.pk, by=scene.priya, expected_version=2, now=NOW).state == (
        "approved"
    )


def test_the_clock_finds_a_step_of_a_manager_who_has_voted(
    scene: Scene, boss: User, chief: User
) -> None:
    leads_then_the_manager()
    RoleHeld.objects.create(user=boss, role=Role.PLATFORM_LEAD)
    other = scene.ask(3, days=20)
    approve(other.pk, by=scene.priya, expected_version=1, now=NOW)
    request = scene.ask(3, days=20)
    approve(request.pk, by=boss, expected_version=1, now=NOW)
    Step.objects.filter(pk=step_of(request).pk).update(stand_in=None)  # as it once was
    assert escalation.due(NOW) == [request.pk]
    assert sweep(NOW) == 1
    assert "has decided a step of it already, so this is for you." in said(
        NoticeKind.REQUEST_WAITING, chief
    )


def test_who_stands_in_for_the_requester_does_not_decide(scene: Scene) -> None:
    factories.join(scene.team, scene.priya)
    request = factories.request(
        scene.priya, scene.tenancy, scene.flavor, gpus=3, now=NOW
    )
    lend(scene.priya, scene.mallory)
    assert "Mallory Finch" not in told(NoticeKind.REQUEST_WAITING)
    with pytest.raises(NoRight) as refused:
        approve(request.pk, by=scene.mallory, expected_version=1, now=NOW)
    assert refused.value.code == "not_an_approver"


def test_two_are_needed_where_the_policy_says_two_and_a_seat_votes_once(
    scene: Scene,
) -> None:
    decided_by(StepPlan(by="platform_leads", quorum=2))
    lend(scene.priya, scene.mallory)
    request = scene.ask(3, days=20)
    assert (
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW).state
        == "waiting"
    )
    with pytest.raises(Conflict) as refused:
        approve(request.pk, by=scene.mallory, expected_version=2, now=NOW)
    assert refused.value.code == "voted_already"
    Notice.objects.all().delete()
    assert sweep(NOW + 8 * HOUR) == 1
    assert told(NoticeKind.REQUEST_REMINDER) == ["Marcus Weber"]
    assert (
        approve(request.pk, by=scene.marcus, expected_version=2, now=NOW).state
        == "approved"
    )


def test_the_last_voice_of_two_that_is_away_is_passed_on(scene: Scene) -> None:
    decided_by(StepPlan(by="platform_leads", quorum=2))
    request = scene.ask(3)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    away(scene.marcus)
    assert sweep(NOW) == 1
    assert (
        approve(request.pk, by=scene.elena, expected_version=2, now=NOW).state
        == "approved"
    )


def test_a_named_group_decides_and_who_left_it_is_refused(scene: Scene) -> None:
    decided_by(StepPlan(by=f"group:{GROUP}", name="the GPU council"))
    grace, ben = (
        factories.person("Grace", groups=[GROUP]),
        factories.person("Ben", groups=[GROUP]),
    )
    request = scene.ask(3)
    assert told(NoticeKind.REQUEST_WAITING) == ["Ben", "Grace"]
    assert may_decide(Request.objects.get(), grace, now=NOW) == ""  # what the page says
    hold_groups(grace, [])
    with pytest.raises(NoRight) as refused:
        approve(request.pk, by=grace, expected_version=1, now=NOW)
    assert refused.value.message == "This step is for the GPU council."
    assert approve(request.pk, by=ben, expected_version=1, now=NOW).state == "approved"


def test_a_role_that_was_lost_between_page_and_vote_is_refused(scene: Scene) -> None:
    request = scene.ask(3)
    assert may_decide(Request.objects.get(), scene.priya, now=NOW) == ""
    RoleHeld.objects.filter(user=scene.priya).update(role=Role.DATA_SCIENTIST)
    with pytest.raises(NoRight):
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW)


def test_while_the_directory_is_silent_the_clock_goes_on_and_nobody_decides(
    scene: Scene, boss: User, chief: User
) -> None:
    """The last that was known holds: a stand-in stays, reminders and escalations come, votes are refused."""
    away(boss)
    request = scene.ask(3, days=20)
    User.objects.update(groups_known_at=NOW)  # and never again
    later = NOW + 8 * HOUR
    assert (
        sweep(later) == 1
    )  # the reminder; the stand-in stays, though nothing was heard of the manager for hours
    assert step_of(request).stand_in == chief
    assert told(NoticeKind.REQUEST_REMINDER) == ["Boss Bauer", "Chief Chen"]
    with pytest.raises(Away) as refused:
        approve(request.pk, by=chief, expected_version=1, now=later)
    assert refused.value.code == "directory_away"
    assert [sweep(NOW + 48 * HOUR), sweep(NOW + 48 * HOUR)] == [1, 0]
    User.objects.update(groups_known_at=NOW + 49 * HOUR)
    assert (
        approve(request.pk, by=chief, expected_version=1, now=NOW + 49 * HOUR).state
        == "approved"
    )


def test_looking_costs_the_same_for_however_many_wait(scene: Scene) -> None:
    away(scene.marcus)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert escalation.due(NOW) == []
        return len(queries)

    scene.ask(3)
    few = cost()
    for _ in range(4):
        scene.ask(3)
    assert (few, cost()) == (few, few)
    assert few <= 6


def test_those_for_whom_somebody_stands_in_keep_no_other_from_its_turn(
    scene: Scene, boss: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escalation, "MAX_LOOKED_AT", 2)
    away(boss)
    for _ in range(3):
        scene.ask(3, days=20)
    back(boss, known_at=NOW)
    last = scene.ask(3, days=20)
    away(boss, known_at=NOW + HOUR)
    for minute in range(2):
        now = NOW + HOUR + timedelta(minutes=minute)
        assert len(escalation.due(now)) == 2
        sweep(now)
    assert step_of(last).stand_in is not None


def test_the_task_looks_at_every_request_that_is_due(scene: Scene) -> None:
    then = timezone.now() - 9 * HOUR
    for _ in range(2):
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=3, now=then)
    look_at_routes()
    assert Step.objects.exclude(reminded_at=None).count() == 2

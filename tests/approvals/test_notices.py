"""What people are told about a request: the words of its page, for the right ones, in the transaction of the event."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from accounts.roles import Role
from approvals import notices
from approvals.decisions import escalation
from approvals.decisions.actions import approve, ask_back, reject
from approvals.decisions.routing import open_step
from approvals.models import Request
from approvals.requests.actions import answer, submit, withdraw
from approvals.requests.page import sentence
from approvals.states import State
from notices.kinds import NoticeKind, Way
from notices.message import Message
from notices.models import Channel, Notice, Preference
from notices.sealing import seal
from policy.document import LEADS, Policy, Route, StepPlan
from tests import factories
from tests.scene import DAY, NOW, Scene


def told(kind: NoticeKind) -> list[str]:
    rows = Notice.objects.filter(kind=kind, person__isnull=False).select_related(
        "person"
    )
    return sorted(row.person.name for row in rows if row.person)


def last(kind: NoticeKind) -> Message:
    return Notice.objects.filter(kind=kind).latest("id").said


def channel(*kinds: NoticeKind) -> Channel:
    return Channel.objects.create(
        name="Platform",
        way=Way.TEAMS,
        sealed=seal("https://hooks.example.com/x"),
        kinds=[kind.value for kind in kinds],
    )


def test_who_decides_is_told_in_the_words_of_the_page_with_the_rules_and_where_to_decide(
    scene: Scene,
) -> None:
    request = scene.ask(5)
    assert told(NoticeKind.REQUEST_WAITING) == ["Marcus Weber", "Priya Raman"]
    notice = Notice.objects.filter(kind=NoticeKind.REQUEST_WAITING).latest("id")
    said, evaluation = notice.said, request.evaluations.get()
    assert notice.link == f"/approvals/{request.pk}/"
    assert (said.title, said.action) == ("Vision asks for 5 × A100", "Decide")
    assert (
        said.sentence
        == f"{sentence(request, State.WAITING, [], now=NOW)} {evaluation.answer['sentence']}"
    )
    assert said.sentence == (
        "Vision asks for 5 × A100 in Training until Mon 23 Nov, 12:00 UTC, for $360. Platform leads decide."
    )
    assert ("note", "5 GPUs", "people decide above 2") in said.rules
    assert said.facts == (
        ("Asked by", "Ada Okafor"),
        ("Until", "Mon 23 Nov, 12:00 UTC"),
        ("Cost", "$360"),
        ("Why people decide", "5 GPUs (people decide above 2)"),
        ("Stays free", "19 of 24"),
        ("Others who wait for these", "0"),
        ("Decides", "platform leads"),
        ("To be decided by", "Sat 21 Nov, 12:00 UTC"),
        ("Without people", "Automatic for 2."),
        ("Why", "Retrain the detector before the review."),
    )


def test_a_manager_is_told_by_name_who_decides(scene: Scene) -> None:
    boss = factories.person("Boss Bauer")
    User.objects.filter(pk=scene.ada.pk).update(managers=[str(boss.oid)])
    scene.ada.refresh_from_db()
    policy = Policy(
        routes=(Route(name="ordinary", steps=(StepPlan(by="managers"), LEADS)),)
    )
    factories.policy(policy, now=NOW)
    asked = scene.ask(5)
    assert (
        asked.evaluations.get().answer["sentence"]
        == "Your manager, then platform leads decide."
    )
    assert told(NoticeKind.REQUEST_WAITING) == ["Boss Bauer"]
    assert last(NoticeKind.REQUEST_WAITING).sentence.endswith(
        "Boss Bauer, manager, then platform leads decide."
    )
    approve(asked.pk, by=boss, expected_version=1, now=NOW)
    assert told(NoticeKind.REQUEST_WAITING) == [
        "Boss Bauer",
        "Marcus Weber",
        "Priya Raman",
    ]
    assert "our manager" not in last(NoticeKind.REQUEST_WAITING).sentence


def test_an_ask_that_the_policy_approves_tells_channels_alone(scene: Scene) -> None:
    place = channel(NoticeKind.REQUEST_DECIDED)
    scene.ask(1)
    notice = Notice.objects.get()
    assert (notice.channel, notice.kind) == (place, NoticeKind.REQUEST_DECIDED)
    assert (
        notice.said.sentence
        == "The policy approved it: Automatic. Yours in about 5 seconds."
    )


def test_the_next_level_is_told_when_the_first_has_approved_and_who_asked_when_the_last_has(
    scene: Scene,
) -> None:
    request = scene.ask(8)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    assert told(NoticeKind.REQUEST_WAITING) == [
        "Elena Petrova",
        "Marcus Weber",
        "Priya Raman",
    ]
    assert told(NoticeKind.REQUEST_DECIDED) == []
    approve(
        request.pk,
        by=scene.elena,
        expected_version=2,
        count=6,
        reason="Six will do.",
        now=NOW,
    )
    assert told(NoticeKind.REQUEST_DECIDED) == ["Ada Okafor"]
    said = last(NoticeKind.REQUEST_DECIDED)
    assert (said.title, said.sentence) == (
        "Approved: 6 of 8 × A100 for Vision",
        "Elena Petrova approved it: Six will do.",
    )


def test_a_rejection_comes_with_its_reason(scene: Scene) -> None:
    request = scene.ask(5)
    reject(
        request.pk, by=scene.priya, expected_version=1, reason="Use the T4s.", now=NOW
    )
    assert told(NoticeKind.REQUEST_DECIDED) == ["Ada Okafor"]
    assert (
        last(NoticeKind.REQUEST_DECIDED).sentence
        == "Priya Raman rejected it: Use the T4s."
    )


def test_a_question_goes_to_who_asked_for_it_and_the_answer_to_who_asked(
    scene: Scene,
) -> None:
    request = scene.ask(5)
    ask_back(
        request.pk, by=scene.priya, expected_version=1, question="Why five?", now=NOW
    )
    assert told(NoticeKind.REQUEST_ASKED_BACK) == ["Ada Okafor"]
    assert last(NoticeKind.REQUEST_ASKED_BACK).sentence.startswith(
        "Priya Raman asks: Why five?"
    )
    answer(request.pk, by=scene.ada, text="Five folds.", now=NOW)
    assert told(NoticeKind.REQUEST_ANSWERED) == ["Priya Raman"]
    assert (
        last(NoticeKind.REQUEST_ANSWERED).sentence == "Ada Okafor answers: Five folds."
    )


def test_nobody_is_told_to_decide_their_own_request(scene: Scene) -> None:
    factories.join(scene.team, scene.priya)
    factories.request(scene.priya, scene.tenancy, scene.flavor, gpus=5, now=NOW)
    assert told(NoticeKind.REQUEST_WAITING) == ["Marcus Weber"]


def test_who_wants_to_hear_nothing_hears_nothing(scene: Scene) -> None:
    Preference.objects.create(
        person=scene.marcus, kind=NoticeKind.REQUEST_WAITING, pace="none"
    )
    scene.ask(5)
    assert told(NoticeKind.REQUEST_WAITING) == ["Priya Raman"]


def test_text_from_people_comes_as_one_tidy_line(scene: Scene) -> None:
    submit(
        scene.wanted(5, reason="Line one\r\nBcc: all@example.com\u202e x" + "y" * 900),
        by=scene.ada,
        now=NOW,
    )
    why = dict(last(NoticeKind.REQUEST_WAITING).facts)["Why"]
    assert why.startswith("Line one Bcc: all@example.com x")
    assert len(why) <= 200


@pytest.mark.parametrize("leads", [0, 20])
def test_telling_takes_as_many_queries_for_twenty_as_for_two(
    scene: Scene, leads: int
) -> None:
    for _ in range(leads):
        factories.person("", Role.PLATFORM_LEAD)
    request = Request.objects.select_related(
        "team", "requester", "flavor__cluster"
    ).get(pk=scene.ask(5).pk)
    step = open_step(request)
    assert step is not None
    with CaptureQueriesContext(connection) as seen:
        notices.waits(request, step, now=NOW)
    assert len(seen) == 11, [query["sql"][:90] for query in seen]
    assert (
        User.objects.filter(notices__kind=NoticeKind.REQUEST_WAITING).distinct().count()
        == leads + 2
    )


def test_those_who_were_asked_are_told_once_that_it_was_taken_back(
    scene: Scene,
) -> None:
    request = scene.ask(5)
    escalation.look(request.pk, now=NOW + DAY)
    assert told(NoticeKind.REQUEST_REMINDER) == ["Marcus Weber", "Priya Raman"]
    withdraw(request.pk, by=scene.ada, now=NOW + DAY)
    assert told(NoticeKind.REQUEST_WITHDRAWN) == ["Marcus Weber", "Priya Raman"]
    notice = Notice.objects.filter(kind=NoticeKind.REQUEST_WITHDRAWN).latest("id")
    assert (notice.pace, notice.link) == ("digest", f"/requests/{request.pk}/")
    assert notice.said.title == "Taken back: 5 × A100 for Vision"
    assert (
        notice.said.sentence
        == "Ada Okafor took it back. There is nothing left to decide."
    )


def test_nobody_hears_of_what_was_taken_back_before_they_were_asked(
    scene: Scene,
) -> None:
    Preference.objects.create(
        person=scene.marcus, kind=NoticeKind.REQUEST_WAITING, pace="none"
    )
    request = scene.ask(5)
    withdraw(request.pk, by=scene.ada, now=NOW)
    assert told(NoticeKind.REQUEST_WITHDRAWN) == ["Priya Raman"]

"""A request is a conversation: it can be changed while it waits, which voids votes, and talked about at any time."""

from datetime import timedelta
from decimal import Decimal

import pytest

from allocations.models import Allocation, Budget
from approvals.conversation.actions import comment, edit
from approvals.decisions.actions import approve, ask_back, may_decide, reject
from approvals.models import Comment, Request, Revision
from approvals.requests.actions import withdraw
from audit.models import Event
from notices.kinds import NoticeKind
from notices.models import Notice
from tests import factories
from tests.scene import DAY, NOW, Scene, books, ledger
from web.refusals import BadInput, Conflict, NoRight, Stale

LATER = NOW + timedelta(hours=1)


def told(kind: NoticeKind) -> list[str]:
    rows = Notice.objects.filter(kind=kind, person__isnull=False).select_related(
        "person"
    )
    return sorted(row.person.name for row in rows if row.person)


def test_a_change_is_judged_anew_and_goes_its_own_way(scene: Scene) -> None:
    request = scene.ask(9)
    assert request.steps.count() == 2
    changed = edit(
        request.pk, scene.wanted(4, days=2), by=scene.ada, expected_version=1, now=LATER
    )
    assert (changed.content_version, changed.version, changed.state, changed.count) == (
        2,
        2,
        "waiting",
        4,
    )
    assert [(s.seat, s.version) for s in changed.steps.filter(version=2)] == [
        ("platform_leads", 2)
    ]
    assert [(r.number, r.count, r.by) for r in Revision.objects.order_by("number")] == [
        (1, 9, scene.ada),
        (2, 4, scene.ada),
    ]
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(4 * 47)}
    assert (
        approve(request.pk, by=scene.priya, expected_version=2, now=LATER).state
        == "approved"
    )
    assert Allocation.objects.get().gpus == 4


def test_a_change_to_what_every_rule_allows_is_granted_at_once(scene: Scene) -> None:
    request = scene.ask(9)
    changed = edit(
        request.pk, scene.wanted(1), by=scene.ada, expected_version=1, now=NOW
    )
    assert (changed.state, changed.approved_count) == ("approved", 1)
    assert scene.allocated() == 1
    assert not Request.objects.awaiting(scene.priya, NOW).exists()


@pytest.mark.slow
def test_earlier_votes_are_void_and_who_gave_them_is_asked_again(scene: Scene) -> None:
    request = scene.ask(9)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    Notice.objects.all().delete()
    edit(request.pk, scene.wanted(10), by=scene.ada, expected_version=2, now=LATER)
    assert told(NoticeKind.REQUEST_WAITING) == ["Marcus Weber", "Priya Raman"]
    said = Notice.objects.filter(kind=NoticeKind.REQUEST_WAITING).first()
    assert said is not None
    assert said.said.sentence.startswith(
        "Ada Okafor changed it (GPUs: 9 → 10; Cost: $648 → $710); earlier votes are void."
    )
    assert may_decide(Request.objects.get(), scene.priya, now=NOW) == ""
    waits = approve(request.pk, by=scene.priya, expected_version=3, now=LATER)
    assert waits.state == "waiting"
    assert (
        approve(
            request.pk, by=scene.elena, expected_version=4, now=LATER
        ).approved_count
        == 10
    )


def test_who_spoke_and_is_not_asked_again_hears_of_the_change(scene: Scene) -> None:
    request = scene.ask(9)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    ask_back(
        request.pk, by=scene.elena, expected_version=2, question="Why nine?", now=NOW
    )
    edit(request.pk, scene.wanted(3), by=scene.ada, expected_version=3, now=LATER)
    assert told(NoticeKind.REQUEST_COMMENTED) == ["Elena Petrova"]
    assert Request.objects.get().turn == "approver"


def test_money_that_is_held_counts_as_there_for_the_change(scene: Scene) -> None:
    Budget.objects.create(
        team=scene.team, month=NOW.date().replace(day=1), limit_usd=400
    )
    request = scene.ask(5)
    assert scene.held_usd() == 360
    edit(request.pk, scene.wanted(4, days=4), by=scene.ada, expected_version=1, now=NOW)
    assert scene.held_usd() == 384


def test_only_who_asked_changes_it_and_only_what_they_saw(scene: Scene) -> None:
    request = scene.ask(5)
    for person in (scene.priya, scene.mallory):
        with pytest.raises(NoRight):
            edit(request.pk, scene.wanted(4), by=person, expected_version=1, now=NOW)
    with pytest.raises(Stale):
        edit(request.pk, scene.wanted(4), by=scene.ada, expected_version=2, now=NOW)
    withdraw(request.pk, by=scene.ada, now=NOW)
    with pytest.raises(Conflict) as late:
        edit(request.pk, scene.wanted(4), by=scene.ada, expected_version=2, now=NOW)
    assert late.value.code == "already_decided"
    assert Revision.objects.count() == 1


def test_a_change_that_changes_nothing_or_nobody_could_approve_is_refused(
    scene: Scene,
) -> None:
    request = scene.ask(5)
    before = Request.objects.values().get()
    for wanted, code in (
        (scene.wanted(5), "nothing_changed"),
        (scene.wanted(25), "impossible_exists"),
        (scene.wanted(5, reason=""), "reason_needed"),
    ):
        with pytest.raises(BadInput) as refused:
            edit(request.pk, wanted, by=scene.ada, expected_version=1, now=NOW)
        assert refused.value.code == code
    assert Request.objects.values().get() == before
    assert scene.held_usd() == 360


def test_a_request_stays_with_its_team(scene: Scene) -> None:
    request = scene.ask(5)
    other = factories.team("Speech")
    factories.join(other, scene.ada)
    wanted = scene.wanted(4)
    place = factories.tenancy(other, scene.flavor.cluster)
    object.__setattr__(wanted, "team", other)
    object.__setattr__(wanted, "tenancy", place)
    with pytest.raises(BadInput) as refused:
        edit(request.pk, wanted, by=scene.ada, expected_version=1, now=NOW)
    assert refused.value.code == "another_offering"


def test_who_sees_a_request_says_something_about_it_and_those_who_take_part_are_told(
    scene: Scene,
) -> None:
    colleague = factories.person("Ben", teams=[scene.team])
    request = scene.ask(5)
    ask_back(
        request.pk, by=scene.priya, expected_version=1, question="Why five?", now=NOW
    )
    comment(request.pk, by=colleague, text=" It is for the review. ", now=NOW)
    comment(request.pk, by=scene.marcus, text="Fine by me.", now=LATER)
    assert [(c.by, c.text) for c in Comment.objects.all()] == [
        (colleague, "It is for the review."),
        (scene.marcus, "Fine by me."),
    ]
    assert told(NoticeKind.REQUEST_COMMENTED) == [
        "Ada Okafor",
        "Ada Okafor",
        "Ben",
        "Priya Raman",
        "Priya Raman",
    ]
    assert Event.objects.latest("seq").kind == "request.commented"
    assert Request.objects.get().version == 2  # nobody's decision is stale by it


def test_strangers_say_nothing_and_nobody_says_nothing(scene: Scene) -> None:
    request = scene.ask(5)
    with pytest.raises(NoRight):
        comment(request.pk, by=scene.mallory, text="Me too.", now=NOW)
    for text in (" ", "x" * 2001):
        with pytest.raises(BadInput):
            comment(request.pk, by=scene.ada, text=text, now=NOW)
    assert not Comment.objects.exists()


def test_it_can_be_talked_about_after_the_decision(scene: Scene) -> None:
    request = scene.ask(5)
    reject(request.pk, by=scene.priya, expected_version=1, reason="Not now.", now=NOW)
    comment(request.pk, by=scene.ada, text="When, then?", now=NOW + 9 * DAY)
    assert told(NoticeKind.REQUEST_COMMENTED) == ["Priya Raman"]


def test_an_edit_stands_before_what_came_of_it_with_the_answer(scene: Scene) -> None:
    asked = scene.ask(8)
    edit(asked.pk, scene.wanted(1), by=scene.ada, expected_version=1, now=NOW)
    told = Event.objects.about("request", asked.pk).order_by("seq")
    assert [event.kind for event in told] == [
        "request.submitted",
        "request.edited",
        "request.approved",
    ]
    details = told[1].details
    assert (details["policy"], details["rules_not_met"], details["usd"]) == (
        1,
        [],
        "72.00",
    )

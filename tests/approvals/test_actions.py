"""Asking: what is saved, what is set aside, and what is refused with nothing saved."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from allocations.budgets.actions import set_budget
from allocations.budgets.months import budgets_ahead
from allocations.models import Allocation, Budget, LedgerEntry
from approvals.decisions.actions import approve, ask_back
from approvals.judging.inputs import answer_of
from approvals.models import Decision, Evaluation, Request, Revision, Step
from approvals.requests.actions import answer, judge, submit, withdraw
from approvals.requests.preview import preview_of
from approvals.requests.wanted import Wanted
from approvals.states import State
from audit.models import Event
from catalogue.models import OfferingSetting
from fleet.models import Cluster, Flavor
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.scene import DAY, NOW, Scene, books, ledger
from web.refusals import BadInput, Conflict, NoRight, Refused

USD = Decimal


def rows() -> dict[str, int]:
    """How many rows asking could have left."""
    models = (
        Request,
        Revision,
        Evaluation,
        Step,
        Decision,
        Allocation,
        Budget,
        LedgerEntry,
        Event,
    )
    return {model.__name__: model.objects.count() for model in models}


def kinds_since(seq: int) -> list[str]:
    return list(
        Event.objects.filter(seq__gt=seq).order_by("seq").values_list("kind", flat=True)
    )


def newest() -> int:
    return Event.objects.order_by("-seq").values_list("seq", flat=True).first() or 0


def test_a_small_ask_is_approved_issued_and_desired_at_once(scene: Scene) -> None:
    before, generation = newest(), scene.tenancy.generation
    request = scene.ask(2)
    [decision] = request.decisions.all()
    allocation = Allocation.objects.get()
    tenancy = Tenancy.objects.get(pk=scene.tenancy.pk)
    assert (request.state, request.approved_count, request.usd, request.decided_at) == (
        "approved",
        2,
        USD(144),
        NOW,
    )
    assert (decision.by, decision.verdict, decision.count, decision.usd) == (
        None,
        "approve",
        2,
        USD(144),
    )
    assert decision.reason == "Policy 1: every rule holds."
    assert (allocation.hold, allocation.gpus, allocation.starts_at) == (
        request.hold,
        2,
        NOW,
    )
    assert (allocation.until, allocation.price_per_gpu_hour) == (NOW + 3 * DAY, USD(1))
    assert scene.allocated() == 2
    assert tenancy.generation == generation + 1
    assert tenancy.requeue_at == NOW
    assert {flavor.name: flavor.gpus for flavor in tenancy.desired.flavors} == {
        "a100": 2
    }
    assert books(scene.team) == ledger(scene.team) == {"2026-11": USD(144)}
    assert request.steps.count() == 0
    assert kinds_since(before) == [
        "request.submitted",
        "request.approved",
        "tenancy.changed",
        "allocation.issued",
    ]
    asked, decided, _, issued = Event.objects.filter(seq__gt=before).order_by("seq")
    assert (asked.details["policy"], asked.details["rules_not_met"]) == (1, [])
    assert (decided.actor_name, decided.details["policy"]) == ("The policy", 1)
    assert decided.details["usd"] == str(request.usd)
    assert Decimal(issued.details["usd_per_hour"]) == allocation.usd_per_hour


def test_an_ask_for_people_opens_the_first_step_and_sets_the_money_aside(
    scene: Scene,
) -> None:
    before = newest()
    request = scene.ask(8, days=5)
    assert (request.state, request.turn, request.approved_count) == (
        "waiting",
        "approver",
        None,
    )
    assert [
        (step.position, step.seat, step.opened_at)
        for step in request.steps.order_by("position")
    ] == [
        (0, "platform_leads", NOW),
        (1, "engineering_leadership", None),
    ]
    assert books(scene.team) == ledger(scene.team) == {"2026-11": USD(960)}
    assert (
        scene.allocated(),
        Allocation.objects.count(),
        Decision.objects.count(),
    ) == (0, 0, 0)
    assert kinds_since(before) == ["request.submitted"]


def test_money_is_set_aside_in_the_months_in_which_it_is_spent(scene: Scene) -> None:
    scene.ask(1, days=12)
    assert (
        books(scene.team)
        == ledger(scene.team)
        == {"2026-11": USD(252), "2026-12": USD(36)}
    )


def test_an_ask_over_the_budget_waits_without_holding_money(scene: Scene) -> None:
    Budget.objects.create(
        team=scene.team, month=NOW.date().replace(day=1), limit_usd=10
    )
    request = scene.ask(1)
    assert request.state == State.WAITING
    assert books(scene.team) == {"2026-11": 0}
    assert ledger(scene.team) == {}


def test_ten_small_asks_are_one_large_one(scene: Scene) -> None:
    states = [scene.ask(2).state for _ in range(4)]
    assert states == ["approved"] * 3 + ["waiting"]
    last = Request.objects.latest("id").evaluations.get()
    assert [rule["code"] for rule in last.answer["rules"] if not rule["holds"]] == [
        "window",
        "window_person",
    ]


def test_what_was_automatic_long_ago_does_not_count(scene: Scene) -> None:
    for _ in range(3):
        scene.ask(2, now=NOW)
    later = NOW + 7 * DAY + timedelta(seconds=1)
    wanted = replace(scene.wanted(2), until=later + DAY)
    assert submit(wanted, by=scene.ada, now=later).state == "approved"


def changed(**fields: Any) -> Callable[[Scene, Wanted], Wanted]:
    return lambda _, wanted: replace(wanted, **fields)


def units(count: int, **fields: Any) -> Callable[[Scene, Wanted], Wanted]:
    return lambda _, wanted: replace(wanted.of(count), **fields)


def switched_off(scene: Scene, wanted: Wanted) -> Wanted:
    OfferingSetting.objects.create(
        key="gpus", gate="self_service", position=0, enabled=False
    )
    return scene.wanted()


def withdrawn_from_offer(scene: Scene, wanted: Wanted) -> Wanted:
    Flavor.objects.filter(pk=scene.flavor.pk).update(is_offered=False)
    return scene.wanted()


def cluster_off(scene: Scene, wanted: Wanted) -> Wanted:
    Cluster.objects.update(enabled=False)
    return scene.wanted()


def elsewhere(_: Scene, wanted: Wanted) -> Wanted:
    return replace(wanted, flavor=factories.flavor())


REFUSALS: dict[
    str, tuple[Callable[[Scene, Wanted], Wanted], type[Refused], str, str]
] = {
    "too many": (units(25), BadInput, "impossible_exists", "gpus"),
    "none": (units(0), BadInput, "out_of_range", "gpus"),
    "fewer than none": (units(-1), BadInput, "out_of_range", "gpus"),
    "absurdly many": (units(2**63), BadInput, "out_of_range", "gpus"),
    "too long": (
        changed(until=NOW + 90 * DAY + timedelta(seconds=1)),
        BadInput,
        "impossible_days",
        "until",
    ),
    "past": (changed(until=NOW - DAY), BadInput, "in_the_past", "until"),
    "now": (changed(until=NOW), BadInput, "in_the_past", "until"),
    "next century": (
        changed(until=datetime(9999, 12, 31, tzinfo=NOW.tzinfo)),
        BadInput,
        "too_far_ahead",
        "until",
    ),
    "no reason": (units(3, reason=""), BadInput, "reason_needed", "reason"),
    "a reason of blanks": (
        units(3, reason=" " * 40),
        BadInput,
        "reason_needed",
        "reason",
    ),
    "another cluster's": (elsewhere, BadInput, "not_there", "flavor"),
    "an offering that is off": (switched_off, Conflict, "offering_off", "offering"),
    "not offered": (withdrawn_from_offer, Conflict, "not_offered", "flavor"),
    "cluster off": (cluster_off, Conflict, "not_offered", "flavor"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses_and_saves_nothing(scene: Scene, name: str) -> None:
    change, kind, code, field = REFUSALS[name]
    wanted = change(scene, scene.wanted())
    before = rows()
    with pytest.raises(kind) as refused, transaction.atomic():
        submit(wanted, by=scene.ada, now=NOW)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert rows() == before


def test_a_stranger_cannot_ask_for_a_team(scene: Scene) -> None:
    before = rows()
    with pytest.raises(NoRight) as refused:
        submit(scene.wanted(), by=scene.mallory, now=NOW)
    assert (refused.value.code, rows()) == ("not_of_the_team", before)


def test_a_platform_lead_may_ask_for_a_team_but_leadership_may_not(
    scene: Scene,
) -> None:
    assert submit(scene.wanted(), by=scene.priya, now=NOW).requester == scene.priya
    with pytest.raises(NoRight):
        submit(scene.wanted(), by=scene.elena, now=NOW)


def test_a_small_ask_needs_no_reason(scene: Scene) -> None:
    assert submit(scene.wanted(2, reason=""), by=scene.ada, now=NOW).state == "approved"


def test_a_preview_gives_the_verdict_and_writes_nothing(scene: Scene) -> None:
    before = rows()
    judged = judge(scene.wanted(5), person=scene.ada, now=NOW)
    assert rows() == before
    assert answer_of(judged.answer) == scene.ask(5).evaluations.get().answer


def test_preview_budget_page_and_verdict_agree_about_a_month_before_one_that_was_set(
    scene: Scene,
) -> None:
    november, december = date(2026, 11, 1), date(2026, 12, 1)
    for month, usd in ((november, "300"), (date(2027, 1, 1), "50000")):
        set_budget(scene.team, month=month, by=scene.priya, limit_usd=USD(usd))
    wanted = scene.wanted(1, days=25)
    shown = preview_of(wanted, by=scene.ada, now=NOW)
    on_the_page = budgets_ahead(scene.team, now=NOW)[december].limit_usd
    stored = submit(wanted, by=scene.ada, now=NOW).evaluations.get()
    made = Budget.objects.get(team=scene.team, month=december)
    [previewed] = [one for one in shown["budget"] if one["month"] == "2026-12"]
    assert USD(previewed["limit_usd"]) == on_the_page == made.limit_usd == 300
    assert shown["answer"] == stored.answer


def test_the_nearest_automatic_ask_submitted_as_it_is_is_automatic(
    scene: Scene,
) -> None:
    asked = scene.wanted(7, days=40)
    nearest = judge(asked, person=scene.ada, now=NOW).nearest
    assert nearest is not None
    request = submit(
        replace(asked.of(nearest.count), until=nearest.until), by=scene.ada, now=NOW
    )
    assert (request.state, request.gpus, request.until) == (
        "approved",
        2,
        NOW + 14 * DAY,
    )


def test_who_asked_withdraws_and_the_money_is_let_go(scene: Scene) -> None:
    request = scene.ask(5)
    assert scene.held_usd() == 360
    withdrawn = withdraw(request.pk, by=scene.ada, now=NOW)
    assert (withdrawn.state, withdrawn.version, withdrawn.decided_at) == (
        "withdrawn",
        2,
        NOW,
    )
    assert books(scene.team) == ledger(scene.team) == {"2026-11": 0}
    assert [row.usd for row in LedgerEntry.objects.all()] == [360, -360]
    assert Event.objects.latest("seq").kind == "request.withdrawn"


def test_nobody_else_withdraws_and_nothing_decided_is_withdrawn(scene: Scene) -> None:
    waiting, approved = scene.ask(5), scene.ask(1)
    for person in (scene.mallory, scene.priya):
        with pytest.raises(NoRight) as refused:
            withdraw(waiting.pk, by=person, now=NOW)
        assert refused.value.code == "not_the_requester"
    withdraw(waiting.pk, by=scene.ada, now=NOW)
    for request in (approved, waiting):
        with pytest.raises(Conflict) as late:
            withdraw(request.pk, by=scene.ada, now=NOW)
        assert late.value.code == "already_decided"


def test_a_question_is_answered_and_the_turn_goes_back(scene: Scene) -> None:
    request = scene.ask(5)
    asked = ask_back(
        request.pk, by=scene.priya, expected_version=1, question="Why five?", now=NOW
    )
    assert (asked.state, asked.turn, asked.version) == ("waiting", "requester", 2)
    for person, text, code in (
        (scene.priya, "Because", "not_the_requester"),
        (scene.ada, "  ", "required"),
    ):
        with pytest.raises(Refused) as refused:
            answer(request.pk, by=person, text=text, now=NOW)
        assert refused.value.code == code
    answered = answer(request.pk, by=scene.ada, text=" Five folds. ", now=NOW)
    assert (answered.turn, answered.version) == ("approver", 3)
    talk = [(d.verdict, d.reason, d.by) for d in request.decisions.order_by("id")]
    assert talk == [
        ("ask", "Why five?", scene.priya),
        ("answer", "Five folds.", scene.ada),
    ]
    with pytest.raises(Conflict) as nothing_open:
        answer(request.pk, by=scene.ada, text="More", now=NOW)
    assert nothing_open.value.code == "nothing_asked"
    assert (
        approve(request.pk, by=scene.priya, expected_version=3, now=NOW).state
        == "approved"
    )


def test_an_action_that_fails_later_leaves_no_event(scene: Scene) -> None:
    before = rows()
    with transaction.atomic():
        submit(scene.wanted(2), by=scene.ada, now=NOW)
        transaction.set_rollback(True)
    assert rows() == before


def test_a_price_that_changes_while_an_ask_waits_is_the_one_that_is_judged_and_issued(
    scene: Scene,
) -> None:
    asked = scene.wanted(2, days=1)
    Flavor.objects.filter(pk=scene.flavor.pk).update(price_per_gpu_hour=Decimal(5))
    request = submit(asked, by=scene.ada, now=NOW)
    assert (request.usd, Allocation.objects.get().price_per_gpu_hour) == (
        Decimal(240),
        Decimal(5),
    )
    assert scene.held_usd() == Decimal(240)


def test_what_people_grant_costs_what_it_costs_by_then(scene: Scene) -> None:
    request = scene.ask(3, days=1)
    Flavor.objects.filter(pk=scene.flavor.pk).update(price_per_gpu_hour=Decimal(2))
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    assert Allocation.objects.get().price_per_gpu_hour == Decimal(2)
    assert scene.held_usd() == Decimal(144)
    told = Notice.objects.get(kind="request_decided", person=scene.ada).said.sentence
    assert "The price has risen since it was asked for: $144 in all, not $72." in told
